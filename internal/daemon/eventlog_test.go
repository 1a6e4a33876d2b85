package daemon

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/runtime/engine"
)

// TestEventLog checks when events are sent to journald.
func TestEventLog(t *testing.T) {
	var stderr unix.Stat_t
	if err := unix.Fstat(int(os.Stderr.Fd()), &stderr); err != nil {
		t.Fatal(err)
	}
	own := fmt.Sprintf("%d:%d", stderr.Dev, stderr.Ino)
	for _, test := range []struct {
		setting, stream string
		want            bool
	}{
		{config.JournaldAuto, own, true},
		{config.JournaldAuto, "", false},
		{config.JournaldAuto, "1:1", false}, // of a parent process
		{config.JournaldAuto, "x", false},
		{config.JournaldAlways, "", true},
		{config.JournaldNever, own, false},
	} {
		t.Setenv("JOURNAL_STREAM", test.stream)
		o := Options{Config: &config.Config{Events: config.Events{Journald: test.setting}}}
		if got := o.eventLog() != nil; got != test.want {
			t.Errorf("events.journald %q, JOURNAL_STREAM %q: %v", test.setting, test.stream, got)
		}
	}
}

// TestUnitLogDriver: pods of units use journald in place of the driver file, unless the runtime directory is not in memory.
func TestUnitLogDriver(t *testing.T) {
	for _, test := range []struct{ driver, run, want string }{
		{"memory", "/dev/shm", ""},
		{"journald", "/dev/shm", ""},
		{"file", "/proc", ""},
	} {
		c := config.Config{RunDir: test.run, ContainerLog: config.ContainerLog{Driver: test.driver}}
		if got := unitLogDriver(&c); string(got) != test.want {
			t.Errorf("driver %s, runtime directory %s: got %q, want %q", test.driver, test.run, got, test.want)
		}
	}
}

// TestFiles checks the number of files in the event LogsRemoved.
func TestFiles(t *testing.T) {
	if got := files(1) + ", " + files(2); got != "1 file, 2 files" {
		t.Errorf("got %q", got)
	}
}

func TestMonitorEvent(t *testing.T) {
	for _, test := range []struct {
		report engine.MonitorReport
		want   string
	}{
		{engine.MonitorReport{Restarted: "it was killed"}, "Monitor restarted, containers kept running: it was killed"},
		{
			engine.MonitorReport{Unavailable: errors.New("no file")},
			"Monitor unavailable, retrying; containers keep running without supervision: no file",
		},
		{engine.MonitorReport{Available: true}, "Monitor available again"},
		{
			engine.MonitorReport{Replaced: &engine.MonitorReplacement{From: "v1", To: "v2"}},
			"Monitor of version v1 replaced by version v2, containers kept running",
		},
		{
			engine.MonitorReport{Replaced: &engine.MonitorReplacement{From: "v1", To: "v2", Err: errors.New("it exited")}},
			"Monitor of version v1 not replaced by the installed program, containers keep running: it exited",
		},
	} {
		if e := monitorEvent(test.report, time.Now()); e.Message != test.want || e.Pod != "" {
			t.Errorf("%+v, want message %q without a pod", e, test.want)
		}
	}
}

// TestHintOverlay: an error that overlayfs does not work any more has a hint with the directory.
func TestHintOverlay(t *testing.T) {
	err := fmt.Errorf("try overlayfs: %w: it cannot be mounted", runtime.ErrOverlay)
	if hint := Hint(err, &config.Config{StateDir: "/state"}); !strings.Contains(hint, "move /state to a local file system") {
		t.Errorf("hint %q", hint)
	}
}

// TestHintMonitorMissing: an error that the program of the monitor is missing has a hint.
func TestHintMonitorMissing(t *testing.T) {
	err := fmt.Errorf("start engine: %w", ErrMonitorMissing)
	if hint := Hint(err, &config.Config{}); !strings.Contains(hint, "install podstead-monitor") {
		t.Errorf("hint %q", hint)
	}
}
