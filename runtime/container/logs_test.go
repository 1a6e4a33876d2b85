package container

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/ocibundle"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestOutput checks when lines go to journald, and with which fields and limits.
func TestOutput(t *testing.T) {
	dirs := record.Dirs{State: "/state", Run: "/run", Log: "/log"}
	s := &Service{
		config: Config{Dirs: dirs, Logs: Logs{Driver: spec.LogFile, File: crilog.Options{Keep: 5}, Memory: crilog.Options{Keep: 4}}},
	}
	pod := &spec.Pod{Name: "web", Containers: []spec.Container{{Name: "app", Image: "example.com/app:1"}}}
	labels := map[string]string{
		record.LabelLog: "/log/x/0.log", record.LabelUID: "u", record.LabelContainer: "app", record.LabelRestarts: "2",
	}
	want := ocibundle.Output{Log: "/log/x/0.log", Options: crilog.Options{Keep: 5}}
	if diff := cmp.Diff(want, s.output(pod, "id", labels)); diff != "" {
		t.Errorf("driver file (-want +got)\n%s", diff)
	}

	pod.Annotations = map[string]string{spec.LogDriverAnnotation: string(spec.LogJournald)}
	labels[record.LabelLog] = dirs.MemoryLogs() + "/x/0.log"
	want = ocibundle.Output{
		Log: dirs.MemoryLogs() + "/x/0.log", Options: crilog.Options{Keep: 4},
		Journal: &crilog.JournalFields{ID: "id", Image: "example.com/app:1", Pod: "web", UID: "u", Container: "app", Restarts: "2"},
	}
	if diff := cmp.Diff(want, s.output(pod, "id", labels)); diff != "" {
		t.Errorf("annotation journald (-want +got)\n%s", diff)
	}

	pod.Annotations = nil
	s.config.Logs.Driver = spec.LogJournald
	if diff := cmp.Diff(want, s.output(pod, "id", labels)); diff != "" {
		t.Errorf("driver journald (-want +got)\n%s", diff)
	}

	labels[record.LabelLog] = "/log/x/0.log"
	want = ocibundle.Output{Log: "/log/x/0.log", Options: crilog.Options{Keep: 5}}
	if diff := cmp.Diff(want, s.output(pod, "id", labels)); diff != "" {
		t.Errorf("driver journald, the log is in files (-want +got)\n%s", diff)
	}
}

// TestEarlierShim checks that logs of a shim of an earlier version, which does not copy them to journald, are in files.
func TestEarlierShim(t *testing.T) {
	s := &Service{config: Config{Dirs: record.Dirs{State: "/state", Run: "/proc", Log: "/log"}, Logs: Logs{Driver: spec.LogJournald}}}
	n := &creation{
		uid: "u", pod: &spec.Pod{Name: "web"}, action: lifecycle.StartContainer{Ref: lifecycle.Ref{Container: "app"}},
		sandbox: &engine.Sandbox{},
	}
	path, err := s.logPath(n)
	if want := s.config.Dirs.ContainerLog("u", "web", "app", 0); err != nil || path != want {
		t.Errorf("got %q, %v, want %q", path, err, want)
	}
	for _, test := range []struct {
		driver, want spec.LogDriver
		copies       bool
	}{
		{spec.LogJournald, spec.LogJournald, true},
		{spec.LogJournald, spec.LogFile, false},
		{spec.LogMemory, spec.LogMemory, false},
		{spec.LogFile, spec.LogFile, true},
	} {
		if got := driverIn(test.driver, test.copies); got != test.want {
			t.Errorf("driver %s, copies %v: got %s, want %s", test.driver, test.copies, got, test.want)
		}
	}
}

// TestCheckDriver checks the errors of a host whose runtime directory is not in memory.
func TestCheckDriver(t *testing.T) {
	for _, driver := range []spec.LogDriver{spec.LogMemory, spec.LogJournald} {
		err := CheckDriver(driver, "/proc")
		if err == nil || !strings.HasPrefix(err.Error(), "log driver "+string(driver)+": ") ||
			!strings.HasSuffix(err.Error(), "the runtime directory /proc is not in memory (tmpfs)") {
			t.Errorf("%s: got %v", driver, err)
		}
	}
	if err := CheckDriver(spec.LogFile, "/proc"); err != nil {
		t.Error(err)
	}
}
