package daemon

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/config"
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
