package files

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/internal/filecopy"
	"github.com/podstead/podstead/spec"
)

// TestPointsOf: outer mount points come first, volumes that are available replace other mounts, and the others are covered. A volume
// inside of another one is not in the specification.
func TestPointsOf(t *testing.T) {
	c := &spec.Container{
		VolumeMounts: []spec.VolumeMount{
			{Name: "gone", MountPath: "/a/b/"}, {Name: "inner", MountPath: "/a/c"}, {Name: "outer", MountPath: "a"},
		},
	}
	mounts := []specs.Mount{{Destination: "/proc"}, {Destination: "/a"}, {Destination: "/etc/hosts"}}
	volumes := []specs.Mount{{Destination: "/a/c", Source: "inner"}, {Destination: "/a", Source: "outer"}}
	var got []string
	for _, p := range pointsOf(c, mounts, volumes) {
		line := p.path
		if p.volume != nil {
			line += " " + p.volume.Source
		}
		got = append(got, line)
	}
	want := []string{"/a outer", "/proc", "/a/c inner", "/a/b", "/etc/hosts"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWithCause checks that the error for a file in a volume that is not available has the reason.
func TestWithCause(t *testing.T) {
	c := &container{missing: map[string]error{"/data": fs.ErrNotExist, "/data/in": errors.New("no key")}}
	covered := func(p string) error { return &fs.PathError{Op: "open", Path: p, Err: filecopy.ErrCovered} }
	for p, want := range map[string]string{
		"/data":      ": the volume at /data is not available: file does not exist",
		"/data/x/y/": ": the volume at /data is not available: file does not exist",
		"/data/in/x": ": the volume at /data/in is not available: no key",
		"/database":  "",
		"/proc/1":    "",
		"relative":   "",
	} {
		err := c.withCause(covered(p))
		if got := err.Error(); got != covered(p).Error()+want || !errors.Is(err, filecopy.ErrCovered) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %s", p, got)
		}
		if text := describe("read", "app", p, err).Error(); strings.Count(text, p) != 1+strings.Count(want, p) {
			t.Errorf("%s: described as %s", p, text)
		}
	}
	if other := errors.New("other"); !errors.Is(c.withCause(other), other) || c.withCause(nil) != nil {
		t.Error("another error is changed")
	}
}
