//go:build e2e

package runtime_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// The pod's files of /etc are the containers' to write. A container can make one larger than any memory, for nothing.
func TestHugeHosts(t *testing.T) {
	p := newPod(newMachine(t), &spec.Pod{})
	p.output(sh("truncate -s 1024G /etc/hosts"))
	if got := p.output(sh("head -n 1 /etc/hosts")); got != "# Kubernetes-managed hosts file.\n" {
		t.Errorf("the next container finds %q in its hosts", got)
	}
}

// What containers write to the pod's files of /etc must not fill /run, which is memory and holds the engine's sockets.
func TestEtcIsOnDisk(t *testing.T) {
	p := newPod(newMachine(t), &spec.Pod{})
	got := p.output(sh("grep -E ' /etc/(hosts|hostname|resolv.conf) ' /proc/self/mountinfo"))
	if n := strings.Count(got, p.opts.StateDir); n != 3 {
		t.Errorf("the files of /etc are mounted from\n%swant %s", got, p.opts.StateDir)
	}
}

// An image may have anything in the place of the files that users are looked up in. To open a FIFO takes for ever, and
// to open a device does whatever the device does.
func TestUsersInNoFile(t *testing.T) {
	m := newMachine(t)
	for _, test := range []struct {
		name string
		make func(path string) error
	}{
		{"fifo", func(path string) error { return unix.Mkfifo(path, 0o644) }},
		{"link to a device", func(path string) error { return os.Symlink("/dev/zero", path) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPod(m, &spec.Pod{})
			layers, err := filepath.Glob(filepath.Join(p.opts.StateDir, "engine/io.containerd.snapshotter.v1.overlayfs/snapshots/*/fs/etc"))
			if err != nil || len(layers) != 1 {
				t.Fatalf("layers of the image: %v, %v", layers, err)
			}
			dev := filepath.Join(filepath.Dir(layers[0]), "dev")
			if err := os.MkdirAll(dev, 0o755); err != nil {
				t.Fatal(err)
			}
			zero := filepath.Join(dev, "zero")
			if err := unix.Mknod(zero, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil && !errors.Is(err, fs.ErrExist) {
				t.Fatal(err)
			}
			passwd := filepath.Join(layers[0], "passwd")
			if err := os.Rename(passwd, passwd+".true"); err != nil {
				t.Fatal(err)
			}
			if err := test.make(passwd); err != nil {
				t.Fatal(err)
			}
			_, err = p.start(sh("true"))
			f, _ := errors.AsType[lifecycle.Failure](err)
			if f.Kind != lifecycle.FailureNotCreated || !strings.Contains(f.Message, "/etc/passwd") {
				t.Errorf("got %#v, want a refusal that names /etc/passwd", err)
			}
			if err := os.Rename(passwd+".true", passwd); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A shim's program that is gone, in the middle of an upgrade, cannot clean up after a shim that dies then.
func TestShimKilledWithoutProgram(t *testing.T) {
	m := newMachine(t)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(m.opts.ShimPath)
	if err != nil {
		t.Fatal(err)
	}
	m.opts.ShimPath = filepath.Join(m.dir, filepath.Base(m.opts.ShimPath))
	if err := os.WriteFile(m.opts.ShimPath, program, 0o700); err != nil {
		t.Fatal(err)
	}
	m.start()
	p := newPod(m, &spec.Pod{})
	ref, err := p.start(sh("sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	shim := p.shimPid()
	if err := os.Remove(m.opts.ShimPath); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(shim, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit := p.wait(ref); exit.Code != 137 {
		t.Errorf("exit: %+v, want 137", exit)
	}
	if err := p.RemovePod(p.ctx(), uid, p.Pod); err != nil {
		t.Error(err)
	}
	// The upgrade goes on.
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.opts.ShimPath, program, 0o700); err != nil {
		t.Fatal(err)
	}
	m.start()
}
