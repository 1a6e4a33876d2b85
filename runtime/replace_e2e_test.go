//go:build e2e

package runtime_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/spec"
)

// buildMonitor builds the monitor with a version, and returns the path of the program.
func (m *testHost) buildMonitor(version string) string {
	m.Helper()
	path := filepath.Join(m.dir, version, monitor.Name)
	build := exec.CommandContext(m.ctx(), "go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w -X main.version="+version,
		"-o", path, "github.com/podstead/podstead/cmd/podstead-monitor")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		m.Fatalf("build the monitor: %v: %s", err, out)
	}
	return path
}

// hello returns what the monitor is.
func (m *testHost) hello() monitor.Hello {
	m.Helper()
	c, err := monitor.Dial(m.ctx(), engine.MonitorDir(filepath.Join(m.opts.RunDir, "engine")))
	if err != nil {
		m.Fatal(err)
	}
	defer c.Close()
	hello, err := c.Hello(m.ctx())
	if err != nil {
		m.Fatal(err)
	}
	return hello
}

// restart starts the next daemon with a program of the monitor, and returns the report of the replacement.
func (p *pod) restart(program string) (r engine.MonitorReplacement) {
	p.Helper()
	if err := p.Close(); err != nil {
		p.Fatal(err)
	}
	p.opts.MonitorPath = program
	p.testHost.start()
	p.wantReport(p.reports(), "that the monitor was replaced, or not", func(m engine.MonitorReport) bool {
		if m.Replaced != nil {
			r = *m.Replaced
		}
		return m.Replaced != nil
	})
	return r
}

// A daemon whose installed monitor is another program than the running one replaces it and its keeper, in both directions. A container
// keeps running: no line is lost, and its exit code is exact. If the installed program cannot take over, the running one stays.
func TestMonitorReplaced(t *testing.T) {
	m := newTestHost(t)
	earlier, later := m.buildMonitor("v1"), m.buildMonitor("v2")
	if err := m.Close(); err != nil { // the monitor has no container
		t.Fatal(err)
	}
	m.opts.MonitorPath = earlier
	m.start()
	p := newPod(m, &spec.Pod{})
	const stop = "/stop"
	ref, err := p.start(sh(`i=0; while [ ! -e ` + stop + ` ]; do echo "line $i"; i=$((i+1)); sleep 0.01; done; echo "end $i"; exit 23`))
	if err != nil {
		t.Fatal(err)
	}
	before := p.hello()
	if before.Version != "v1" {
		t.Fatalf("version %q, want v1", before.Version)
	}
	for _, step := range []struct{ program, from, to string }{{later, "v1", "v2"}, {earlier, "v2", "v1"}} {
		if r := p.restart(step.program); r != (engine.MonitorReplacement{From: step.from, To: step.to}) {
			t.Fatalf("replacement %+v, want from %s to %s", r, step.from, step.to)
		}
		now := p.hello()
		if now.Version != step.to || now.PID != before.PID || now.Keeper != before.Keeper {
			t.Errorf("monitor %+v, want %s in the processes of %+v", now, step.to, before)
		}
		if same, err := now.Executes(step.program); !same || err != nil {
			t.Errorf("monitor and keeper execute %s: %v, %v", step.program, same, err)
		}
		if code, out, err := p.exec(ref, deadline, "echo hello"); code != 0 || out != "hello\n" || err != nil {
			t.Errorf("a command: code %d, output %q, %v", code, out, err)
		}
	}
	unreadable := filepath.Join(m.dir, "unreadable")
	if err := os.WriteFile(unreadable, []byte("#!/bin/sh\necho '{\"version\":\"v0\",\"reads\":[]}'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if r := p.restart(unreadable); r.From != "v1" || r.Err == nil || !strings.Contains(r.Err.Error(), "reads records of the formats []") {
		t.Errorf("replacement %+v, want that the format is not read", r)
	}
	if now := p.hello(); now.Version != "v1" || now.PID != before.PID {
		t.Errorf("monitor %+v, want v1 in the process of %+v", now, before)
	}

	if code, _, err := p.exec(ref, deadline, "touch "+stop); code != 0 || err != nil {
		t.Errorf("a command: code %d, %v", code, err)
	}
	if exit := p.wait(ref); exit.Code != 23 {
		t.Errorf("exit %+v, want code 23", exit)
	}
	p.wantCounted(p.log(ref))
}

// wantCounted checks that an output has each line once, and the last one with their number.
func (p *pod) wantCounted(output string) {
	p.Helper()
	n := 0
	for line := range strings.Lines(output) {
		if line == fmt.Sprintf("end %d\n", n) {
			if n == 0 {
				p.Error("the output has no lines")
			}
			return
		}
		if want := fmt.Sprintf("line %d\n", n); line != want {
			p.Fatalf("line %q, want %q", line, want)
		}
		n++
	}
	p.Errorf("the output ends after %d lines", n)
}
