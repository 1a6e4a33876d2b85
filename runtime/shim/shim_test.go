package shim

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
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

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		args []string
		bad  bool
	}{
		{args: []string{"-namespace", "n", "-id", "i", "-bundle", "/b", "delete"}},
		{args: []string{"-info"}},
		{args: []string{"-v"}},
		{args: []string{"-namespace", "n", "-id", "i", "-address", "/a"}, bad: true},
		{args: []string{"-namespace", "n", "-id", "i", "-address", "/a", "start"}, bad: true},
		{bad: true},
	} {
		if err := check(append([]string{Name}, test.args...)); (err != nil) != test.bad {
			t.Errorf("%q: %v", test.args, err)
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
