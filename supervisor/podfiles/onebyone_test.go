package podfiles

import (
	"errors"
	"strings"
	"testing"
)

// deployment returns a Deployment with replicas that are ready at once if their image becomes ready.
func deployment(replicas, image string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: " + replicas +
		"\n  selector: {matchLabels: {app: web}}\n  minReadySeconds: 0\n" +
		"  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: app, image: " + image + "}]}\n"
}

// TestOneByOne: replicas are updated one after the other. One that does not become ready keeps the others, until its definition is
// corrected.
func TestOneByOne(t *testing.T) {
	t.Parallel()
	b := newRollback(t)
	b.becomes["good"] = "ready"
	b.write("web.yaml", deployment("3", "a"))
	b.run()
	b.untilPods(map[string]string{"web-0": "a", "web-1": "a", "web-2": "a"}) // the first start is not deferred

	b.write("web.yaml", deployment("3", "good"))
	b.untilPods(map[string]string{"web-0": "good", "web-1": "good", "web-2": "good"})

	b.write("web.yaml", deployment("3", "bad")) // it is not ready
	b.untilPods(map[string]string{"web-0": "bad", "web-1": "good", "web-2": "good"})
	b.looks(3)
	b.untilPods(map[string]string{"web-0": "bad", "web-1": "good", "web-2": "good"})
	for _, f := range b.set.Files() {
		waits, _ := errors.AsType[*pending](f.Refused)
		if want := f.Pod != "web-0"; (waits != nil) != want || want && !strings.Contains(waits.text, "until pod web-0 is ready") {
			t.Errorf("file of %s: %v", f.Pod, f.Refused)
		}
	}

	b.write("web.yaml", deployment("4", "a"))
	b.untilPods(map[string]string{"web-0": "a", "web-1": "a", "web-2": "a", "web-3": "a"})
	b.write("web.yaml", deployment("1", "a"))
	b.untilPods(map[string]string{"web-0": "a"})
}
