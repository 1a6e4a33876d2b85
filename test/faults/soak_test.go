//go:build soak

package faults

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// soakTime is how long the soak lasts.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(os.Getenv("PODSTEAD_SOAK"))
	if err != nil {
		t.Fatal("PODSTEAD_SOAK: want how long to soak, such as 30m: ", err)
	}
	return d
}

// TestSoakCrashLoop waits for one restart more than the test of the example does.
func TestSoakCrashLoop(t *testing.T) {
	f := newFixture(t)
	f.Timeout = 5 * time.Minute
	checkGaps(f, f.start(filepath.Join(f.Repository, "examples", "crash.toml")), 0, 10*time.Second, 20*time.Second, 40*time.Second)
}

// TestSoak restarts containers all the time and kills the daemon every few seconds. At the end no number of the container
// that counts is missing, the other was restarted as often as it says, and neither daemon nor shim have grown.
func TestSoak(t *testing.T) {
	end := time.Now().Add(soakTime(t))
	f := newFixture(t)
	f.Timeout = soakTime(t) + deadline
	r := f.start(f.PodFile("soak", "terminationGracePeriodSeconds = 1\nrestartBackoff = { initialSeconds = 0.1, maxSeconds = 0.2 }\n"+
		container("counter", counting)+container("crasher", "echo crash; exit 1")))
	r.line("counter", 1)
	r.line("crasher", 20)
	counter, shim := f.process("while :"), f.shim()
	begin := descriptors(t, shim)
	for time.Now().Before(end) {
		<-time.After(time.Duration(rand.Int64N(int64(5 * time.Second))))
		f.MustKillDaemon()
		f.get("soak")
	}
	if got := f.process("while :"); got != counter {
		t.Errorf("the container's process was %d, and is %d", counter, got)
	}
	if now := descriptors(t, shim); now > begin+20 {
		t.Errorf("the shim had %d descriptors, and has %d", begin, now)
	}
	restarts := 0
	for _, c := range f.get("soak").Status.ContainerStatuses {
		if c.Name == "crasher" {
			restarts = c.RestartCount
		}
	}
	r.interrupt()
	r.status()
	checkNumbers(t, r.lines("counter"))
	if crashed := len(r.lines("crasher")); crashed < restarts || crashed > restarts+5 {
		t.Errorf("the container was restarted %d times and has run %d times", restarts, crashed)
	}
	if errors := r.errors(); strings.Contains(errors, "panic") {
		t.Error(errors)
	}
}

// descriptors is how many a process has open.
func descriptors(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
