//go:build e2e

package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/monitor"
)

const (
	counting = `i=0; while :; do i=$((i+1)); echo line $i; usleep 3000; done`
	waiting  = `while [ ! -e /tmp/go ]; do usleep 10000; done; exit 7`
)

// The next daemon reconnects to running containers, learns of exits in between, and no log line is lost.
func TestNextDaemonRecoversContainers(t *testing.T) {
	w := newEnv(t)
	d := w.startDaemon(map[string]string{"counter": counting, "ends": waiting})
	w.kill(d)
	killed := time.Now()
	if err := os.WriteFile(filepath.Join(w.rootfs, "tmp/go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.eventually("exit without a daemon", func() (string, bool) {
		_, err := os.Stat(filepath.Join(monitor.ContainersDir(MonitorDir(w.options().State)), "ends/exit.json"))
		return fmt.Sprint(err), err == nil
	})
	<-time.After(300 * time.Millisecond) // some lines
	back := time.Now()

	e := w.start()
	defer w.stop(e)
	if got := e.MissedExits(); len(got) != 1 || got["ends"].Status != 7 || got["ends"].At.Before(killed) || got["ends"].At.After(back) {
		t.Errorf("missed exits: %v", got)
	}
	ends := w.load(e, "ends")
	if st, err := ends.Status(ctxOf(t)); err != nil || st.Status != client.Stopped || st.ExitStatus != 7 {
		t.Errorf("status of the exited container: %+v, %v", st, err)
	}
	if got := w.exited(ends); got != 7 {
		t.Errorf("exit of the exited container: %d", got)
	}
	counter := w.load(e, "counter")
	if st, err := counter.Status(ctxOf(t)); err != nil || st.Status != client.Running {
		t.Errorf("status of the running container: %+v, %v", st, err)
	}
	if err := counter.Kill(ctxOf(t), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := w.exited(counter); got != 137 {
		t.Errorf("exit after kill: %d", got)
	}
	w.delete(ends)
	w.delete(counter)
	w.remove(e, "pod")

	away := 0
	lines := w.lines("counter")
	for i, l := range lines {
		if want := "line " + strconv.Itoa(i+1); string(l.Text) != want {
			t.Fatalf("log: got %q, want %q", l.Text, want)
		}
		if l.Time.After(killed) && l.Time.Before(back) {
			away++
		}
	}
	if away == 0 {
		t.Errorf("none of %d lines was written without a daemon", len(lines))
	}
	t.Logf("%d lines, %d of them without a daemon", len(lines), away)
}

// The daemon is killed at various moments of its start and of the creation of sandbox and containers. The next engine can remove
// everything.
func TestDaemonKilledDuringStart(t *testing.T) {
	w := newEnv(t)
	for round := range 25 {
		cmd, _ := w.spawnDaemon(map[string]string{"a": "sleep 1000", "b": "exit 0"})
		<-time.After(time.Duration(round) * 12 * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		e := w.start()
		ctx := ctxOf(t)
		records, err := e.Client().Containers(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range records {
			task, err := record.Task(ctx, nil)
			if err == nil {
				_, err = task.Delete(ctx, client.WithProcessKill)
			}
			if err != nil && !errdefs.IsNotFound(err) {
				t.Errorf("round %d: task %s: %v", round, record.ID(), err)
			}
			if err := record.Delete(ctx); err != nil {
				t.Errorf("round %d: container %s: %v", round, record.ID(), err)
			}
		}
		t.Logf("round %d: %d sandboxes, %d containers, missed exits %v", round, w.sandboxRecords(e), len(records), e.MissedExits())
		w.remove(e, "pod")
		w.stop(e)
		// The monitor exits with the engine.
		w.eventually("exit of all processes", func() (string, bool) {
			var left []string
			for _, pid := range w.processes() {
				left = append(left, cmdline(pid))
			}
			return strings.Join(left, "\n"), len(left) == 0
		})
	}
}

func TestSecondEngineReportsHolderOfLock(t *testing.T) {
	w := newEnv(t)
	d := w.startDaemon(nil)
	_, err := Start(t.Context(), w.options())
	var inUse *ErrInUse
	if !errors.As(err, &inUse) || inUse.Pid != d.Pid || !strings.Contains(err.Error(), strconv.Itoa(d.Pid)) {
		t.Errorf("got %v, want an ErrInUse of process %d", err, d.Pid)
	}
	w.kill(d)
	e := w.start()
	w.remove(e, "pod")
	w.stop(e)
}

// Power loss can leave the directory of a snapshot whose record was not written. The next snapshot of that number is still
// created.
func TestDirectoryOfSnapshotWithoutRecord(t *testing.T) {
	w := newEnv(t)
	e := w.start()
	prepare := func(key string) error {
		_, err := e.Client().SnapshotService("overlayfs").Prepare(ctxOf(t), key, "")
		return err
	}
	if err := prepare("first"); err != nil {
		t.Fatal(err)
	}
	w.stop(e)
	left := filepath.Join(w.options().Root, "io.containerd.snapshotter.v1.overlayfs/snapshots/2/fs")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	e = w.start()
	defer func() { w.stop(e) }()
	if err := prepare("second"); err != nil {
		t.Error(err)
	}
}
