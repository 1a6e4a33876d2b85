//go:build e2e

package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
)

// crashing is a script whose process exits with code 1 on SIGUSR1.
const crashing = "trap 'exit 1' USR1; trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done"

// TestStateDiskReadOnly: while the disk of the state is read-only, containers keep running, probes continue, and exits are seen. States
// that are not saved are reported. A container that exits starts again when the disk is writable. Then states are saved, and what could
// not be removed is removed.
func TestStateDiskReadOnly(t *testing.T) {
	f := newFixture(t)
	f.Ext4Disk()
	f.MustRun("get")
	gate := f.gatedPod("probed")
	for _, name := range []string{"stays", "stopped", "deleted"} {
		f.MustCreate(name, "terminationGracePeriodSeconds = 1\n"+container("c", idle))
	}
	f.MustCreate("crashes",
		"terminationGracePeriodSeconds = 1\nrestartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }\n"+container("c", crashing))
	f.awaitReady("probed", "c")
	was := slices.Concat(f.running("probed"), f.running("stays"), f.running("stopped"), f.running("deleted"))
	f.running("crashes")

	writable := f.ReadOnlyDisk()
	f.usr1("exit 1")
	f.Until("crashes", "waiting, with a state that is not saved", func(p *api.Pod) bool {
		s := p.Status.ContainerStatuses[0]
		return s.State.Waiting != nil && s.State.Waiting.Reason == "CreateContainerError" &&
			strings.Contains(s.State.Waiting.Message, unix.EROFS.Error()) &&
			s.LastState.Terminated != nil && s.LastState.Terminated.ExitCode == 1 && strings.Contains(unsaved(p), unix.EROFS.Error())
	})
	f.checkReported("crashes", unix.EROFS.Error())
	for _, ready := range []string{"", "c"} {
		gate(ready != "")
		f.awaitReady("probed", ready)
	}
	if is := slices.Concat(f.running("probed"), f.running("stays"), f.running("stopped"), f.running("deleted")); !slices.Equal(is, was) {
		t.Errorf("containers %v, were %v", is, was)
	}
	f.stopNotDurable("stopped")
	f.deleteNotDurable("deleted")

	writable()
	f.Until("crashes", "restarted and saved", func(p *api.Pod) bool {
		s := p.Status.ContainerStatuses[0]
		return s.State.Running != nil && s.RestartCount == 1 && unsaved(p) == ""
	})
	f.Until("stopped", "at rest and saved", func(p *api.Pod) bool { return p.Status.AtRest && unsaved(p) == "" })
	f.awaitDeleted("deleted")
	f.checkDurable("crashes", "probed", "stays", "stopped")
	f.MustRun("delete", "--all", "--force")
}

// TestStateFileSystemAborts: a file system that turns itself read-only after an error, as most root file systems do, is reported, and pods
// can be stopped. After a reboot, pods run from the older state, and can be deleted.
func TestStateFileSystemAborts(t *testing.T) {
	f := newFixture(t)
	f.Ext4Disk()
	f.mount("-o", "remount,errors=remount-ro", f.StateDir())
	f.MustRun("get")
	for _, name := range []string{"stays", "stopped", "deleted"} {
		f.MustCreate(name, "terminationGracePeriodSeconds = 1\n"+container("c", idle))
	}
	f.MustCreate("crashes", "terminationGracePeriodSeconds = 1\n"+container("c", crashing))
	was := slices.Concat(f.running("stays"), f.running("stopped"), f.running("deleted"))
	f.running("crashes")

	f.abortFileSystem()
	f.usr1("exit 1")
	f.Until("crashes", "exited, with a state that is not saved", func(p *api.Pod) bool {
		s := p.Status.ContainerStatuses[0]
		return s.LastState.Terminated != nil && s.LastState.Terminated.ExitCode == 1 && strings.Contains(unsaved(p), unix.EROFS.Error())
	})
	f.checkReported("crashes", unix.EROFS.Error())
	if is := slices.Concat(f.running("stays"), f.running("stopped"), f.running("deleted")); !slices.Equal(is, was) {
		t.Errorf("containers %v, were %v", is, was)
	}
	f.stopNotDurable("stopped")
	f.deleteNotDurable("deleted")

	f.Check(f.CutPower(f.Ctx()))
	f.mount("-o", "loop", filepath.Join(f.Dir, "disk"), f.StateDir())
	for _, name := range []string{"stays", "stopped", "deleted", "crashes"} {
		f.running(name)
		f.Until(name, "saved", func(p *api.Pod) bool { return unsaved(p) == "" })
	}
	f.MustRun("delete", "--all", "--force")
}

// TestDaemonOnReadOnlyDisk: a daemon that cannot start because the disk of its state is read-only says so, and containers keep running.
func TestDaemonOnReadOnlyDisk(t *testing.T) {
	f := newFixture(t)
	f.Ext4Disk()
	f.MustRun("get")
	f.MustCreate("p", "terminationGracePeriodSeconds = 1\n"+container("c", idle))
	was := f.running("p")
	writable := f.ReadOnlyDisk()
	f.MustKillDaemon()
	both, err := f.Command(f.Ctx(), "get").CombinedOutput()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if out := string(both); !failed || exit.ExitCode() != 4 ||
		!strings.Contains(out, "read-only file system\nhint: mount "+f.StateDir()+", ") {
		t.Errorf("podstead get: %v, want exit code 4 and the cause:\n%s", err, out)
	}
	writable()
	if is := f.running("p"); !slices.Equal(is, was) {
		t.Errorf("containers %v, were %v", is, was)
	}
	f.MustRun("delete", "p", "--force")
}

// TestRunOnReadOnlyDisk: podstead run exits after Ctrl-C although its pod cannot be removed from a read-only disk, and says so. The daemon
// removes the pod when the disk is writable.
func TestRunOnReadOnlyDisk(t *testing.T) {
	for code, script := range []string{idle, "trap 'exit 1' TERM; echo up; while :; do sleep 0.1; done"} {
		t.Run(fmt.Sprint("exit ", code), func(t *testing.T) {
			f := newFixture(t)
			f.Ext4Disk()
			f.MustRun("get")
			r := f.start(f.PodFile("p", "terminationGracePeriodSeconds = 1\n"+container("c", script)))
			r.line("c", 1)
			writable := f.ReadOnlyDisk()
			r.interrupt()
			if got := r.exitCode(); got != 1 {
				t.Errorf("exit code %d, want 1", got)
			}
			r.event(api.EventStateNotDurable)
			if out := r.errors(); !strings.Contains(out, `delete pod "p": its containers are stopped, but it could not be removed: `) ||
				!strings.Contains(out, "hint: repair the disk: ") {
				t.Errorf("podstead run printed no error with what is left:\n%s", out)
			}
			writable()
			f.awaitDeleted("p")
		})
	}
}

// mount runs mount.
func (f *fixture) mount(args ...string) {
	f.Helper()
	if out, err := exec.CommandContext(f.Ctx(), "mount", args...).CombinedOutput(); err != nil {
		f.Fatalf("mount %q: %v: %s", args, err, out)
	}
}

// abortFileSystem makes ext4 act as after an error on the disk of the state.
func (f *fixture) abortFileSystem() {
	f.Helper()
	var st unix.Stat_t
	f.Check(unix.Stat(f.StateDir(), &st))
	device, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)))
	f.Check(err)
	f.Check(os.WriteFile(filepath.Join("/sys/fs/ext4", filepath.Base(device), "trigger_fs_error"), []byte("1"), 0))
}

// gatedPod creates a pod whose container is ready while a file exists, and returns a function that creates or removes the file.
func (f *fixture) gatedPod(name string) (gate func(open bool)) {
	f.Helper()
	dir := filepath.Join(f.Dir, "gate")
	f.Check(os.Mkdir(dir, 0o755))
	gate = func(open bool) {
		f.Helper()
		if open {
			f.Check(os.WriteFile(filepath.Join(dir, "open"), nil, 0o600))
		} else {
			f.Check(os.Remove(filepath.Join(dir, "open")))
		}
	}
	gate(true)
	f.MustCreate(name,
		fmt.Sprintf("terminationGracePeriodSeconds = 1\n[[volumes]]\nname = \"gate\"\nhostPath.path = %q\n", dir)+watched("c",
			"volumeMounts = [{ name = \"gate\", mountPath = \"/gate\" }]",
			"readinessProbe = { exec.command = [\"test\", \"-e\", \"/gate/open\"], periodSeconds = 1, failureThreshold = 1, "+
				"timeoutSeconds = 30 }"))
	return gate
}

// unsaved returns why the state of a pod is not saved; empty: it is.
func unsaved(p *api.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == api.StateNotDurable && c.Status == "True" {
			return c.Message
		}
	}
	return ""
}

// checkReported checks that commands report that the state of a pod is not saved, with the cause.
func (f *fixture) checkReported(name, cause string) {
	f.Helper()
	if p := f.get(name); !strings.Contains(unsaved(&p), cause) {
		f.Errorf("conditions %+v, want %s with %q", p.Status.Conditions, api.StateNotDurable, cause)
	}
	if out, _ := f.Podstead(f.Ctx(), "why", name); !strings.Contains(out, "Its state could not be saved") || !strings.Contains(out, cause) {
		f.Errorf("podstead why does not report the state that is not saved:\n%s", out)
	}
	if out, _ := f.Podstead(f.Ctx(), "doctor"); !strings.Contains(out, name+": ") || !strings.Contains(out, cause) {
		f.Errorf("podstead doctor does not report the state that is not saved:\n%s", out)
	}
}

// stopNotDurable stops a pod whose state cannot be saved: the command warns.
func (f *fixture) stopNotDurable(name string) {
	f.Helper()
	both, err := f.Command(f.Ctx(), "stop", name).CombinedOutput()
	if out := string(both); err != nil || !strings.HasPrefix(out, "pod/"+name+" stopped\n") ||
		!strings.Contains(out, "its state could not be saved; if the daemon restarts, the pod may start again: ") {
		f.Errorf("podstead stop: %v, want a warning:\n%s", err, out)
	}
	if p := f.get(name); p.Status.Phase != api.PhaseSucceeded && p.Status.Phase != api.PhaseFailed {
		f.Errorf("phase of the stopped pod: %s", p.Status.Phase)
	}
}

// deleteNotDurable deletes a pod that cannot be removed: the command fails and says so.
func (f *fixture) deleteNotDurable(name string) {
	f.Helper()
	both, err := f.Command(f.Ctx(), "delete", name).CombinedOutput()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if out := string(both); !failed || exit.ExitCode() != 1 ||
		!strings.Contains(out, fmt.Sprintf("delete pod %q: its containers are stopped, but it could not be removed: ", name)) ||
		!strings.Contains(out, "hint: repair the disk: the daemon removes the pod") {
		f.Errorf("podstead delete: %v, want an error with what is left:\n%s", err, out)
	}
}

// awaitDeleted waits until a pod does not exist.
func (f *fixture) awaitDeleted(name string) {
	f.Helper()
	f.Await(func() error {
		list, err := f.Client().Pods(f.Ctx())
		if slices.ContainsFunc(list.Items, func(p api.Pod) bool { return p.Metadata.Name == name }) {
			err = fmt.Errorf("pod %s still exists", name)
		}
		return err
	})
}

// checkDurable checks that exactly these pods exist and are unchanged after the daemon is killed.
func (f *fixture) checkDurable(names ...string) {
	f.Helper()
	status := func() (list []string) {
		out := f.MustRun("get", "--no-headers")
		for line := range strings.Lines(out) {
			list = append(list, strings.Join(strings.Fields(line)[:4], " ")) // without the age
		}
		return list
	}
	was := status()
	if len(was) != len(names) {
		f.Errorf("pods %q, want %q", was, names)
	}
	f.MustKillDaemon()
	if is := status(); !slices.Equal(is, was) {
		f.Errorf("pods after a restart of the daemon: %q, were %q", is, was)
	}
}
