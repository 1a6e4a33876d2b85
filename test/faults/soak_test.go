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

// soakTime returns the duration of the soak test.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(os.Getenv("PODSTEAD_SOAK"))
	if err != nil {
		t.Fatal("PODSTEAD_SOAK: must be a duration such as 30m:  ", err)
	}
	return d
}

// TestSoakCrashLoop waits for one restart more than TestCrashLoop.
func TestSoakCrashLoop(t *testing.T) {
	f := newFixture(t)
	f.Timeout = 5 * time.Minute
	checkGaps(f, f.start(filepath.Join(f.Repository, "examples", "crash.toml")), 0, 10*time.Second, 20*time.Second, 40*time.Second)
}

// TestSoak restarts a container constantly and kills the daemon every few seconds. No number of the counting container may be missing,
// the restart count must be right, and neither the daemon nor the shim or monitor may accumulate descriptors.
func TestSoak(t *testing.T) {
	end := time.Now().Add(soakTime(t))
	f := newFixture(t)
	f.Timeout = soakTime(t) + deadline
	r := f.start(f.PodFile("soak", "terminationGracePeriodSeconds = 1\nrestartBackoff = { initialSeconds = 0.1, maxSeconds = 0.2 }\n"+
		container("counter", counting)+container("crasher", "echo crash; exit 1")))
	r.line("counter", 1)
	r.line("crasher", 20)
	counter, holder := f.process("while :"), f.holder()
	before := descriptors(t, holder)
	// The command gives up after three daemons in a row that run for less than five seconds, so every second one runs longer.
	for long := false; time.Now().Before(end); long = !long {
		lives := time.Duration(rand.Int64N(int64(5 * time.Second)))
		if long {
			lives += 6 * time.Second
		}
		<-time.After(lives)
		f.MustKillDaemon()
		f.Await(func() error { // podstead run starts every daemon: it counts those that it has started
			_, err := f.Client().Pod(f.Ctx(), "soak")
			return err
		})
	}
	if got := f.process("while :"); got != counter {
		t.Errorf("PID of the container was %d, is %d", counter, got)
	}
	if now := descriptors(t, holder); now > before+20 {
		t.Errorf("descriptors of the process that holds the containers: were %d, are %d", before, now)
	}
	restarts := 0
	for _, c := range f.get("soak").Status.ContainerStatuses {
		if c.Name == "crasher" {
			restarts = c.RestartCount
		}
	}
	r.interrupt()
	r.exitCode()
	checkNumbers(t, r.lines("counter"))
	if crashed := len(r.lines("crasher")); crashed < restarts || crashed > restarts+5 {
		t.Errorf("restart count %d, but %d runs", restarts, crashed)
	}
	if errors := r.errors(); strings.Contains(errors, "panic") {
		t.Error(errors)
	}
}

// descriptors returns the number of open descriptors of a process.
func descriptors(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestSoakIdle: pods whose probes succeed cause no write to the disk for ten minutes.
func TestSoakIdle(t *testing.T) { testIdle(t, 10*time.Minute) }
