//go:build e2e

package faults

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
)

// ticks is the number of lines that the log of another container has at least.
const ticks = 20

// TestFloodsOfLogs: containers that write as fast as they can exceed neither the limit of all logs nor a small disk, with and without the
// daemon. The daemon responds, and another container's log has all its lines. The logs of finished pods go first.
func TestFloodsOfLogs(t *testing.T) {
	const mi, floods, files, total = 1 << 20, 3, 4, 8 << 20
	f := newFixture(t)
	f.Env = append(f.Env, "PODSTEAD_CONTAINER_LOG_MAX_SIZE=1Mi", fmt.Sprint("PODSTEAD_CONTAINER_LOG_MAX_FILES=", files),
		"PODSTEAD_CONTAINER_LOG_TOTAL_MAX_SIZE=8Mi")
	f.Check(os.Mkdir(f.LogDir(), 0o750))
	f.Check(unix.Mount("logs", f.LogDir(), "tmpfs", 0, "mode=0750,size=24m"))
	t.Cleanup(func() {
		if err := unix.Unmount(f.LogDir(), unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	f.MustRun("get") // starts the daemon
	f.MustCreate("done", "restartPolicy = \"Never\"\n"+container("c", "yes done | head -c 3000000"))
	f.Until("done", "done", func(p *api.Pod) bool { return p.Status.Phase == api.PhaseSucceeded })
	f.MustCreate("tick",
		"terminationGracePeriodSeconds = 0\n"+container("c", "n=0; while :; do n=$((n + 1)); echo tick $n; sleep 0.02; done"))
	for i := range floods {
		f.MustCreate(fmt.Sprint("flood", i),
			"terminationGracePeriodSeconds = 0\n"+container("c", "exec yes a line of a container that writes as fast as it can"))
	}
	// Between two checks of the daemon, each flood fills its files.
	check := func(what string, limit int64) {
		t.Helper()
		if used := f.logSize(""); used > limit {
			t.Errorf("%s: all logs have %d MiB, want at most %d MiB", what, used/mi, limit/mi)
		}
	}
	const margin = floods * files * mi
	var slowest time.Duration
	samples := 0
	f.Await(func() error {
		samples++
		check("with the daemon", total+margin)
		start := time.Now()
		f.MustRun("get")
		slowest = max(slowest, time.Since(start))
		log, err := os.ReadFile(f.DaemonLog())
		if err == nil && (!strings.Contains(string(log), "removed the oldest logs") || samples < 20) {
			err = fmt.Errorf("%d samples, the daemon has removed no logs", samples)
		}
		return err
	})
	t.Logf("slowest response of the daemon: %v", slowest.Round(time.Millisecond))
	f.Await(func() error {
		if used := f.logSize("done_"); used > mi {
			return fmt.Errorf("the log of the finished pod has %d bytes, want its current file at most", used)
		}
		return nil
	})
	f.Await(func() error { // floods delay it on a busy host
		if n := strings.Count(f.MustRun("logs", "tick"), "\n"); n < ticks {
			return fmt.Errorf("the log of the other pod has %d lines", n)
		}
		return nil
	})
	f.MustKillDaemon()
	for range 100 {
		check("without the daemon", total+margin)
	}
	f.checkTicks(f.MustRun("logs", "tick")) // starts the daemon
	for i := range floods {
		f.MustRun("delete", fmt.Sprint("flood", i))
	}
	f.Await(func() error {
		if used := f.logSize(""); used > total {
			return fmt.Errorf("all logs have %d bytes", used)
		}
		return nil
	})
	f.MustRun("delete", "done", "tick")
}

// logSize returns the size of the logs of the pods whose directory has this prefix.
func (f *fixture) logSize(prefix string) (size int64) {
	f.Helper()
	err := filepath.WalkDir(f.LogDir(), func(path string, e fs.DirEntry, err error) error {
		below, _ := filepath.Rel(f.LogDir(), path)
		if err != nil || e.IsDir() || !strings.HasPrefix(below, prefix) {
			return ignoreMissing(err)
		}
		info, err := e.Info()
		if err == nil {
			size += info.Size()
		}
		return ignoreMissing(err)
	})
	f.Check(err)
	return size
}

// ignoreMissing returns nil for a file that was rotated meanwhile.
func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// checkTicks checks that a log has consecutive lines.
func (f *fixture) checkTicks(log string) {
	f.Helper()
	lines := strings.Split(strings.TrimSuffix(log, "\n"), "\n")
	for i, line := range lines {
		if line != fmt.Sprint("tick ", i+1) {
			f.Fatalf("line %d of %d is %q", i+1, len(lines), line)
		}
	}
	if len(lines) < ticks {
		f.Errorf("%d lines, want at least %d", len(lines), ticks)
	}
}
