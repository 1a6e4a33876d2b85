package state

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// lives are the directories of several daemons, one after the other.
type lives struct {
	*testing.T
	dir     string
	version string
	*Quarantine
}

// next starts a daemon, after the last one ended with a cause, and returns the suspects and the pods in quarantine.
func (l *lives) next(cause string) (suspects, held string) {
	l.Helper()
	d, err := NewQuarantine(filepath.Join(l.dir, "lib"), filepath.Join(l.dir, "run"))
	if err != nil {
		l.Fatal(err)
	}
	d.Version = l.version
	entries, err := d.Judge(cause, time.Now())
	if err != nil {
		l.Fatal(err)
	}
	l.Quarantine = d
	for _, uid := range slices.Sorted(maps.Keys(entries)) {
		if entries[uid].Held {
			held += uid + " "
		} else {
			suspects += uid + " "
		}
	}
	return strings.TrimSpace(suspects), strings.TrimSpace(held)
}

// TestJudge has the lives of daemons: the pods that each handled when it ended, and what the next one expects.
func TestJudge(t *testing.T) {
	const crash = "fatal error: out of memory"
	type life struct{ handled, cause, suspects, held string }
	for name, story := range map[string][]life{
		"a pod that crashes the daemon alone": {{"a", crash, "a", ""}, {"a", crash, "", "a"}},
		"a pod among others":                  {{"a b c", crash, "a b c", ""}, {"b", crash, "a c", "b"}},
		"a suspect beside a new pod":          {{"a b", crash, "a b", ""}, {"b n", crash, "a n", "b"}},
		"the daemon is killed, as often as one likes": {
			{"a", "", "", ""}, {"a", "", "", ""}, {"a b", "", "", ""}, {"a", "", "", ""},
		},
		"a kill between two crashes":      {{"a", crash, "a", ""}, {"a", "", "", ""}, {"a", crash, "a", ""}},
		"a crash while no pod is handled": {{"", crash, "", ""}, {"", crash, "", ""}},
		"a suspect, and then another pod": {{"a", crash, "a", ""}, {"b", crash, "a b", ""}},
		"two suspects at the same time are not told apart yet": {
			{"a b", crash, "a b", ""}, {"a b", crash, "a b", ""}, {"b", crash, "a", "b"},
		},
		"two suspects that are never handled alone": {
			{"a b", crash, "a b", ""}, {"a b", crash, "a b", ""}, {"a b", crash, "a b", ""}, {"a b", crash, "", "a b"},
		},
		"quarantine outlives kills and crashes": {
			{"a", crash, "a", ""}, {"a", crash, "", "a"}, {"", "", "", "a"}, {"b", crash, "b", "a"},
		},
		"the deletion of a pod in quarantine crashes too": {{"a", crash, "a", ""}, {"a", crash, "", "a"}, {"a", crash, "", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lives{T: t, dir: t.TempDir()}
			l.next("")
			for i, step := range story {
				for uid := range strings.FieldsSeq(step.handled) {
					l.Begin(uid, "pod-"+uid)
				}
				l.Begin("passed", "passed")()
				if suspects, held := l.next(step.cause); suspects != step.suspects || held != step.held {
					t.Fatalf("life %d: suspects %q, quarantined %q, want %q and %q", i+2, suspects, held, step.suspects, step.held)
				}
			}
		})
	}
}

// TestAnotherVersion: crashes of a new version do not keep a pod from the previous version, nor those of an old version from a new one.
func TestAnotherVersion(t *testing.T) {
	l := &lives{T: t, dir: t.TempDir(), version: "v2"}
	l.next("")
	for i, want := range []string{"", "a"} {
		l.Begin("a", "a")
		if _, held := l.next("panic"); held != want {
			t.Fatalf("crash %d: quarantined %q, want %q", i+1, held, want)
		}
	}
	l.version = "v1"
	if suspects, held := l.next(""); suspects+held != "" {
		t.Errorf("after the downgrade: suspects %q, quarantined %q", suspects, held)
	}
	l.Begin("a", "a")
	l.next("panic")
	l.version = "v2"
	l.next("panic")
	l.Begin("a", "a")
	if suspects, held := l.next("panic"); suspects != "a" || held != "" {
		t.Errorf("after a crash of each version: suspects %q, quarantined %q", suspects, held)
	}
}

// TestCrashOfAnotherVersion checks that the crash of a daemon of another version, or of one that recorded no version, accuses no pod.
func TestCrashOfAnotherVersion(t *testing.T) {
	l := &lives{T: t, dir: t.TempDir(), version: "v1"}
	l.next("")
	l.Begin("a", "a")
	if err := os.WriteFile(filepath.Join(l.dir, "run", "b"), []byte("b"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.version = "v2"
	if suspects, held := l.next("panic"); suspects+held != "" {
		t.Errorf("suspects %q, quarantined %q", suspects, held)
	}
	if files, err := os.ReadDir(filepath.Join(l.dir, "run")); err != nil || len(files) != 0 {
		t.Errorf("handled: %v, %v", files, err)
	}
}

// TestCrashesExpire checks that a crash long after the first one does not quarantine a pod.
func TestCrashesExpire(t *testing.T) {
	for pause, held := range map[time.Duration]bool{59 * time.Minute: true, 61 * time.Minute: false} {
		dir := t.TempDir()
		var entries map[string]QuarantineEntry
		for _, at := range []time.Duration{0, pause} {
			d, err := NewQuarantine(filepath.Join(dir, "lib"), filepath.Join(dir, "run"))
			if err != nil {
				t.Fatal(err)
			}
			d.Begin("a", "a")
			if entries, err = d.Judge("panic", time.Unix(0, 0).Add(at)); err != nil {
				t.Fatal(err)
			}
		}
		if got := entries["a"].Held; got != held {
			t.Errorf("two crashes within %v: quarantined: %t, want %t", pause, got, held)
		}
	}
}

func TestPowerFailureAccusesNoPod(t *testing.T) {
	l := &lives{T: t, dir: t.TempDir()}
	l.next("")
	l.Begin("a", "a")
	if err := os.RemoveAll(filepath.Join(l.dir, "run")); err != nil { // what a boot does
		t.Fatal(err)
	}
	if suspects, held := l.next("panic"); suspects+held != "" {
		t.Errorf("suspects %q, quarantined %q", suspects, held)
	}
}

func TestHandlingIsCounted(t *testing.T) {
	l := &lives{T: t, dir: t.TempDir()}
	l.next("")
	first, second := l.Begin("a", "a"), l.Begin("a", "a")
	first()
	if !l.Handling("a") {
		t.Error("the pod is still being handled")
	}
	second()
	if l.Handling("a") {
		t.Error("the pod is no longer handled")
	}
	var none *Quarantine
	none.Begin("a", "a")()
	if e, err := none.Judge("panic", time.Now()); len(e) > 0 || err != nil {
		t.Errorf("got %v, %v", e, err)
	}
}

// TestDamagedEntry checks that a file that cannot be read does not hold a pod.
func TestDamagedEntry(t *testing.T) {
	l := &lives{T: t, dir: t.TempDir()}
	l.next("")
	if err := os.WriteFile(filepath.Join(l.dir, "lib", "a.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Judge("", time.Now()); err == nil {
		t.Error("no error")
	}
	if suspects, held := l.next(""); suspects+held != "" {
		t.Errorf("suspects %q, quarantined %q", suspects, held)
	}
}
