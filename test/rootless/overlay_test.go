//go:build e2e

package rootless_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWithoutOverlay runs a pod of a user whose home directory is in an overlay, which the kernel does not accept as a layer of another
// one: the daemon finds that out when it starts, and copies the files of images.
func TestWithoutOverlay(t *testing.T) {
	p := newPerson(t)
	home := filepath.Join(p.dir, "home")
	layers := t.TempDir()
	upper, work := filepath.Join(layers, "upper"), filepath.Join(layers, "work")
	if err := errors.Join(os.Mkdir(upper, 0o755), os.Mkdir(work, 0o755), os.Chown(upper, p.uid, p.gid)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("overlay", home, "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", home, upper, work)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(home, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	p.apply(t)
	if out := p.run(t, "podstead", "exec", "web", "--", "cat", "/pages/index.html"); out != "hello\n" {
		t.Errorf("exec: %q", out)
	}
	p.run(t, "podstead", "exec", "web", "--", "sh", "-c", "echo written >/root/file; rm /bin/vi")
	out, _, _ := p.try(t, "podstead", "doctor") // other checks of this host may fail
	if !strings.Contains(out, "each container has a copy of the files of its image") || !strings.Contains(out, "ext4") {
		t.Errorf("doctor:\n%s", out)
	}
	kill(t, p.one(t, "podstead daemon"))
	out = p.run(t, "podstead", "exec", "web", "--", "sh", "-c", "cat /root/file; ls /bin/vi || echo removed")
	if out != "written\nremoved\n" {
		t.Errorf("after a restart of the daemon: %q", out)
	}
	p.run(t, "podstead", "stop", "web")
	if out := p.run(t, "podstead", "cp", "web:/root/file", "-"); !strings.Contains(out, "written") {
		t.Errorf("a file of a stopped container: %q", out)
	}
	p.run(t, "podstead", "start", "web")
	p.run(t, "podstead", "wait", "--for=condition=Ready", "--timeout=3m", "pod/web")
	if out := p.run(t, "podstead", "exec", "web", "--", "ls", "/bin/vi"); out != "/bin/vi\n" {
		t.Errorf("a new container has the changes of the last one: %q", out)
	}
	p.run(t, "podstead", "delete", "--force", "web")
	p.run(t, "podstead", "daemon", "stop")
	await(t, func() bool { return len(p.processes("")) == 0 })
	snapshots := filepath.Join(home, ".local/share/podstead/engine")
	if _, err := os.Stat(filepath.Join(snapshots, "overlay")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory of the try: %v", err)
	}
}
