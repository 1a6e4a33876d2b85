package podfiles

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
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
	b.fakePods.set(func(f *fakePods) {
		next := *f.pods["web-0"]
		next.Outcome.Message = "the resize of the pod is not complete: cannot decrease memory limits"
		f.pods["web-0"] = &next
	})
	b.looks(3)
	const text = "the update waits until that of pod web-0 is complete: " +
		"the resize of the pod is not complete: cannot decrease memory limits"
	for _, f := range b.set.Files() {
		waits, _ := errors.AsType[*pending](f.Refused)
		if want := f.Pod != "web-0"; (waits != nil) != want || want && waits.text != text {
			t.Errorf("file of %s: %v", f.Pod, f.Refused)
		}
	}

	b.write("web.yaml", deployment("4", "a"))
	b.untilPods(map[string]string{"web-0": "a", "web-1": "a", "web-2": "a", "web-3": "a"})
	b.write("web.yaml", deployment("1", "a"))
	b.untilPods(map[string]string{"web-0": "a"})
}

// TestOneByOneRolledBack: after a rollback of the first replica, the others keep the good definition, until the file is corrected.
func TestOneByOneRolledBack(t *testing.T) {
	t.Parallel()
	b := newRollback(t)
	b.becomes["good"] = "ready"
	file := func(image string) string {
		var text strings.Builder
		for i := range 3 {
			fmt.Fprintf(&text, "[[pods]]\nname = \"web-%d\"\nannotations = { %q = \"Deployment/web\" }\nupdate = %s\n"+
				"[[pods.containers]]\nname = \"app\"\nimage = %q\n", i, spec.AnnotationReplicaOf, withinHour, image)
		}
		return text.String()
	}
	b.write("web.toml", file("a"))
	b.run()
	b.untilPods(map[string]string{"web-0": "a", "web-1": "a", "web-2": "a"})
	b.until("all generations were ready", func() bool {
		for _, pod := range []string{"web-0", "web-1", "web-2"} {
			r, err := b.set.Rollout(b.Context(), pod)
			if err != nil || len(r.History.Generations) != 1 || r.History.Generations[0].Outcome != api.GenerationReady {
				return false
			}
		}
		return true
	})

	b.becomes["bad"] = "crash"
	b.write("web.toml", file("bad"))
	b.until("the first one is rolled back", func() bool { return b.reasonsOf()["web-0"] == api.ReasonRolledBack })
	b.untilPods(map[string]string{"web-0": "a", "web-1": "a", "web-2": "a"})
	b.looks(5)
	b.fakePods.set(func(f *fakePods) {
		bad := 0
		for _, change := range f.log {
			if strings.HasSuffix(change, " bad") {
				bad++
			}
		}
		if bad != 1 {
			t.Errorf("%d replicas got the bad definition, want 1: %q", bad, f.log)
		}
	})
	for _, f := range b.set.Files() {
		want := "generation 2 was rolled back: "
		if f.Pod != "web-0" {
			want = "pod web-0: " + want
		}
		if f.Reason != api.ReasonRolledBack || !strings.HasPrefix(text(f.Refused), want) {
			t.Errorf("file of %s: %s, %v", f.Pod, f.Reason, f.Refused)
		}
	}
	b.write("web.toml", file("good"))
	b.untilPods(map[string]string{"web-0": "good", "web-1": "good", "web-2": "good"})
}
