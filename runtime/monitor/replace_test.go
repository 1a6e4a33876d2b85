package monitor

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestExecutes compares the program of this process with files.
func TestExecutes(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(text)
	changed[len(changed)-1]++
	dir := t.TempDir()
	for name, test := range map[string]struct {
		text []byte
		want bool
	}{"copy": {text, true}, "changed": {changed, false}, "longer": {append(changed, 0), false}, "empty": {nil, false}} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, test.text, 0o755); err != nil {
			t.Fatal(err)
		}
		if got, err := (Hello{PID: os.Getpid(), Keeper: os.Getpid()}).Executes(path); got != test.want || err != nil {
			t.Errorf("%s: %v, %v, want %v", name, got, err, test.want)
		}
	}
	other := startRole(t, t.TempDir(), roleKeeper)
	if same, err := (Hello{PID: os.Getpid(), Keeper: other.Process.Pid}).Executes(self); same || err != nil {
		t.Errorf("with another keeper: %v, %v", same, err)
	}
	if _, err := (Hello{PID: os.Getpid(), Keeper: os.Getpid()}).Executes(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

// TestAgeOfReplacedMonitor: a monitor that was executed in place a moment ago is not taken for one that hangs, although its process is
// older.
func TestAgeOfReplacedMonitor(t *testing.T) {
	now := time.Now()
	for _, test := range []struct{ process, started, want time.Duration }{
		{time.Hour, time.Second, time.Second}, {time.Second, time.Hour, time.Second}, {time.Hour, -time.Minute, time.Hour},
	} {
		if got := (roleProcess{age: test.process}).since(now.Add(-test.started), now); got != test.want {
			t.Errorf("process of age %v, started %v ago: %v, want %v", test.process, test.started, got, test.want)
		}
	}
}
