//go:build e2e

package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// silent mounts a file system that answers no request, and returns its directory. The function ends it: all requests fail then.
func (f *fixture) silent() (dir string, end func()) {
	f.Helper()
	dir = filepath.Join(f.Dir, "silent")
	f.Check(os.Mkdir(dir, 0o755))
	device, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	f.Check(err)
	end = sync.OnceFunc(func() { unix.Close(device) })
	f.Cleanup(func() {
		end()
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			f.Errorf("unmount %s: %v", dir, err)
		}
	})
	f.Check(unix.Mount("silent", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device)))
	return dir, end
}

// TestSilentFileSystem: pods use a host path on a file system that does not answer. Other pods start and stop, and the daemon answers. The
// pods are deleted when requests to the file system fail.
func TestSilentFileSystem(t *testing.T) {
	f := newFixture(t, options{})
	dir, end := f.silent()
	stuck := []string{"delete"}
	for n := range 6 {
		name := fmt.Sprint("stuck", n)
		stuck = append(stuck, name)
		f.undelayed("creation of "+name, func() {
			f.create(name, Play("c", "stay", "wait 1ms")+"volumeMounts = { v = \"/v\" }\n"+
				fmt.Sprintf("[[volumes]]\nname = \"v\"\nhostPath = { path = %q }\n", filepath.Join(dir, "file")))
		})
	}
	f.undelayed("start of another pod", func() {
		f.create("other", Play("c", "stay", "wait 1ms"))
		f.Until("other", "ready", isReady)
	})
	for _, command := range []string{"get", "why", "doctor"} {
		f.undelayed(command, func() {
			if out, err := f.Podstead(f.Ctx(), command); err != nil {
				f.Errorf("%s: %v\n%s", command, err, out)
			}
		})
	}
	f.undelayed("deletion of another pod", func() { f.MustRun("delete", "other") })
	for _, name := range stuck[1:] {
		p, err := f.Client().Pod(f.Ctx(), name)
		f.Check(err)
		if p.Status.Phase != "Pending" {
			f.Errorf("%s does not wait for its volume: %s", name, p.Status.Phase)
		}
	}
	end()
	f.undelayed("deletion", func() { f.MustRun(stuck...) })
}
