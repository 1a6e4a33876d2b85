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

// Containers can write to the pod's files of /etc. A sparse file can be larger than memory.
func TestHugeHosts(t *testing.T) {
	p := newPod(newTestHost(t), &spec.Pod{})
	p.output(sh("truncate -s 1024G /etc/hosts"))
	if got := p.output(sh("head -n 1 /etc/hosts")); got != "# Kubernetes-managed hosts file.\n" {
		t.Errorf("first line of /etc/hosts in the next container: %q", got)
	}
}

// The pod's files of /etc must not be in /run, because containers could fill it. /run is in memory and contains the sockets of the engine.
func TestEtcIsOnDisk(t *testing.T) {
	p := newPod(newTestHost(t), &spec.Pod{})
	got := p.output(sh("grep -E ' /etc/(hosts|hostname|resolv.conf) ' /proc/self/mountinfo"))
	if n := strings.Count(got, p.opts.StateDir); n != 3 {
		t.Errorf("the files of /etc are mounted from\n%swant %s", got, p.opts.StateDir)
	}
}

// /etc/passwd of an image may not be a regular file. Opening a FIFO would block, and opening a device has side effects.
func TestPasswdNotRegularFile(t *testing.T) {
	m := newTestHost(t)
	for _, test := range []struct {
		name   string
		create func(path string) error
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
			if err := test.create(passwd); err != nil {
				t.Fatal(err)
			}
			_, err = p.start(sh("true"))
			f, _ := errors.AsType[lifecycle.Failure](err)
			if f.Kind != lifecycle.FailureNotCreated || !strings.Contains(f.Message, "/etc/passwd") {
				t.Errorf("got %#v, want an error with /etc/passwd", err)
			}
			if err := os.Rename(passwd+".true", passwd); err != nil {
				t.Fatal(err)
			}
		})
	}
}
