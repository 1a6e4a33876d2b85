package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

// TestFailed: host paths that work, are missing, or have no device have not failed.
func TestFailed(t *testing.T) {
	s, err := New(nil, Options{DataDir: t.TempDir(), RunDir: t.TempDir(), ClaimsDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	pod := &spec.Pod{}
	if HasDevice(pod) {
		t.Error("a pod without volumes has a device")
	}
	for i, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing"), "/dev/null", "/proc", "/proc/version", "/dev/shm"} {
		pod.Volumes = append(pod.Volumes, spec.Volume{Name: fmt.Sprintf("v%d", i), HostPath: &spec.HostPathVolume{Path: path}})
	}
	if !HasDevice(pod) {
		t.Error("a pod with host paths has no device")
	}
	if message, err := s.Failed(t.Context(), Pod{UID: "u", Spec: pod}); message != "" || err != nil {
		t.Errorf("message %q, %v", message, err)
	}
	for _, test := range []struct {
		err  error
		dead bool
	}{
		{nil, false},
		{unix.EINVAL, false},
		{&fs.PathError{Err: unix.ENOENT}, false},
		{&fs.PathError{Err: unix.EIO}, true},
		{unix.EROFS, true},
	} {
		if got := failure(test.err); (got != nil) != test.dead || test.dead && !errors.Is(got, test.err) {
			t.Errorf("%v: %v", test.err, got)
		}
	}
}
