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

func TestCheckDirectory(t *testing.T) {
	dir := t.TempDir()
	root, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "dev"), 0o700), os.Symlink("/etc", filepath.Join(dir, "sys"))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"dev": true, "proc": true, "sys": false} { // proc does not exist
		if err := checkDirectory(root, name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
