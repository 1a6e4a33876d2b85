package shim

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/runc"
	gorunc "github.com/containerd/go-runc"
)

func TestInvoked(t *testing.T) {
	tests := []struct {
		args []string
		want bool
	}{
		{[]string{"/usr/libexec/podstead/containerd-shim-podstead-v1", "-namespace", "podstead", "start"}, true},
		{[]string{"containerd-shim-podstead-v1"}, true},
		{[]string{"/usr/bin/podstead", "-namespace", "podstead", "-id", "x"}, true},
		{[]string{"/usr/bin/podstead", "-info"}, true},
		{[]string{"/usr/bin/podstead", "run", "-namespace"}, false},
		{[]string{"/usr/bin/podstead", "--namespace"}, false},
		{[]string{"/usr/bin/podstead"}, false},
		{nil, false},
	}
	for _, tt := range tests {
		if got := Invoked(tt.args); got != tt.want {
			t.Errorf("%q: got %v", tt.args, got)
		}
	}
}

// TestReadExit reads a file that containerd has written.
func TestReadExit(t *testing.T) {
	bundle := t.TempDir()
	if _, err := ReadExit(bundle); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	want := Exit{Status: 137, Timestamp: time.Date(2026, 11, 28, 12, 0, 0, 5, time.UTC), Pid: 7}
	if err := runc.WriteExitStatus(bundle, gorunc.Exit(want)); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadExit(bundle); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, text := range []string{"", "{", "{}", `{"Pid":7,"Status":1}`, `{"Pid":7,"Status":-1,"Timestamp":"2026-11-28T12:00:00Z"}`} {
		if err := os.WriteFile(filepath.Join(bundle, exitFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadExit(bundle); err == nil {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}

func TestOOMRecord(t *testing.T) {
	bundle := t.TempDir()
	if killed, err := OOMKilled(bundle); killed || err != nil || MemoryPeak(bundle) != 0 {
		t.Errorf("without a record: %v, %v, peak %d", killed, err, MemoryPeak(bundle))
	}
	if err := os.WriteFile(filepath.Join(bundle, "oom-killed"), []byte("1048576"), 0o600); err != nil {
		t.Fatal(err)
	}
	if killed, err := OOMKilled(bundle); !killed || err != nil || MemoryPeak(bundle) != 1<<20 {
		t.Errorf("got %v, %v, peak %d; want a peak of 1 MiB", killed, err, MemoryPeak(bundle))
	}
	if _, err := OOMKilled(os.DevNull); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing bundle: %v", err)
	}
}
