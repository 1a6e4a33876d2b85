package container

import (
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/spec"
)

func TestOf(t *testing.T) {
	pod := &spec.Pod{Volumes: []spec.Volume{
		{Name: "model", Image: &spec.ImageVolume{Reference: "m"}},
		{Name: "unused", Image: &spec.ImageVolume{Reference: "u"}},
		{Name: "tmp", EmptyDir: &spec.EmptyDirVolume{}},
	}}
	c := &spec.Container{VolumeMounts: []spec.VolumeMount{{Name: "tmp"}, {Name: "model"}, {Name: "model"}}}
	if got := ImageVolumesOf(pod, c); len(got) != 1 || got[0].Name != "model" {
		t.Errorf("%v, want the volume model", got)
	}
}

func TestIsMountPoint(t *testing.T) {
	for dir, want := range map[string]bool{"/proc": true, t.TempDir(): false, filepath.Join(t.TempDir(), "none"): false} {
		if got, err := isMountPoint(dir); got != want || err != nil {
			t.Errorf("%s: %v, %v; want %v", dir, got, err, want)
		}
	}
}
