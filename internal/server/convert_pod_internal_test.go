package server

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// snapshotOf returns a running pod whose containers have images of archives, or not.
func snapshotOf(t *testing.T, text string, archive bool) *supervisor.Snapshot {
	t.Helper()
	pod, problems := spec.Accept("web.toml", []byte(text))
	if pod == nil {
		t.Fatal(problems)
	}
	accepted := lifecycle.Instant{Wall: time.Unix(1_700_000_000, 0)}
	facts := lifecycle.Facts{UID: "u", Accepted: accepted, Changes: 1, Containers: map[string]*lifecycle.Container{}}
	for _, c := range pod.Containers {
		facts.Containers[c.Name] = &lifecycle.Container{Image: lifecycle.Image{ID: "sha256:1", Archive: archive}}
	}
	facts.Conditions = map[lifecycle.ConditionType]lifecycle.SetCondition{"example.org/a": {Status: "True"}}
	return &supervisor.Snapshot{Pod: pod, Facts: facts, Status: lifecycle.StatusOf(pod, facts, facts.Accepted)}
}

const podOfImages = `
name = "web"
imageArchives = ["web.tar"]
readinessGates = [{ conditionType = "example.org/a" }]
serviceAccountName = "default"
containers = [
	{ name = "latest", image = "nginx", lifecycle.stopSignal = "SIGINT" },
	{ name = "tag", image = "nginx:1.27" },
	{ name = "digest", image = "nginx@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ name = "set", image = "nginx", imagePullPolicy = "Never" },
]
volumes = [{ name = "v", image.reference = "files:1" }]
`

// TestPodHasDefaults checks that a pod has the pull policies that are used, its generation, and conditions of that generation, and that
// its definition is not changed.
func TestPodHasDefaults(t *testing.T) {
	for _, test := range []struct {
		archive bool
		latest  spec.PullPolicy
	}{{false, spec.PullAlways}, {true, spec.PullIfNotPresent}} {
		s := snapshotOf(t, podOfImages, test.archive)
		p := PodOf(s)
		for i, want := range []spec.PullPolicy{test.latest, spec.PullIfNotPresent, spec.PullIfNotPresent, spec.PullNever} {
			if c := p.Spec.Containers[i]; c.ImagePullPolicy != want {
				t.Errorf("container %s has the policy %q, want %q", c.Name, c.ImagePullPolicy, want)
			}
		}
		if got := p.Spec.Volumes[0].Image.PullPolicy; got != spec.PullIfNotPresent {
			t.Errorf("the volume has the policy %q", got)
		}
		if s.Pod.Containers[1].ImagePullPolicy != "" || s.Pod.Volumes[0].Image.PullPolicy != "" {
			t.Error("the definition was changed")
		}
		if p.Metadata.Generation != 2 || p.Status.ObservedGeneration != 2 {
			t.Errorf("generation %d, observed %d, want 2", p.Metadata.Generation, p.Status.ObservedGeneration)
		}
		for _, c := range p.Status.Conditions {
			if want := map[bool]int64{true: 0, false: 2}[c.Type == "example.org/a"]; c.ObservedGeneration != want {
				t.Errorf("condition %s of generation %d, want %d", c.Type, c.ObservedGeneration, want)
			}
		}
	}
	waiting := snapshotOf(t, podOfImages, false)
	waiting.Facts.Containers = nil
	if got := PodOf(waiting).Spec.Containers[0].ImagePullPolicy; got != "" {
		t.Errorf("the policy %q of an image that an archive may have", got)
	}
}

// TestOutputIsAccepted checks that what "get" prints is accepted without a warning, and is the same pod.
func TestOutputIsAccepted(t *testing.T) {
	s := snapshotOf(t, podOfImages, true)
	p := podOf(s, []api.PodIP{{IP: "192.0.2.1"}})
	end := time.Unix(1_700_000_000, 0)
	grace := int64(1)
	p.Metadata.DeletionTimestamp, p.Metadata.DeletionGracePeriodSeconds = &end, &grace
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	again, problems := spec.Accept("web.json", text)
	if again == nil || len(problems) > 0 {
		t.Fatalf("%v\n%s", problems, text)
	}
	if p.Spec.NodeName == "" || again.OS == nil {
		t.Errorf("node %q, operating system %v", p.Spec.NodeName, again.OS)
	}
	if again.ServiceAccount() != "default" || again.Containers[0].ImagePullPolicy != spec.PullIfNotPresent {
		t.Errorf("got %+v", again)
	}
}
