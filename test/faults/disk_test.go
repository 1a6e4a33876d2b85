//go:build e2e

package faults

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
)

// TestDiskFull: state that cannot be written is reported, does not prevent a pod from stopping, and is written when there is space
// again.
func TestDiskFull(t *testing.T) {
	f := newFixture(t)
	fill, release := f.smallDisk()
	file := f.PodFile("p",
		"terminationGracePeriodSeconds = 1\n"+
			container("c", "trap 'exit 1' USR1; trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done"))
	r := f.start(file)
	r.line("c", 1)
	fill(0)
	f.usr1("trap") // an exit changes the state
	r.event(api.EventStateNotDurable)
	r.event(api.EventContainerFailed)
	release()
	r.line("c", 2) // it restarted
	r.event(api.EventStateDurable)
	fill(0)
	r.interrupt()
	if code := r.exitCode(); code != 0 {
		t.Errorf("exit code %d of a stop on a full disk", code)
	}
	release()
}

// TestDiskFullWithReserve: with the reserve, states are saved on a full disk, and containers restart. The reserve is complete again
// when there is space.
func TestDiskFullWithReserve(t *testing.T) {
	for name, disk := range map[string]func(*fixture){
		"tmpfs": func(f *fixture) { f.SmallDisk("size=32m") }, "ext4": func(f *fixture) { f.Ext4Disk() },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			disk(f)
			f.MustRun("get")
			f.MustCreate("p",
				"terminationGracePeriodSeconds = 1\nrestartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }\n"+
					container("c", "trap 'exit 1' USR1; trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done"))
			f.running("p")
			ballast := filepath.Join(f.StateDir(), "ballast")
			file, err := os.Create(ballast)
			f.Check(err)
			for block := make([]byte, 4096); err == nil; {
				_, err = file.Write(block)
			}
			f.Check(file.Close())
			for restarts := range 10 {
				f.usr1("trap")
				f.Until("p", "restarted", func(p *api.Pod) bool {
					s := p.Status.ContainerStatuses[0]
					return s.RestartCount > restarts && s.State.Running != nil
				})
			}
			if out := f.MustRun("events", "p"); strings.Contains(out, "could not be saved") {
				t.Errorf("states were not saved:\n%s", out)
			}
			f.MustRun("stop", "p")
			f.MustRun("delete", "p")
			f.Check(os.Remove(ballast))
			f.MustCreate("p", container("c", "exec sleep 100000"))
			f.Await(func() error {
				var st unix.Stat_t
				if err := unix.Stat(f.reserve(), &st); err != nil || st.Blocks*512 < 1<<20 {
					return fmt.Errorf("%d bytes are reserved: %w", st.Blocks*512, err)
				}
				return nil
			})
			f.MustRun("delete", "p", "--force")
		})
	}
}

// TestDiskFullForImage: a pull fails with the cause if the image does not fit, and succeeds when there is space.
func TestDiskFullForImage(t *testing.T) {
	f := newFixture(t)
	fill, release := f.smallDisk()
	f.MustRun("get")
	fill(512 << 10)
	r := f.start(f.PodFile("p", "restartPolicy = \"Never\"\n"+container("c", "echo up")))
	failed := r.event(api.EventImagePullFailed)
	if !strings.Contains(failed.Message, "no space left on device") && !strings.Contains(failed.Message, "half of the free disk space") {
		t.Errorf("event %q, want the cause", failed.Message)
	}
	release()
	if code := r.exitCode(); code != 0 {
		t.Errorf("exit code %d when there is space again", code)
	}
}

// TestDiskFrozen: on a disk that hangs, a container that exits is shown as exited, the hang is an event and a condition, and the daemon
// answers. The container restarts when the disk answers again.
func TestDiskFrozen(t *testing.T) {
	f := newFixture(t)
	freeze := f.Ext4Disk()
	f.Env = append(f.Env, "PODSTEAD_LOG_DIR="+filepath.Join(f.StateDir(), "log")) // /var/lib and /var/log are often one file system
	script := func(code int) string {
		return fmt.Sprintf("trap 'exit %d' USR1; trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done", code)
	}
	once := f.start(f.PodFile("once", "restartPolicy = \"Never\"\n"+container("a", script(4))))
	again := f.start(f.PodFile("again", "terminationGracePeriodSeconds = 1\n"+container("c", script(3))))
	once.line("a", 1)
	again.line("c", 1)
	thaw := freeze()
	for _, process := range []string{"exit 4", "exit 3"} {
		f.usr1(process)
	}
	for _, r := range []*run{once, again} {
		r.event(api.EventContainerFailed)
		r.event(api.EventStateNotDurable)
	}
	p := f.get("once")
	if s := p.Status.ContainerStatuses[0].State.Terminated; s == nil || s.ExitCode != 4 || p.Status.Phase != api.PhaseFailed {
		t.Errorf("status on the frozen disk: phase %s, %+v; want Failed with exit code 4", p.Status.Phase, p.Status.ContainerStatuses)
	}
	if !slices.ContainsFunc(p.Status.Conditions,
		func(c api.Condition) bool { return c.Type == api.StateNotDurable && c.Status == "True" }) {
		t.Errorf("conditions on the frozen disk: %+v, want %s", p.Status.Conditions, api.StateNotDurable)
	}
	if n := len(again.lines("c")); n != 1 {
		t.Errorf("%d starts while the disk was frozen, want 1", n)
	}
	thaw()
	again.event(api.EventStateDurable)
	again.line("c", 2)
	again.interrupt()
	if code := again.exitCode(); code != 0 {
		t.Errorf("exit code %d of a stop after the thaw", code)
	}
	if code := once.exitCode(); code != 1 {
		t.Errorf("exit code %d of podstead run for the pod that failed, want 1", code)
	}
}

// smallDisk mounts a small disk for the rig's state, for [fixture.ballast].
func (f *fixture) smallDisk() (fill func(free int64), release func()) {
	f.Helper()
	f.SmallDisk("size=32m")
	return f.ballast()
}

// reserve returns the path of the file whose space is used when the disk is full.
func (f *fixture) reserve() string { return filepath.Join(f.StateDir(), "reserve") }

// ballast returns functions that fill the disk of the rig's state with the reserve, except for some bytes, and that free the space. A
// daemon must have created the reserve.
func (f *fixture) ballast() (fill func(free int64), release func()) {
	ballast := filepath.Join(f.StateDir(), "ballast")
	fill = func(free int64) {
		f.Check(os.Truncate(f.reserve(), 0))
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
