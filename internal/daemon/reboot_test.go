package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

func instant(boot string, mono time.Duration) lifecycle.Instant {
	return lifecycle.Instant{Boot: boot, Mono: mono, Wall: time.Unix(0, 0)}
}

// TestRequest checks which reboots count.
func TestRequest(t *testing.T) {
	ask := func(r RebootRecord, limit int, now lifecycle.Instant) RebootRecord {
		t.Helper()
		next, err := r.Request("web", limit, now)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	r := ask(RebootRecord{}, 2, instant("1", time.Hour))
	r = ask(r, 2, instant("1", 2*time.Hour))
	if len(r.Reboots) != 1 {
		t.Errorf("a request that is repeated in one boot counts: %+v", r)
	}
	r = ask(r, 2, instant("2", time.Hour))
	_, err := r.Request("web", 2, instant("3", time.Hour))
	if err == nil || err.Error() != "2 of at most 2 reboots in 24h of uptime" {
		t.Errorf("third reboot: %v", err)
	}
	// an hour of boots 2 and 3: a repeated request counts from then on
	if next := r.At(instant("3", time.Hour)).Next(2); next != 22*time.Hour {
		t.Errorf("next reboot after %v", next)
	}
	if r := r.At(instant("3", 22*time.Hour)); len(r.Reboots) != 2 {
		t.Errorf("reboots before the end of a day: %+v", r)
	}
	if r := r.At(instant("3", 23*time.Hour)); len(r.Reboots) != 1 || r.Next(2) != 0 {
		t.Errorf("reboots after a day: %+v", r)
	}
	if _, err := (RebootRecord{}).Request("web", 0, instant("1", 0)); err == nil ||
		!strings.Contains(err.Error(), "reboot.maxPerDay is 0") {
		t.Errorf("disabled: %v", err)
	}
}

// TestRate checks in random lives of a host, with a wall clock that is wrong and ages that are not always saved, that there are never more
// boots in a day of real time that were requested than allowed.
func TestRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		var saved RebootRecord
		var real time.Duration
		var requested []time.Duration
		for boot := range rapid.IntRange(1, 30).Draw(t, "boots") {
			var mono time.Duration
			counted := false
			for range rapid.IntRange(1, 5).Draw(t, "requests") {
				passed := time.Duration(rapid.Int64Range(0, int64(10*time.Hour)).Draw(t, "uptime"))
				real, mono = real+passed, mono+passed
				now := instant(fmt.Sprint(boot), mono)
				now.Wall = time.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "wall"), 0)
				next, err := saved.Request("p", limit, now)
				if err == nil {
					if !counted {
						requested, counted = append(requested, 0), true
					}
					requested[len(requested)-1] = real // the reboot follows the last request that was carried out
					saved = next
				} else if rapid.Bool().Draw(t, "saved") {
					saved = saved.At(now)
				}
			}
			real += time.Duration(rapid.Int64Range(0, int64(5*time.Hour)).Draw(t, "off"))
		}
		for i, first := range requested {
			if i+limit < len(requested) && requested[i+limit]-first < rebootDay {
				t.Fatalf("%d reboots between %v and %v", limit+1, first, requested[i+limit])
			}
		}
	})
}

// TestHost checks that a reboot is recorded before it is requested, and that it is held back without a record.
func TestHost(t *testing.T) {
	dir := t.TempDir()
	file, log := filepath.Join(dir, "reboots.json"), filepath.Join(dir, "log")
	boot := "1"
	now := func() lifecycle.Instant { return instant(boot, time.Hour) }
	command := []string{"sh", "-c", `cat "$0" >>"$1"; echo " $PODSTEAD_POD" >>"$1"`, file, log}
	onDisk := func(file string) *rebootHost {
		h := newReboots(file, now, 1, command)
		h.SetInMemory(false) // also if the directory of this test is
		return h
	}
	h := onDisk(file)
	if err := h.Reboot(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(log); err != nil || !strings.Contains(string(text), `"boot":"1","pod":"web"`) ||
		!strings.HasSuffix(string(text), " web\n") {
		t.Errorf("the command saw %q, %v", text, err)
	}
	expect := func(reason lifecycle.Reason, message string) {
		t.Helper()
		f, _ := errors.AsType[lifecycle.Failure](h.Reboot(t.Context(), "web"))
		if f.Reason != reason || !strings.Contains(f.Message, message) {
			t.Errorf("%+v, want %s: %s", f, reason, message)
		}
	}
	boot = "2"
	h = onDisk(file) // after the power was cut
	expect(lifecycle.ReasonRebootHeldBack, "1 of at most 1 reboots in 24h of uptime")
	h.Set(2, []string{"sh", "-c", "echo no seat; exit 3"})
	expect(lifecycle.ReasonRebootFailed, "run sh: exit status 3: no seat")
	h.Set(2, nil)
	expect(lifecycle.ReasonRebootFailed, "reboot.command is empty")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(lifecycle.ReasonRebootHeldBack, "read record of reboots")
	h = onDisk(filepath.Join(dir, "missing", "reboots.json"))
	expect(lifecycle.ReasonRebootHeldBack, "save record of reboots")
	h = newReboots(filepath.Join(dir, "missing", "reboots.json"), now, 1, command)
	expect(lifecycle.ReasonRebootHeldBack, "save record of reboots")
	file = filepath.Join(dir, "volatile.json")
	h = onDisk(file)
	h.SetInMemory(true)
	expect(lifecycle.ReasonRebootHeldBack, dir+" is in memory: the next boot would not know of this reboot")
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a reboot that was held back is recorded: %v", err)
	}
}

// TestInMemory compares with file systems whose types are the same on every host.
func TestInMemory(t *testing.T) {
	for dir, want := range map[string]bool{"/dev/shm": true, "/proc": false} {
		if got, err := InMemory(dir); err != nil || got != want {
			t.Errorf("%s: %v, %v", dir, got, err)
		}
	}
}
