package container

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestParseSignal(t *testing.T) {
	for _, test := range []struct {
		in   string
		want syscall.Signal // 0: an error
	}{
		{"SIGTERM", unix.SIGTERM},
		{"TERM", unix.SIGTERM},
		{"sigquit", unix.SIGQUIT},
		{"15", unix.SIGTERM},
		{"SIGIOT", unix.SIGABRT},
		{"SIGCLD", unix.SIGCHLD},
		{"poll", unix.SIGIO},
		{"64", 64},
		{"SIGRTMIN", 34},
		{"SIGRTMIN+3", 37},
		{"RTMAX-1", 63},
		{"SIGRTMAX", 64},
		{"SIGRTMIN+40", 0},
		{"SIGRTMIN-1", 0},
		{"SIGRTMINx", 0},
		{"0", 0},
		{"65", 0},
		{"-1", 0},
		{"", 0},
		{"SIGNONE", 0},
	} {
		got, err := parseSignal(test.in)
		if got != test.want || (err == nil) != (test.want != 0) {
			t.Errorf("parseSignal(%q): got %d, %v; want %d", test.in, got, err, test.want)
		}
	}
}

func TestStartOfBusyContainer(t *testing.T) {
	var s Service
	unlock, err := s.locks.Lock(t.Context(), "u/c")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = s.Start(ctx, "u", &spec.Pod{}, lifecycle.StartContainer{Ref: lifecycle.Ref{Container: "c"}})
	if f, _ := errors.AsType[lifecycle.Failure](err); f.Kind != lifecycle.FailureUnavailable {
		t.Errorf("got %#v, want a failure of kind %s", err, lifecycle.FailureUnavailable)
	}
}

func TestRemoveLog(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"0.log", "0.log.20260101", "0.log.20260102.gz", "1.log"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second call finds nothing
		if err := removeLog(filepath.Join(dir, "0.log")); err != nil {
			t.Fatal(err)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "1.log" {
		t.Errorf("left: %v, %v; want 1.log", left, err)
	}
}
