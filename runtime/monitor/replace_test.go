package monitor

import (
	"os"
	"testing"
	"time"
)

// TestExecutes compares the programs of monitor and keeper with that of this process.
func TestExecutes(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if same, err := (Hello{PID: os.Getpid(), Keeper: os.Getpid()}).Executes(self); !same || err != nil {
		t.Errorf("%v, %v", same, err)
	}
	other := startRole(t, t.TempDir(), roleKeeper)
	if same, err := (Hello{PID: os.Getpid(), Keeper: other.Process.Pid}).Executes(self); same || err != nil {
		t.Errorf("with another keeper: %v, %v", same, err)
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
