//go:build e2e

package faults

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/supervisor/event"
)

// TestDiskFull: state that cannot be written is reported, does not prevent a pod from stopping, and is written when there is space
// again.
func TestDiskFull(t *testing.T) {
	f := newFixture(t)
	fill, release := f.smallDisk()
	file := f.PodFile("p", "terminationGracePeriodSeconds = 1\n"+container("c", "trap 'exit 1' USR1; trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done"))
	r := f.start(file)
	r.line("c", 1)
	fill(0)
	if err := unix.Kill(f.process("trap"), unix.SIGUSR1); err != nil { // an exit changes the state
		t.Fatal(err)
	}
	r.event(event.StateNotDurable)
	r.event(event.ContainerFailed)
	release()
	r.line("c", 2) // it restarted
	r.event(event.StateDurable)
	fill(0)
	r.interrupt()
	if code := r.exitCode(); code != 0 {
		t.Errorf("exit code %d of a stop on a full disk", code)
	}
	release()
}

// TestDiskFullForImage: a pull fails with the cause if the image does not fit, and succeeds when there is space.
func TestDiskFullForImage(t *testing.T) {
	f := newFixture(t)
	fill, release := f.smallDisk()
	f.MustRun("get")
	fill(512 << 10)
	r := f.start(f.PodFile("p", "restartPolicy = \"Never\"\n"+container("c", "echo up")))
	failed := r.event(event.ImagePullFailed)
	if !strings.Contains(failed.Message, "no space left on device") {
		t.Errorf("event %q, want the cause", failed.Message)
	}
	release()
	if code := r.exitCode(); code != 0 {
		t.Errorf("exit code %d when there is space again", code)
	}
}

// smallDisk mounts a small disk for the rig's state. It returns functions that fill it, except for some bytes, and that free the space.
func (f *fixture) smallDisk() (fill func(free int64), release func()) {
	f.Helper()
	f.SmallDisk("size=32m")
	ballast := filepath.Join(f.StateDir(), "ballast")
	fill = func(free int64) {
		file, err := os.Create(ballast)
		f.Check(err)
		defer file.Close()
		for block := make([]byte, 4096); err == nil; {
			_, err = file.Write(block)
		}
		size, err := file.Seek(0, io.SeekCurrent)
		if err == nil {
			err = file.Truncate(max(0, size-free))
		}
		f.Check(err)
	}
	return fill, func() {
		f.Check(os.Remove(ballast))
	}
}
