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

// TestDiskFull: what cannot be written is told, does not keep a pod from ending, and is made up for when there is room again.
func TestDiskFull(t *testing.T) {
	f := newFixture(t)
	fill, release := f.smallDisk()
	file := f.PodFile("p", "terminationGracePeriodSeconds = 1\n"+container("c", "trap 'exit 1' USR1; trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done"))
	r := f.start(file)
	r.line("c", 1)
	fill(0)
	if err := unix.Kill(f.process("trap"), unix.SIGUSR1); err != nil { // an exit is to be remembered
		t.Fatal(err)
	}
	r.event(event.StateNotDurable)
	r.event(event.ContainerFailed)
	release()
	r.line("c", 2) // it was started again, as it had to be
	r.event(event.StateDurable)
	fill(0)
	r.interrupt()
	if status := r.status(); status != 0 {
		t.Errorf("exit status %d of a stop on a full disk", status)
	}
	release()
}

// TestDiskFullForImage: an image that does not fit says so, and comes when there is room.
func TestDiskFullForImage(t *testing.T) {
	f := newFixture(t)
	fill, release := f.smallDisk()
	f.MustRun("get")
	fill(512 << 10)
	r := f.start(f.PodFile("p", "restartPolicy = \"Never\"\n"+container("c", "echo up")))
	failed := r.event(event.ImagePullFailed)
	if !strings.Contains(failed.Message, "no space left on device") {
		t.Errorf("the failure is told as %q", failed.Message)
	}
	release()
	if status := r.status(); status != 0 {
		t.Errorf("exit status %d when there is room again", status)
	}
}

// smallDisk gives the rig's state a disk of its own, and returns what fills it, but for some bytes, and
// what makes room again.
func (f *fixture) smallDisk() (fill func(room int64), release func()) {
	f.Helper()
	f.SmallDisk("size=32m")
	ballast := filepath.Join(f.StateDir(), "ballast")
	fill = func(room int64) {
		file, err := os.Create(ballast)
		f.Check(err)
		defer file.Close()
		for block := make([]byte, 4096); err == nil; {
			_, err = file.Write(block)
		}
		size, err := file.Seek(0, io.SeekCurrent)
		if err == nil {
			err = file.Truncate(max(0, size-room))
		}
		f.Check(err)
	}
	return fill, func() {
		f.Check(os.Remove(ballast))
	}
}
