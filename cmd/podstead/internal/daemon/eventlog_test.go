package daemon

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/cmd/podstead/internal/config"
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

// TestFiles checks the number of files in the event LogsRemoved.
func TestFiles(t *testing.T) {
	if got := files(1) + ", " + files(2); got != "1 file, 2 files" {
		t.Errorf("got %q", got)
	}
}
