package record

import (
	"testing"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestRecord(t *testing.T) {
	pod := &spec.Pod{Name: "web", Containers: []spec.Container{{Name: "app", Hash: "v1:x"}}}
	a := lifecycle.StartContainer{Ref: lifecycle.Ref{Container: "app", Round: 2, Attempt: 3}, Sandbox: 4, Restarts: 5}
	c := containers.Container{ID: "id", Image: "i", Labels: Labels("u", pod, a, &pod.Containers[0])}
	c.Labels[LabelImageID], c.Labels[LabelImageArch], a.ImageID = "sha256:1", "amd64", "sha256:1"
	got, err := Run(c)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lifecycle.Run{StartContainer: a, ID: "id", Image: "i", Architecture: "amd64"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.Labels[LabelAttempt] = "x"
	if _, err := Run(c); err == nil {
		t.Error("a label that is not a number was accepted")
	}

	if err := WithDefinition(pod)(t.Context(), nil, &c); err != nil {
		t.Fatal(err)
	}
	kept, err := Definition(c)
	if diff := cmp.Diff(pod, kept); diff != "" || err != nil {
		t.Errorf("definition: %v (-want +got):\n%s", err, diff)
	}
	if paths, err := ImageDefined(c); err != nil || paths != nil {
		t.Errorf("volumes of the image: %v, %v", paths, err)
	}
	if err := WithImageDefined([]string{"/data"})(t.Context(), nil, &c); err != nil {
		t.Fatal(err)
	}
	if paths, err := ImageDefined(c); err != nil || !cmp.Equal(paths, []string{"/data"}) {
		t.Errorf("volumes of the image: %v, %v", paths, err)
	}
	if _, err := Definition(containers.Container{}); err == nil {
		t.Error("a missing definition was accepted")
	}
}

func TestIDs(t *testing.T) {
	ref := lifecycle.Ref{Container: "c", Round: 1, Attempt: 11}
	ids := map[string]bool{
		ContainerID("u", ref): true, ContainerID("v", ref): true, SandboxID("u", 1): true, SandboxID("u", 11): true,
		ContainerID("u", lifecycle.Ref{Container: "c", Round: 11, Attempt: 1}): true,
		ContainerID("u", lifecycle.Ref{Container: "d", Round: 1, Attempt: 11}): true,
	}
	if len(ids) != 6 {
		t.Errorf("IDs %v are not unique", ids)
	}
}
