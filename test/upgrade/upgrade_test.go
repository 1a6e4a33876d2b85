//go:build e2e

package upgrade

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/shim"
	"github.com/podstead/podstead/test/internal/rig"
)

// TestUpgradeAndDowngrade replaces the previous version by the current one and by itself again, while pods run. No container restarts, no
// probe flips, no line of a log is lost. The running monitor is replaced too, by a daemon that does so.
func TestUpgradeAndDowngrade(t *testing.T) {
	previous, s := buildPrevious(t), newServers(t)
	h := newHost(t, previous)
	h.MustRun("get")
	old, l := h.create("old-", s), logs{}
	h.check(l, old)
	before, events := h.look(old), h.events(old)

	h.upgrade(current(t))
	h.runsInstalledMonitor()
	h.probing(s)
	h.check(l, old)
	h.unchanged("after the upgrade", old, before, events)

	operated := h.create("new-", s) // pods of the current version, for the previous one
	all := append(old, operated...)
	h.check(l, all)
	before, events = h.look(all), h.events(all)
	h.MustRun("daemon", "stop")
	h.addFields(all)
	h.install(previous)
	h.MustRun("get")
	if replacesMonitor(t, previous) { // otherwise it uses the monitor of the current version
		h.runsInstalledMonitor()
	}
	h.probing(s)
	h.check(l, all)
	h.unchanged("after the downgrade", all, before, events)
	h.haveFields(all)
	h.operate("new-", l)

	h.upgrade(current(t))
	h.runsInstalledMonitor()
	h.check(l, old)
	h.operate("old-", l)
	h.MustRun("daemon", "stop")
}

// TestUpgradeToMonitor replaces the last version in which each pod has a shim by the current one, while pods run.
// The pods keep their shims, and new ones have none. Both kinds outlast another upgrade.
func TestUpgradeToMonitor(t *testing.T) {
	s := newServers(t)
	h := newHost(t, buildShims(t))
	h.MustRun("get")
	old, l := h.create("old-", s), logs{}
	h.check(l, old)
	before, events := h.look(old), h.events(old)
	h.upgrade(current(t))
	h.probing(s)
	h.check(l, old)
	h.unchanged("after the upgrade", old, before, events)

	all := append(old, h.create("new-", s)...)
	h.check(l, all)
	before, events = h.look(all), h.events(all)
	h.upgrade(current(t))
	h.probing(s)
	h.check(l, all)
	h.unchanged("after the second upgrade", all, before, events)
	h.operate("old-", l)
	h.operate("new-", l)
	h.MustRun("daemon", "stop")
}

// TestShimsKilled kills the shims of pods of an earlier version, while the daemon runs and while it does not. The program of the current
// version cleans up, and the pods start again with the monitor. A shim that is stopped keeps its pod, until that is deleted with force.
func TestShimsKilled(t *testing.T) {
	s := newServers(t)
	h := newHost(t, buildShims(t))
	h.MustRun("get")
	names, l := h.create("", s), logs{}
	h.upgrade(current(t))
	h.probing(s)
	h.check(l, names)
	shims := h.shims()
	if len(shims) == 0 { // see rig.UnpackShims
		h.MustRun("delete", "--all")
		h.MustRun("daemon", "stop")
		return
	}
	if len(shims) != len(names) {
		t.Fatalf("shims: %v, want one for each of %v", shims, names)
	}
	h.Check(rig.Kill(h.Ctx(), shims[0]))
	h.MustRun("daemon", "stop")
	h.Check(rig.Kill(h.Ctx(), shims[1]))
	stopped := shims[2]
	h.stop(stopped)
	h.MustRun("get")
	hung := h.hung(names)
	names = slices.DeleteFunc(names, func(name string) bool { return name == hung })
	for _, name := range names {
		h.Until(name, "ready after a restart of its containers", func(p *api.Pod) bool { return ready(p) && hasRestarts(p, 1) })
	}
	h.check(logs{}, names)

	h.Check(unix.Kill(stopped, unix.SIGCONT))
	h.Until(hung, "ready without a restart", func(p *api.Pod) bool { return ready(p) && hasRestarts(p, 0) && !unresponsive(p) })
	h.check(l, []string{hung})
	h.MustRun("daemon", "stop")
	h.stop(stopped)
	h.MustRun("get")
	if again := h.hung([]string{hung}); again != hung {
		t.Errorf("the pod %q does not respond, want %q", again, hung)
	}
	h.MustRun("delete", "--force", hung)
	if left := h.shims(); len(left) > 0 {
		t.Errorf("shims %v run", left)
	}
	h.MustRun("delete", "--all")
	h.MustRun("daemon", "stop")
}

// stop stops a process with SIGSTOP.
func (h *host) stop(pid int) {
	h.Helper()
	h.Check(unix.Kill(pid, unix.SIGSTOP))
	h.Cleanup(func() { _ = unix.Kill(pid, unix.SIGCONT) }) // it may have exited
}

// hung waits for a pod whose shim does not respond, and returns its name. The engine has set its bundles aside.
func (h *host) hung(names []string) (name string) {
	h.Helper()
	h.Await(func() error {
		for _, name = range names {
			if p, err := h.Client().Pod(h.Ctx(), name); err != nil || unresponsive(&p) {
				return err
			}
		}
		return errors.New("the shims of all pods respond")
	})
	if aside := filepath.Join(h.RunDir(), "engine/unresponsive"); !exists(aside) {
		h.Errorf("%s does not exist", aside)
	}
	return name
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func unresponsive(p *api.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c api.Condition) bool { return c.Type == api.MonitorUnresponsive })
}

// hasRestarts reports whether all containers of a pod have restarted n times.
func hasRestarts(p *api.Pod, n int) bool {
	return !slices.ContainsFunc(p.Status.ContainerStatuses, func(c api.ContainerStatus) bool { return c.RestartCount != n })
}

// shims returns the process IDs of shims.
func (h *host) shims() (pids []int) {
	h.Helper()
	all, err := h.Holders()
	h.Check(err)
	for _, p := range all {
		if strings.Contains(p.Command, shim.Name) {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// TestDowngradeToShims replaces the current version by the last one in which each pod has a shim. Its daemon does not start while pods of
// the monitor exist, which keep running. Pods that were stopped before, as docs/howto/upgrade.md describes, start again with shims.
func TestDowngradeToShims(t *testing.T) {
	shims, s := buildShims(t), newServers(t)
	h := newHost(t, current(t))
	h.MustRun("get")
	names, l := h.create("", s), logs{}
	h.check(l, names)
	before, events := h.look(names), h.events(names)
	h.MustRun("daemon", "stop")
	h.install(shims)
	out, err := h.Podstead(h.Ctx(), "get")
	_, shallow := os.Stat(filepath.Join(shims, monitor.Name))
	if shallow != nil && (err == nil || !strings.Contains(err.Error(), "podstead-monitor is not installed")) {
		t.Errorf("get: %q, %v; want an error that the monitor is not installed", out, err)
	}
	h.upgrade(current(t))
	h.probing(s)
	h.check(l, names)
	h.unchanged("after a downgrade that was refused", names, before, events)

	h.MustRun("daemon", "stop", "--shutdown")
	h.install(shims)
	h.Await(func() error { // it fails once if it stops an idle monitor, in whose cgroup are those of other tests
		_, err := h.Podstead(h.Ctx(), "get")
		return err
	})
	for _, name := range names {
		p := h.Until(name, "ready", ready)
		for _, c := range p.Status.ContainerStatuses {
			if c.RestartCount != 1 {
				t.Errorf("restarts of %s/%s: %d, want 1", name, c.Name, c.RestartCount)
			}
		}
	}
	h.check(logs{}, names)
	h.MustRun("delete", "--all")
	h.MustRun("daemon", "stop")
}

// probing waits until the daemon has sent probes.
func (h *host) probing(s *servers) {
	h.Helper()
	sent := s.requests.Load()
	h.Await(func() error {
		if s.requests.Load() < sent+4 {
			return fmt.Errorf("%d probes", s.requests.Load()-sent)
		}
		return nil
	})
}

// addFields adds fields that no version knows to the state files, and to a file of the pods directory: what a later version may have
// written.
func (h *host) addFields(names []string) {
	h.Helper()
	for _, name := range names {
		path := filepath.Join(h.StateDir(), "pods", name+".json")
		var file map[string]any
		text, err := os.ReadFile(path)
		h.Check(err)
		h.Check(json.Unmarshal(text, &file))
		file["version"], file["minReader"] = file["version"].(float64)+1, file["version"]
		file["nextField"] = "of the file"
		file["facts"].(map[string]any)["nextField"] = "of the facts"
		file["pod"].(map[string]any)["nextField"] = "of the definition"
		text, err = json.Marshal(file)
		h.Check(err)
		h.Check(os.WriteFile(path, text, 0o600))
		if file := h.file(name); strings.HasSuffix(name, "filed") {
			text, err := os.ReadFile(file)
			h.Check(err)
			h.Check(os.WriteFile(file, append([]byte("nextField = true\n"), text...), 0o600))
		}
	}
}

// haveFields checks that the added fields are still there after the daemon has written the state files, and removes them from pod files.
func (h *host) haveFields(names []string) {
	h.Helper()
	for _, name := range names {
		h.Await(func() error { // written when the daemon has taken the pod over
			text, err := os.ReadFile(filepath.Join(h.StateDir(), "pods", name+".json"))
			if n := strings.Count(string(text), `"nextField"`); err == nil && (n != 3 || strings.Contains(string(text), `"minReader"`)) {
				err = fmt.Errorf("the state file of %s has %d of 3 fields of the later version:\n%.200s", name, n, text)
			}
			return err
		})
		if !strings.HasSuffix(name, "filed") {
			continue
		}
		h.Until(name, "reported as invalid", func(*api.Pod) bool {
			return strings.Contains(h.MustRun("events", name), "nextField")
		})
		fileText, err := os.ReadFile(h.file(name))
		h.Check(err)
		h.Check(os.WriteFile(h.file(name), []byte(strings.TrimPrefix(string(fileText), "nextField = true\n")), 0o600))
	}
}

// operate uses commands with pods whose shims or monitor have another version than the daemon.
func (h *host) operate(prefix string, l logs) {
	h.Helper()
	mixed, filed, probed := prefix+"mixed", prefix+"filed", prefix+"probed"
	if out := h.MustRun("exec", mixed, "-c", "main", "--", "sh", "-c", "echo said > /scratch/file; cat /scratch/file"); out != "said\n" {
		h.Errorf("exec: %q", out)
	}
	h.attach(mixed, "main")
	copied := filepath.Join(h.Dir, prefix+"copied")
	h.MustRun("cp", mixed+":/scratch/file", copied, "-c", "main")
	if text, err := os.ReadFile(copied); err != nil || string(text) != "said\n" {
		h.Errorf("copied file: %q, %v", text, err)
	}
	if out := h.MustRun("top", "containers", mixed); !strings.Contains(out, "sidecar") {
		h.Errorf("top:\n%s", out)
	}
	if out := h.MustRun("debug", mixed, "--image", busybox, "--", "echo", "ephemeral"); !strings.Contains(out, "ephemeral") {
		h.Errorf("debug: %q", out)
	}
	h.check(l, []string{mixed})

	h.MustRun("restart", mixed, "-c", "main", "--wait")
	if p := h.Until(mixed, "ready", ready); p.Status.ContainerStatuses[0].RestartCount != 1 {
		h.Errorf("restarts of %s: %+v", mixed, p.Status.ContainerStatuses)
	}
	changed := h.PodText(filed,
		"terminationGracePeriodSeconds = 2\n"+container("containers", "main", "env = [{ name = \"CHANGED\", value = \"yes\" }]\n"))
	path, err := h.WritePod(filed, changed)
	h.Check(err)
	h.MustRun("apply", path, "--wait")
	if out := h.MustRun("exec", filed, "--", "sh", "-c", "echo $CHANGED"); out != "yes\n" {
		h.Errorf("the changed definition: %q", out)
	}
	h.MustRun("stop", probed)
	h.MustRun("start", probed)
	h.Until(probed, "ready", ready)
	h.MustRun("delete", mixed, probed, filed)
}

// attach attaches to a container until two lines came.
func (h *host) attach(pod, container string) {
	h.Helper()
	ctx, cancel := context.WithCancel(h.Ctx())
	defer cancel()
	cmd := h.Command(ctx, "attach", pod, "-c", container)
	out, err := cmd.StdoutPipe()
	h.Check(err)
	h.Check(cmd.Start())
	lines := bufio.NewScanner(out)
	for range 2 {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), "line ") {
			h.Errorf("attach: %q, %v", lines.Text(), lines.Err())
		}
	}
	cancel()
	_ = cmd.Wait() // killed
}
