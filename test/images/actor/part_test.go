package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// events returns the logged events without their times.
func events(t *testing.T, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, log))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		at, event, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, err := time.Parse(time.RFC3339Nano, at); err != nil {
			t.Error(err)
		}
		all = append(all, event)
	}
	return all
}

// TestPerform checks events, duration and exit code.
func TestPerform(t *testing.T) {
	for _, test := range []struct {
		args, files string
		term        time.Duration // when SIGTERM comes; 0: never
		status      int
		took        time.Duration
		told        string
	}{
		{"run=2s delay=1s", "", 0, 0, 3 * time.Second, "Starting Started Exiting"},
		{"run=2s exit=3", "", 0, 3, 2 * time.Second, "Starting Started Exiting"},
		{"run=0s exit=3,4", "", 0, 3, 0, "Starting Started Exiting"},
		{"", "", time.Second, 0, time.Second, "Starting Started Looping Terminating Exiting"},
		{"term=5s exit=9", "", time.Second, 9, 6 * time.Second, "Starting Started Looping Terminating Exiting"},
		{"delay=8s", "", time.Second, 0, time.Second, "Starting Terminating Exiting"},
		{"run=9s term=never", "", time.Second, 0, 9 * time.Second, "Starting Started Terminating Exiting"},
		{"if=ok", "ok", 0, 0, 0, "Starting Started Exiting"},
		{"if=ok", "", 0, 1, 0, "Starting Started Exiting"},
		{"touch=ok if=ok", "", 0, 0, 0, "Starting Started Exiting"},
		{"until=ok", "ok", 0, 0, 0, "Starting Started Exiting"},
	} {
		t.Run(test.args, func(t *testing.T) {
			dir := t.TempDir()
			if test.files != "" {
				if err := os.WriteFile(filepath.Join(dir, test.files), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				p, err := parse(dir, append([]string{"app"}, strings.Fields(test.args)...))
				if err != nil {
					t.Fatal(err)
				}
				term := make(chan os.Signal, 1)
				if test.term > 0 {
					time.AfterFunc(test.term, func() { term <- syscall.SIGTERM })
				}
				begin := time.Now()
				status, err := p.perform(term)
				if err != nil || status != test.status {
					t.Errorf("status %d, %v, want %d", status, err, test.status)
				}
				if took := time.Since(begin); took != test.took {
					t.Errorf("took %v, want %v", took, test.took)
				}
			})
			want := strings.Fields(test.told)
			for i := range want {
				want[i] = "app " + want[i]
			}
			if diff := cmp.Diff(want, events(t, dir)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRunsAreCounted: the second run and later ones have the second exit code.
func TestRunsAreCounted(t *testing.T) {
	dir := t.TempDir()
	var got []int
	for range 3 {
		p, err := parse(dir, []string{"app", "run=0s", "exit=42,1"})
		if err != nil {
			t.Fatal(err)
		}
		status, err := p.perform(nil)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, status)
	}
	if diff := cmp.Diff([]int{42, 1, 1}, got); diff != "" {
		t.Errorf("exit codes (-want +got):\n%s", diff)
	}
}

// TestInvalidArguments: an actor rejects arguments that it does not know.
func TestInvalidArguments(t *testing.T) {
	for _, args := range []string{"", "app run", "app run=x", "app exit=x", "app walk=1s", "app until=", "app eat=", "app eat=all"} {
		if _, err := parse(t.TempDir(), strings.Fields(args)); err == nil {
			t.Errorf("actor %s: no error", args)
		}
	}
	p := part{name: "app", dir: filepath.Join(t.TempDir(), "none"), exit: []int{0}}
	if _, err := p.perform(nil); err == nil {
		t.Error("no error without a directory")
	}
}
