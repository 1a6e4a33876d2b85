//go:build e2e

package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/rig"
)

// Of linux/ext4.h, which x/sys does not have.
const (
	ext4Shutdown     = 0x8004587d // EXT4_IOC_SHUTDOWN
	shutdownNoFlush  = 2          // EXT4_GOING_FLAGS_NOLOGFLUSH: as when the device fails
	deviceImageBytes = 16 << 20
)

// TestVolumeDeviceFails: a pod with a volume whose file system shuts down, as after errors of its device, fails with that reason. Other
// pods keep running, also one with a volume on a device that works. The pod can be deleted.
func TestVolumeDeviceFails(t *testing.T) {
	f := newFixture(t)
	dead, works := f.device("dead"), f.device("works")
	f.MustRun("get")
	volume := func(dir string) string {
		return fmt.Sprintf("terminationGracePeriodSeconds = 1\n[[volumes]]\nname = \"data\"\nhostPath.path = %q\n", dir) +
			container("c", "trap 'exit 0' TERM; echo up >/data/file; while :; do sleep 0.1; done") +
			"volumeMounts = [{ name = \"data\", mountPath = \"/data\" }]\n"
	}
	f.MustCreate("dead", volume(dead))
	f.MustCreate("works", volume(works))
	f.MustCreate("other", "terminationGracePeriodSeconds = 1\n"+container("c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"))
	f.running("dead")
	was := slices.Concat(f.running("works"), f.running("other"))
	f.failDevice(dead)
	p := f.Until("dead", "failed", func(p *api.Pod) bool { return p.Status.Phase == api.PhaseFailed })
	want := fmt.Sprintf("The device of volume %q failed: %s: input/output error. ", "data", dead)
	if p.Status.Reason != api.ReasonEvicted || p.Status.Message != want {
		t.Errorf("reason %s, message %q, want %s, %q", p.Status.Reason, p.Status.Message, api.ReasonEvicted, want)
	}
	out, _ := f.Podstead(f.Ctx(), "why", "dead") // its exit code says that the pod is not healthy
	if !strings.Contains(out, "device of volume") {
		t.Errorf("podstead why does not name the device:\n%s", out)
	}
	f.MustRun("delete", "dead")
	if is := slices.Concat(f.running("works"), f.running("other")); !slices.Equal(is, was) {
		t.Errorf("containers of the other pods %v, were %v", is, was)
	}
	f.MustRun("delete", "--all", "--force")
}

// TestStateDeviceFails: if the disk of the state fails, running containers keep running, exits are seen, and states that are not saved are
// reported. The commands stop and delete stop containers, and return with a warning and an error.
func TestStateDeviceFails(t *testing.T) {
	f := &fixture{rig.NewFixture(t, deadline, "busybox")} // nothing can be removed from the disk, so there are leftovers
	f.Ext4Disk()
	f.Cleanup(func() { f.Check(unix.Unmount(f.StateDir(), unix.MNT_DETACH)) })
	f.MustRun("get")
	// starts no program, which could not be read
	script := "mkfifo /tmp/p; exec 3<>/tmp/p; trap 'exit 0' TERM; echo up; while :; do read -t 1 line <&3; done"
	f.MustCreate("stays", "terminationGracePeriodSeconds = 1\n"+container("c", script))
	f.MustCreate("exits", "restartPolicy = \"Never\"\n"+container("c", "exec sleep 100000"))
	was := f.running("stays")
	f.running("exits")
	sleep := f.process("sleep") // its program could not be read from the failed disk
	f.Await(func() error {
		if out, err := f.Podstead(f.Ctx(), "logs", "stays"); err != nil || out == "" {
			return fmt.Errorf("logs of the pod %q: %w", out, err)
		}
		return nil
	})
	f.failDevice(f.StateDir())
	f.Check(unix.Kill(sleep, unix.SIGKILL))
	f.Until("exits", "failed, with a state that is not saved", func(p *api.Pod) bool {
		return p.Status.Phase == api.PhaseFailed && slices.ContainsFunc(p.Status.Conditions, func(c api.Condition) bool {
			return c.Type == api.StateNotDurable && strings.Contains(c.Message, "input/output error")
		})
	})
	f.checkReported("exits", "input/output error")
	if is := f.running("stays"); !slices.Equal(is, was) {
		t.Errorf("containers %v, were %v", is, was)
	}
	f.stopNotDurable("stays")
	if pids, err := f.processes("mkfifo"); err != nil || len(pids) > 0 {
		t.Errorf("processes of the stopped pod: %v, %v", pids, err)
	}
	f.deleteNotDurable("exits")
}

// failDevice shuts the file system of a directory down, as it does itself after errors of its device.
func (f *fixture) failDevice(dir string) {
	f.Helper()
	opened, err := os.Open(dir)
	f.Check(err)
	f.Check(unix.IoctlSetPointerInt(int(opened.Fd()), ext4Shutdown, shutdownNoFlush))
	f.Check(opened.Close())
}

// device mounts an ext4 file system of its own in the rig's directory, and returns the directory.
func (f *fixture) device(name string) (dir string) {
	f.Helper()
	dir = filepath.Join(f.Dir, name)
	image := dir + ".img"
	f.Check(os.Mkdir(dir, 0o755))
	f.Check(os.WriteFile(image, nil, 0o600))
	f.Check(os.Truncate(image, deviceImageBytes))
	for _, args := range [][]string{{"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.CommandContext(f.Ctx(), args[0], args[1:]...).CombinedOutput(); err != nil {
			f.Fatalf("%q: %v: %s", args, err, out)
		}
	}
	f.Cleanup(func() { f.Check(unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}
