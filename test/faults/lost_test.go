//go:build e2e

package faults

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/test/internal/rig"
)

// lossTable has what is lost: paths in the directory of the rig. Mounts at them and below are unmounted.
var lossTable = []struct {
	name    string
	unmount bool // and not removed
	keeps   bool // containers whose shim or monitor runs
	cgroups bool // of the pod; those with a process cannot be removed
	paths   []string
}{
	{name: "directory for runtime state", paths: []string{"r/*"}},
	{name: "meta.db", keeps: true, paths: []string{engineFiles["meta.db"]}},
	{name: "meta.db and its copy", paths: []string{engineFiles["meta.db"], "r/engine/records.db"}},
	{name: "records of layers", paths: []string{engineFiles["metadata.db"]}},
	{name: "state of the OCI runtime", paths: []string{"r/engine/runc"}},
	{name: "bundles", keeps: true, paths: []string{"r/engine/bundles"}},
	{name: "namespaces", keeps: true, paths: []string{"r/ns/*"}},
	{name: "cgroups", keeps: true, cgroups: true},
	{name: "mounts", unmount: true, keeps: true, paths: []string{"r/*"}},
	{name: "state of the pods", keeps: true, paths: []string{"lib/pods/*"}},
	{name: "all of the engine", paths: []string{"lib/engine/*"}},
	{name: "directory for runtime state and meta.db", paths: []string{"r/*", engineFiles["meta.db"]}},
	{name: "directory for runtime state and state of the pods", paths: []string{"r/*", "lib/pods/*"}},
	{name: "everything", paths: []string{"r/*", "lib/*"}},
}

// TestLostState: whatever is lost, and whatever keeps running, the pods of the pods directory are ready again, each process runs once,
// and nothing of the lost runs is left. docs/design/recovery.md has the table. The log has the longest time until a pod was ready, which is
// no limit: it depends on the load of the host.
func TestLostState(t *testing.T) {
	var longest time.Duration
	defer func() {
		t.Logf("longest time from a loss until the pod was ready: %v", longest.Round(100*time.Millisecond))
	}()
	for _, living := range []string{"nothing", "containers", "holders", "daemon"} {
		t.Run(living, func(t *testing.T) {
			d := newPodsDir(t)
			// Each loss kills the container.
			d.write("p", "restartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }\n"+d.text("p", "one"))
			d.until(map[string]string{"p": "one"})
			for _, l := range lossTable {
				t.Run(strings.ReplaceAll(l.name, " ", "-"), func(t *testing.T) {
					part := &podsDir{&fixture{d.Of(t)}, d.path}
					daemon, err := part.DaemonPID(part.Ctx())
					part.Check(err)
					was, uid := part.process("marker=one"), part.get("p").Metadata.UID
					if l.name == "everything" { // no file defines this pod
						_, err := part.Create(part.Ctx(), "unknown", part.text("unknown", "unknown"))
						part.Check(err)
						part.process("marker=unknown")
					}
					start := time.Now()
					part.endUpTo(living, daemon)
					if l.cgroups {
						part.loseCgroups(uid, living == "nothing")
					}
					for _, path := range l.paths {
						part.lose(path, l.unmount)
					}
					if living == "daemon" {
						part.endDaemon(daemon)
					}
					part.until(map[string]string{"p": "one"})
					if l.keeps && living != "nothing" && (living != "containers" || part.Monitor != "") {
						if now := part.process("marker=one"); now != was {
							part.Errorf("the container was not kept:\n%s", part.MustRun("events", "p"))
						}
					} else { // a daemon that has just started reports what was stored until it has asked the engine
						part.ends(was)
						part.until(map[string]string{"p": "one"})
						part.process("marker=one")
					}
					longest = max(longest, time.Since(start))
					part.gone("marker=unknown")
					part.forgetLogs()
				})
			}
		})
	}
}

// endUpTo kills the daemon, the shims or the monitor, and the containers, except for what lives.
func (d *podsDir) endUpTo(living string, daemon int) {
	d.Helper()
	if living == "daemon" {
		return
	}
	d.Check(rig.Kill(d.Ctx(), daemon))
	if living == "holders" {
		return
	}
	d.killHolders()
	if living == "nothing" {
		d.kill("marker=")
	}
}

// endDaemon waits until a daemon without its directories exits, and kills it after another loss.
func (d *podsDir) endDaemon(pid int) {
	d.Helper()
	if exists(filepath.Join(d.RunDir(), "engine")) && exists(filepath.Join(d.StateDir(), "engine", "lock")) {
		d.Check(rig.Kill(d.Ctx(), pid))
		return
	}
	d.ends(pid)
}

// kill kills the processes with part in their command line until none is left.
func (d *podsDir) kill(part string) {
	d.Helper()
	d.Await(func() error {
		pids, err := d.processes(part)
		for _, pid := range pids {
			err = fmt.Errorf("process %d is running", pid)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		return err
	})
}

// gone waits until no process has part in its command line.
func (d *podsDir) gone(part string) {
	d.Helper()
	d.Await(func() error {
		pids, err := d.processes(part)
		if err == nil && len(pids) > 0 {
			err = fmt.Errorf("processes %v are running", pids)
		}
		return err
	})
}

// lose unmounts, and removes, files of the rig.
func (d *podsDir) lose(pattern string, unmount bool) {
	d.Helper()
	files, err := filepath.Glob(filepath.Join(d.Dir, pattern))
	d.Check(err)
	text, err := os.ReadFile("/proc/self/mountinfo")
	d.Check(err)
	for _, line := range slices.Backward(slices.Collect(strings.Lines(string(text)))) {
		point := strings.Fields(line)[4]
		for _, file := range files {
			if point == file || strings.HasPrefix(point, file+"/") {
				_ = unix.Unmount(point, unix.MNT_DETACH) // it may be a copy
			}
		}
	}
	for _, file := range files {
		if !unmount {
			d.Check(os.RemoveAll(file))
		}
	}
}

// loseCgroups removes the cgroups of a pod that have no process, or all.
func (d *podsDir) loseCgroups(uid string, all bool) {
	d.Helper()
	d.Await(func() error {
		dirs, err := cgroup.Dirs("/podstead/" + uid)
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			var tree []string
			_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
				if err == nil && e.IsDir() {
					tree = append(tree, path)
				}
				return nil
			})
			for _, each := range slices.Backward(tree) {
				if err := unix.Rmdir(each); err != nil && all {
					return fmt.Errorf("remove %s: %w", each, err)
				}
			}
		}
		return nil
	})
}

// forgetLogs removes the logs of pods that no record knows any more. They stay until the limit of all logs.
func (d *podsDir) forgetLogs() {
	d.Helper()
	uid := d.get("p").Metadata.UID
	logs, err := filepath.Glob(filepath.Join(d.LogDir(), "*"))
	d.Check(err)
	for _, dir := range logs {
		if !strings.HasSuffix(dir, uid) {
			d.Check(os.RemoveAll(dir))
		}
	}
}

// TestStrays: processes and cgroups in the cgroup of a pod that are not of its containers do not keep it from being restarted or deleted,
// also frozen ones. They are killed and removed with it, which is one event.
func TestStrays(t *testing.T) {
	f := newFixture(t)
	f.create("web")
	for n, command := range [][]string{{"restart", "web", "--wait"}, {"delete", "web", "--force"}} {
		uid := f.get("web").Metadata.UID
		ended := f.stray(uid)
		f.MustRun(command...)
		if err := <-ended; err == nil || err.Error() != "signal: killed" {
			f.Errorf("%v: the process in the cgroup of the pod ended with %v", command, err)
		}
		events := f.MustRun("events", "web")
		const killed = "leftovers in the cgroup of the pod: processes sleep (PID "
		if got := strings.Count(events, killed); got != n+1 || !strings.Contains(events, "cgroups stray\n") {
			f.Errorf("%v: %d events of the cgroup, want %d:\n%s", command, got, n+1, events)
		}
		if dirs, err := cgroup.Dirs("/podstead/" + uid + "/stray"); err != nil || len(dirs) > 0 {
			f.Errorf("%v: %v is left (%v)", command, dirs, err)
		}
	}
	if _, err := f.Client().Pod(f.Ctx(), "web"); err == nil {
		f.Error("the pod was not deleted")
	} else if e, ok := errors.AsType[*api.Error](err); !ok || e.Status != 404 {
		f.Error(err)
	}
}

// stray starts a process in a cgroup in that of a pod, and freezes it.
func (f *fixture) stray(uid string) (ended <-chan error) {
	f.Helper()
	cmd := exec.CommandContext(f.Ctx(), "sleep", "100000")
	f.Check(cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	dirs, err := cgroup.Dirs("/podstead/" + uid)
	f.Check(err)
	for _, dir := range dirs {
		inner := filepath.Join(dir, "stray", "inner")
		f.Check(os.MkdirAll(inner, 0o755))
		// A new cgroup of cpuset can have no process.
		_ = os.WriteFile(filepath.Join(inner, "cgroup.procs"), fmt.Append(nil, cmd.Process.Pid), 0)
		for file, text := range map[string]string{"freezer.state": "FROZEN", "cgroup.freeze": "1"} {
			if path := filepath.Join(inner, file); exists(path) {
				f.Check(os.WriteFile(path, []byte(text), 0))
			}
		}
	}
	return done
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
