//go:build e2e

package runtime_test

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// roles returns the processes of the monitor and its keeper.
func (m *testHost) roles() (keeper, monitorPID int) {
	m.Helper()
	m.eventually("the monitor runs", func() (string, bool) {
		keeper, monitorPID = 0, 0
		for pid, cmdline := range m.processes() {
			switch args := strings.Split(cmdline, "\x00"); {
			case filepath.Base(args[0]) != monitor.Name || len(args) < 2:
			case args[1] == "keeper":
				keeper = pid
			case args[1] == "monitor":
				monitorPID = pid
			}
		}
		return fmt.Sprint(keeper, monitorPID), keeper != 0 && monitorPID != 0
	})
	return keeper, monitorPID
}

func (m *testHost) signal(s unix.Signal, pids ...int) {
	m.Helper()
	for _, pid := range pids {
		if err := unix.Kill(pid, s); err != nil {
			m.Fatal(err)
		}
	}
}

// reports receives the changes of the monitor.
func (m *testHost) reports() <-chan engine.MonitorReport {
	c := make(chan engine.MonitorReport, 16)
	m.OnMonitor(func(r engine.MonitorReport) { c <- r })
	return c
}

// wantReport receives a report.
func (m *testHost) wantReport(reports <-chan engine.MonitorReport, what string, is func(engine.MonitorReport) bool) {
	m.Helper()
	select {
	case r := <-reports:
		if !is(r) {
			m.Errorf("report %+v, want %s", r, what)
		}
	case <-time.After(deadline):
		m.Fatalf("no report: want %s", what)
	}
}

func isHung(r engine.MonitorReport) bool { return strings.Contains(r.Restarted, "did not respond") }

// wantRunning checks that a container has not been restarted, and can run commands.
func (p *pod) wantRunning(ref lifecycle.Ref, process string) {
	p.Helper()
	if found := p.running(); !slices.Contains(found, process) {
		p.Errorf("processes %q, want %q", found, process)
	}
	if code, out, err := p.exec(ref, time.Minute, "echo hello"); code != 0 || out != "hello\n" || err != nil {
		p.Errorf("a command: code %d, output %q, %v", code, out, err)
	}
	p.wantKnown()
}

// wantKnown checks that the pod has a sandbox and one container.
func (p *pod) wantKnown() {
	p.Helper()
	found, err := p.Inventory(p.ctx())
	if err != nil || len(found) == 0 || found[0].UID != uid || !found[0].Ready || len(found[0].Runs) != 1 {
		p.Errorf("inventory: %+v, %v; want one container", found, err)
	}
}

// Monitor and keeper are in a cgroup of their own, whose memory is not reclaimed for others, and the kernel does not OOM-kill them. Both
// have the name of their program, of which the kernel keeps 15 bytes. Containers, and the commands in them, have scores of their own.
func TestMonitorProtected(t *testing.T) {
	host, err := oci.DetectHost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	score := "-1000\n"
	if !host.Resource { // it cannot be lowered
		score = fmt.Sprintln(host.OOMScoreAdj)
	}
	p := newPod(newTestHost(t), &spec.Pod{})
	ref, err := p.start(sh("sleep 4324 & wait"))
	if err != nil {
		t.Fatal(err)
	}
	keeper, running := p.roles()
	for _, pid := range []int{keeper, running} {
		if got := p.proc(pid, "oom_score_adj"); got != score {
			t.Errorf("OOM score of process %d is %s, want %s", pid, got, score)
		}
		if got := p.proc(pid, "comm"); got != monitor.Name[:15]+"\n" {
			t.Errorf("name of process %d: %s", pid, got)
		}
		p.inMonitorCgroup(pid, keeper)
	}
	if got := p.proc(p.pidOf(ref), "oom_score_adj"); got != "1000\n" {
		t.Errorf("OOM score of the container: %s", got)
	}
	if code, out, err := p.exec(ref, deadline, "cat /proc/self/oom_score_adj"); code != 0 || out != "1000\n" || err != nil {
		t.Errorf("OOM score of a command: code %d, output %q, %v", code, out, err)
	}
	if err := p.RemovePod(p.ctx(), uid, p.Pod); err != nil {
		t.Error(err)
	}
}

// inMonitorCgroup waits until a process is in the cgroup of the monitor with this keeper. With systemd it is moved there.
func (m *testHost) inMonitorCgroup(pid, keeper int) {
	m.Helper()
	want := path.Join(m.opts.CgroupRoot, "monitor")
	if m.opts.CgroupDriver == podcgroup.Systemd {
		want = fmt.Sprintf("/podstead.slice/podstead-monitor-%d.scope", keeper)
	}
	m.eventually("the protected cgroup of the monitor", func() (string, bool) {
		dir, err := cgroup.ProcessDirOf(pid)
		if err != nil || !strings.HasSuffix(dir, want) {
			return fmt.Sprintf("%s, %v, want %s", dir, err, want), false
		}
		limit, err := os.ReadFile(filepath.Join(dir, "memory.min"))
		if errors.Is(err, os.ErrNotExist) && !strings.HasPrefix(m.proc(pid, "cgroup"), "0::") {
			return "", true // cgroup v1
		}
		return fmt.Sprintf("protection %q, %v", limit, err), string(limit) == fmt.Sprintln(podcgroup.MonitorMemory)
	})
}

// A monitor that hangs is replaced, whether a daemon runs or is started. Its keeper may hang too. Containers keep running.
func TestMonitorHung(t *testing.T) {
	p := newPod(newTestHost(t), &spec.Pod{})
	ref, err := p.start(sh("sleep 4321 & wait"))
	if err != nil {
		t.Fatal(err)
	}
	reports := p.reports()
	_, hung := p.roles()
	begun := time.Now()
	p.signal(unix.SIGSTOP, hung)
	p.wantReport(reports, "a monitor that did not respond", isHung)
	t.Logf("replaced after %v", time.Since(begun))
	p.wantRunning(ref, "sleep 4321")
	for _, both := range []bool{false, true} {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		keeper, hung := p.roles()
		p.signal(unix.SIGSTOP, hung)
		if both {
			p.signal(unix.SIGSTOP, keeper)
		}
		begun := time.Now()
		p.testHost.start()
		t.Logf("started after %v", time.Since(begun))
		p.wantReport(p.reports(), "a monitor that did not respond", isHung)
		p.wantRunning(ref, "sleep 4321")
	}
	if err := p.RemovePod(p.ctx(), uid, p.Pod); err != nil {
		t.Error(err)
	}
}

// A monitor that cannot be started does not prevent the start of a daemon. Its pods are not taken for lost, and are supervised as soon as
// it can be started.
func TestMonitorUnavailable(t *testing.T) {
	p := newPod(newTestHost(t), &spec.Pod{})
	ref, err := p.start(sh("sleep 4322 & wait"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	keeper, running := p.roles()
	p.signal(unix.SIGSTOP, keeper, running) // neither notices the death of the other one
	p.signal(unix.SIGKILL, keeper, running)
	program := p.opts.MonitorPath
	p.opts.MonitorPath = filepath.Join(p.dir, "monitor")
	if err := os.WriteFile(p.opts.MonitorPath, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.testHost.start()
	reports := p.reports()
	p.wantReport(reports, "that it is unavailable", func(r engine.MonitorReport) bool {
		return r.Unavailable != nil && strings.Contains(r.Unavailable.Error(), p.opts.MonitorPath)
	})
	p.wantKnown()
	watched, exited := make(chan bool, 10), make(chan lifecycle.Exit, 1)
	go func() { _ = p.WatchShim(p.ctx(), uid, 1, func(responds bool) { watched <- responds }); close(watched) }()
	go func() { exit, _, _ := p.WaitContainer(p.ctx(), uid, ref); exited <- exit }()
	if responds := <-watched; responds {
		t.Error("the pod is supervised")
	}
	_, err = p.StartSandbox(p.ctx(), "b"+uid[1:], &spec.Pod{Name: "other"}, lifecycle.StartSandbox{Sandbox: 1, Round: 1})
	if f, _ := errors.AsType[lifecycle.Failure](err); f.Kind != lifecycle.FailureUnavailable {
		t.Errorf("start of another pod: %v", err)
	}
	select {
	case exit := <-exited:
		t.Errorf("the container is lost: %+v", exit)
	default:
	}
	if err := errors.Join(os.Remove(p.opts.MonitorPath), os.Symlink(program, p.opts.MonitorPath)); err != nil {
		t.Fatal(err)
	}
	p.wantReport(reports, "that it is available", func(r engine.MonitorReport) bool { return r.Available })
	for range watched { // until it is supervised
		t.Error("a shim is watched that does not exist")
	}
	p.wantRunning(ref, "sleep 4322")
	if err := p.KillContainer(p.ctx(), uid, ref); err != nil {
		t.Error(err)
	}
	if exit := <-exited; exit.Code != 137 {
		t.Errorf("exit %+v, want code 137", exit)
	}
	for _, id := range []string{uid, "b" + uid[1:]} {
		if err := p.RemovePod(p.ctx(), id, p.Pod); err != nil {
			t.Error(err)
		}
	}
}
