//go:build e2e

package volume

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
)

// Only privileged containers can mount what overlaps a protected path, also through links and bind mounts.
func TestProtectedHostPath(t *testing.T) {
	s := newSet(t, nil)
	base := t.TempDir()
	state := filetest.Mkdir(t, filepath.Join(base, "lib", "state"))
	filetest.Write(t, filepath.Join(state, "pods", "file"), "")
	filetest.Mkdir(t, filepath.Join(base, "lib", "state-of-others"))
	filetest.Symlink(t, state, filepath.Join(base, "link"))
	filetest.Symlink(t, "lib", filepath.Join(base, "relative"))
	tmpfsAt(t, filepath.Join(state, "memory"), unix.MS_PRIVATE)
	filetest.Mkdir(t, filepath.Join(base, "outer", "inner"))
	for place, of := range map[string]string{
		"bound": "lib/state", "bound-below": "lib/state/pods", "bound-above": "lib", "outer/inner": "lib/state",
	} {
		place := filetest.Mkdir(t, filepath.Join(base, place))
		if err := unix.Mount(filepath.Join(base, of), place, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(place, unix.MNT_DETACH) })
	}
	s.opts.Protected = []string{filepath.Join(base, "not-there"), state}
	for path, refused := range map[string]bool{
		"lib/state": true, "lib/state/pods": true, "lib/state/pods/file": true, "lib/state/memory": true, "lib": true, ".": true, "/": true,
		"link": true, "link/pods": true, "relative": true, "bound": true, "bound-below": true, "bound-above": true, "outer": true,
		"outer/inner":         true,
		"lib/state-of-others": false, "other": false, "/etc": false, "/dev/null": false,
	} {
		for _, allowed := range [][]string{nil, {"/"}, {"/", base}, {base, "/etc", "/dev"}} {
			s.opts.HostPaths = allowed
			source := path
			if !strings.HasPrefix(path, "/") {
				source = filepath.Join(base, path)
			}
			pod := podOf(spec.Volume{Name: "h", HostPath: &spec.HostPathVolume{Path: source}})
			container := &spec.Container{VolumeMounts: []spec.VolumeMount{{Name: "h", MountPath: "/h"}}}
			clean(t, s, pod.UID)
			_, err := s.Mounts(t.Context(), pod, Request{Run: "run", Container: container})
			if got := err != nil && strings.Contains(err.Error(), "only privileged containers"); got != refused &&
				(source != "/" || err == nil) {
				t.Errorf("hostPath %s, allowed %v: %v, want refused: %v", path, allowed, err, refused)
			}
			container.SecurityContext = &spec.SecurityContext{Privileged: new(true)}
			if _, err := s.Mounts(t.Context(), pod, Request{Run: "run", Container: container}); err != nil &&
				strings.Contains(err.Error(), "only privileged containers") {
				t.Errorf("hostPath %s, allowed %v: refused to a privileged container: %v", path, allowed, err)
			}
			if err := s.Release(t.Context(), pod.UID, "run"); err != nil {
				t.Error(err)
			}
		}
	}
}
