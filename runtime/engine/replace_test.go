package engine

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/runtime/monitor"
)

// replacing is a link to a fake monitor of version v1, which is this process.
type replacing struct {
	*link
	*fakeMonitor
	reports chan MonitorReport
}

// newReplacing returns a link whose installed program is prepared by install.
func newReplacing(t *testing.T, timeout time.Duration, replaceAnswer string, install func(path string) error) replacing {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "installed")
	if err := install(program); err != nil {
		t.Fatal(err)
	}
	r := replacing{reports: make(chan MonitorReport, 10), fakeMonitor: newFakeMonitor(map[string]string{
		"hello": fmt.Sprintf(`"body":{"version":"v1","pid":%d,"keeper":%d}`, os.Getpid(), os.Getpid()), "replace": replaceAnswer,
	})}
	r.listen(t, dir)
	l, err := openLink(t.Context(), linkOptions{
		Dir: dir, Program: program, Log: slog.New(slog.DiscardHandler), ReplaceTimeout: timeout,
		Report: func(m MonitorReport) { r.reports <- m },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.link = l
	t.Cleanup(func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// isThisProcess makes the running program the installed one.
func isThisProcess(path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return os.Symlink(self, path)
}

// isOther installs a program of version v2.
func isOther(path string) error {
	return os.WriteFile(path, []byte("#!/bin/sh\necho '{\"version\":\"v2\"}'\n"), 0o755)
}

// count returns how often an operation was requested.
func (m *fakeMonitor) count(op string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, asked := range m.asked {
		if asked == op {
			n++
		}
	}
	return n
}

// awaitRequest waits until an operation was requested.
func (m *fakeMonitor) awaitRequest(t *testing.T, op string) {
	t.Helper()
	for !m.was(op) {
		select {
		case <-m.wrote:
		case <-time.After(time.Minute):
			t.Fatalf("no request %s", op)
		}
	}
}

// report receives a report of a replacement.
func (r replacing) report(t *testing.T) MonitorReplacement {
	t.Helper()
	select {
	case m := <-r.reports:
		if m.Replaced == nil {
			t.Fatalf("report %+v, want that of a replacement", m)
		}
		return *m.Replaced
	case <-time.After(time.Minute):
		t.Fatal("no report")
	}
	return MonitorReplacement{}
}

// A monitor that executes another program than the installed one is replaced. Its restart in place is not that of one that was killed.
func TestMonitorReplaced(t *testing.T) {
	r := newReplacing(t, time.Minute, `"body":{}`, isOther)
	r.awaitRequest(t, "replace")
	if err := r.until(t.Context(), func() bool { return r.requested }); err != nil {
		t.Fatal(err)
	}
	r.answer("delete", `"error":{"class":"Unavailable","message":"the monitor is being replaced"}`)
	deleted := make(chan error, 1)
	go func() {
		deleted <- r.ask(t.Context(), false, func(c *monitor.Client) error { _, err := c.Delete(t.Context(), "c"); return err })
	}()
	r.awaitRequest(t, "delete")
	r.answer("delete", `"body":{}`)
	r.event(fmt.Sprintf(`{"kind":%q,"pid":%d}`, monitor.EventRestarted, os.Getpid()))
	next := r.Program + ".next"
	if err := isThisProcess(next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, r.Program); err != nil { // from now on the running program is the installed one
		t.Fatal(err)
	}
	if got := r.report(t); got != (MonitorReplacement{From: "v1", To: "v2"}) {
		t.Errorf("report %+v", got)
	}
	if err := <-deleted; err != nil {
		t.Errorf("a request that was refused meanwhile: %v", err)
	}
	r.event(fmt.Sprintf(`{"kind":%q,"pid":1}`, monitor.EventRestarted))
	if got := <-r.reports; got.Restarted != monitorExited {
		t.Errorf("report %+v, want the restart of another process", got)
	}
	if n := r.count("replace"); n != 1 {
		t.Errorf("requested %d times", n)
	}
}

// A request that was refused for a replacement is sent again, also if the replacement is complete when the answer is looked at.
func TestRefusedUntilReplaced(t *testing.T) {
	l := &link{client: &monitor.Client{}, ended: make(chan struct{})}
	requests := 0
	err := l.ask(t.Context(), false, func(*monitor.Client) error {
		if requests++; requests > 1 {
			return nil
		}
		l.change(func() { l.replacements++ })
		return &monitor.Error{Class: monitor.ClassUnavailable, Message: "the monitor is being replaced"}
	})
	if err != nil || requests != 2 {
		t.Errorf("%d requests, %v; want another one without an error", requests, err)
	}
}

// A monitor that executes the installed program, or whose program is not installed, is not replaced.
func TestMonitorNotReplaced(t *testing.T) {
	for name, install := range map[string]func(string) error{
		"same":    isThisProcess,
		"missing": func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newReplacing(t, time.Minute, `"body":{}`, install)
			r.replace(t.Context())
			if r.was("replace") || len(r.reports) > 0 {
				t.Errorf("requested: %v, reports: %d", r.was("replace"), len(r.reports))
			}
		})
	}
}

// A replacement that fails is reported once with the reason, and not repeated after another connection.
func TestReplacementFails(t *testing.T) {
	for name, test := range map[string]struct {
		timeout         time.Duration
		program, answer string
		want            string
	}{
		"refused": {time.Minute, "", `"error":{"class":"FailedPrecondition","message":"reads records of the formats [9]"}`, "formats [9]"},
		"hangs":   {5 * time.Second, "", `"body":{}`, "deadline exceeded"},
		"program": {time.Minute, "#!/bin/sh\nexit 3\n", `"body":{}`, "exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReplacing(t, test.timeout, test.answer, func(path string) error {
				if test.program == "" {
					return isOther(path)
				}
				return os.WriteFile(path, []byte(test.program), 0o755)
			})
			if got := r.report(t); got.From != "v1" || got.Err == nil || !strings.Contains(got.Err.Error(), test.want) {
				t.Errorf("report %+v, want %q", got, test.want)
			}
			asked := r.count("replace")
			r.link.mu.Lock()
			first := r.client
			r.link.mu.Unlock()
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			if err := r.until(t.Context(), func() bool { return r.client != nil && r.client != first }); err != nil {
				t.Fatal(err)
			}
			if n := r.count("replace"); n != asked || len(r.reports) > 0 {
				t.Errorf("requested %d times, reports: %d", n, len(r.reports))
			}
		})
	}
}
