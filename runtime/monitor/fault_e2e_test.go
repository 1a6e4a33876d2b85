//go:build e2e

package monitor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/runtime/ocibundle"
)

// worker has a connection of its own, and repeats requests whose connection is lost as a daemon does.
type worker struct {
	w      *world
	client *Client
}

// connected returns a connection.
func (k *worker) connected() *Client {
	for k.client == nil {
		ctx, cancel := context.WithTimeout(k.w.ctx, 10*time.Second)
		c, err := Dial(ctx, k.w.dir())
		cancel()
		if err == nil {
			k.client = c
			break
		}
		<-time.After(5 * time.Millisecond)
	}
	return k.client
}

// lost reports whether a request must be tried again.
func (k *worker) lost(err error) bool {
	if errors.Is(err, ErrClosed) {
		_ = k.client.Close()
		k.client = nil
		return true
	}
	return errdefs.IsUnavailable(err)
}

// state returns the state of a container; nil: there is none.
func (k *worker) state(id string) (*Container, error) {
	for {
		c, err := k.connected().State(k.w.ctx, id)
		switch {
		case errdefs.IsNotFound(err):
			return nil, nil
		case k.lost(err):
			continue
		}
		return &c, err
	}
}

// live creates, starts, uses and deletes a container. All that a client may see is checked.
func (k *worker) live(r Create, code uint32) error {
	for {
		_, err := k.connected().Create(k.w.ctx, r)
		if err == nil {
			break
		}
		if !k.lost(err) {
			return err
		}
		s, err := k.state(r.ID)
		if err != nil {
			return err
		}
		if s != nil {
			if s.Phase != Created {
				return fmt.Errorf("after a lost create: %+v", *s)
			}
			break
		}
	}
	for {
		_, err := k.connected().Start(k.w.ctx, r.ID)
		if err == nil {
			break
		}
		if !k.lost(err) {
			return fmt.Errorf("start: %w", err)
		}
		if s, err := k.state(r.ID); err != nil || s == nil {
			return fmt.Errorf("after a lost start: %v, %w", s, err)
		} else if s.Phase != Created {
			break
		}
	}
	if err := k.probe(r.ID); err != nil {
		return err
	}
	for {
		s, err := k.state(r.ID)
		if err != nil || s == nil {
			return fmt.Errorf("while it runs: %v, %w", s, err)
		}
		if s.Exit != nil {
			if s.Exit.Code != code || s.Exit.Unknown {
				return fmt.Errorf("exit %+v, want %d", *s.Exit, code)
			}
			break
		}
		<-time.After(5 * time.Millisecond)
	}
	for {
		_, err := k.connected().Delete(k.w.ctx, r.ID)
		if err == nil {
			return nil
		}
		if !k.lost(err) {
			return fmt.Errorf("delete: %w", err)
		}
		if s, err := k.state(r.ID); err != nil || s == nil {
			return err
		}
	}
}

// probe runs a command until it has succeeded, and starts another one.
func (k *worker) probe(id string) error {
	for {
		r := Run{Container: id, Mark: "m-1-" + id, Process: k.w.processJSON("echo probe", "m-1-"+id), Timeout: patience}
		_, err := k.connected().Run(k.w.ctx, r)
		if errdefs.IsFailedPrecondition(err) || errdefs.IsNotFound(err) { // the container has exited
			return nil
		}
		if err == nil {
			break
		}
		if !k.lost(err) && !strings.Contains(err.Error(), "OCI runtime exec failed") {
			return fmt.Errorf("run: %w", err)
		}
		if s, err := k.state(id); err != nil || s == nil || s.Exit != nil {
			return err
		}
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for {
		r := Exec{Container: id, ID: "e", Process: k.w.processJSON("sleep 0.1; exit 4", "")}
		_, err := k.connected().Exec(k.w.ctx, r, &[3]*os.File{null, null, null})
		if err == nil || !k.lost(err) {
			break // it may have exited, which is looked at next
		}
		s, err := k.state(id)
		if err != nil || s == nil || s.Exit != nil || len(s.Processes) > 0 {
			return err
		}
	}
	for {
		s, err := k.state(id)
		if err != nil || s == nil || s.Exit != nil || len(s.Processes) == 0 {
			return err
		}
		if e := s.Processes[0].Exit; e != nil {
			if e.Code != 4 && e.Code != 137 || e.Unknown { // 137: the container has exited
				return fmt.Errorf("exit of a command: %+v", *e)
			}
			return nil
		}
		<-time.After(5 * time.Millisecond)
	}
}

// churn lets workers create and delete containers until stop is closed.
func (w *world) churn(workers int, stop <-chan struct{}) (wait func()) {
	var all sync.WaitGroup
	var mu sync.Mutex
	var lived int
	for range workers {
		all.Go(func() {
			k := &worker{w: w}
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				mu.Lock()
				code := uint32(n%100 + 1)
				r := w.bundle(testContainer{hostPID: n%4 == 3}, fmt.Sprintf("echo started; sleep 0.3; echo ends; exit %d", code))
				mu.Unlock()
				if err := k.live(r, code); err != nil {
					w.Errorf("container %s: %v", r.ID, err)
					return
				}
				mu.Lock()
				w.wantLog(r.ID, "started", "ends")
				lived++
				mu.Unlock()
			}
		})
	}
	return func() {
		all.Wait()
		w.Logf("%d containers", lived)
		if lived < workers {
			w.Errorf("only %d containers of %d workers", lived, workers)
		}
	}
}

// TestKillsInProgress kills the monitor while containers are created, started, used and deleted.
func TestKillsInProgress(t *testing.T) {
	w := newWorld(t)
	stop := make(chan struct{})
	wait := w.churn(3, stop)
	for range 60 * storm(t) {
		rest(400 * time.Millisecond)
		_, monitor := w.pids()
		w.kill(monitor)
		w.connect()
	}
	close(stop)
	wait()
	w.wantNothing()
}

// TestKeeperKilled kills the keeper, in turns with the monitor, with containers that run.
func TestKeeperKilled(t *testing.T) {
	w := newWorld(t)
	writer := w.run(testContainer{stdin: ocibundle.OpenStdin},
		`i=0; while [ $i -lt 200 ]; do echo $i; i=$((i+1)); sleep 0.02; done; cat; exit 21`)
	stop := make(chan struct{})
	wait := w.churn(2, stop)
	for range 8 * storm(t) {
		rest(time.Second)
		keeper, monitor := w.pids()
		w.kill(keeper)
		w.eventually("the monitor is the keeper", func() error {
			w.connect()
			h, err := w.client.Hello(w.ctx)
			if err == nil && h.Keeper != monitor {
				err = fmt.Errorf("keeper %d, want %d", h.Keeper, monitor)
			}
			return err
		})
	}
	close(stop)
	wait()
	w.eventually("all is written", func() error { return w.lines(writer.ID, 200) })
	w.must(w.client.CloseInput(w.ctx, writer.ID))
	if e := w.awaitExit(writer.ID); e.Code != 21 || e.Unknown {
		t.Errorf("exit: %+v", e)
	}
	w.delete(writer.ID)
	w.wantNumbers(writer.ID, 200)
	w.wantNothing()
}

// TestBothKilled kills keeper and monitor together: containers run on, and their output is not lost. An exit meanwhile is unknown.
func TestBothKilled(t *testing.T) {
	w := newWorld(t)
	// This process is the parent of orphans then, and reaps the one whose exit nobody sees.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	c := w.run(testContainer{}, `i=0; while [ $i -lt 300 ]; do echo $i; i=$((i+1)); sleep 0.02; done; exit 5`)
	short := w.run(testContainer{}, `sleep 1000`)
	for i := range 3 * storm(t) {
		rest(500 * time.Millisecond)
		w.killRoles()
		if i == 0 {
			w.must(unix.Kill(short.PID, unix.SIGKILL)) // it exits while nothing waits for it
			if _, err := retry(func() (int, error) { return unix.Wait4(short.PID, nil, 0, nil) }); err != nil {
				t.Fatalf("wait for the short container: %v", err)
			}
		}
		w.startKeeper()
		w.connect()
	}
	if e := w.awaitExit(short.ID); !e.Unknown || e.Code != 255 {
		t.Errorf("exit while nobody watched: %+v", e)
	}
	w.delete(short.ID)
	e := w.awaitExit(c.ID)
	if e.Code != 5 || e.Unknown {
		t.Errorf("exit of a child of this process: %+v", e)
	}
	_, err := retry(func() (int, error) { return unix.Wait4(c.PID, nil, 0, nil) })
	w.must(err)
	w.delete(c.ID)
	w.wantNumbers(c.ID, 300)
	w.wantNothing()
}

// TestReplace replaces monitor and keeper by other programs, while containers write and are created.
func TestReplace(t *testing.T) {
	w := newWorld(t)
	text, err := os.ReadFile(program)
	w.must(err)
	other := filepath.Join(w.base, "other-monitor")
	w.must(os.WriteFile(other, text, 0o755))
	writer := w.run(testContainer{}, `i=0; while [ $i -lt 400 ]; do echo $i; i=$((i+1)); sleep 0.01; done; exit 22`)
	tty := w.run(testContainer{terminal: true, stdin: ocibundle.OpenStdin}, `while read line; do echo "got $line"; done`)
	stop := make(chan struct{})
	wait := w.churn(2, stop)
	for i := range 5 * storm(t) {
		rest(500 * time.Millisecond)
		to := []string{other, program}[i%2]
		keeper, monitor := w.pids()
		w.must(w.client.Replace(w.ctx, to))
		w.eventually("the program runs", func() error {
			w.connect()
			k, m := w.pids()
			if k != keeper || m != monitor {
				t.Fatalf("keeper %d, monitor %d became %d, %d", keeper, monitor, k, m)
			}
			for _, pid := range []int{k, m} {
				if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err != nil || exe != to {
					return fmt.Errorf("process %d executes %s, %w", pid, exe, err)
				}
			}
			return nil
		})
	}
	close(stop)
	wait()
	w.talk(w.attach(tty.ID), "x\n", "got x")

	// Programs that cannot take over.
	refused := map[string]string{
		"missing":   "",
		"text":      "not a program",
		"newer":     "#!/bin/sh\necho '{\"version\":\"9\",\"format\":9,\"reads\":[9]}'\n",
		"fails":     "#!/bin/sh\nexit 3\n",
		"hangs":     "#!/bin/sh\nexec sleep 1000\n",
		"says else": "#!/bin/sh\necho hello\n",
	}
	_, monitor := w.pids()
	for name, text := range refused {
		path := filepath.Join(w.base, name)
		if text != "" {
			w.must(os.WriteFile(path, []byte(text), 0o755))
		}
		if err := w.client.Replace(w.ctx, path); !errdefs.IsFailedPrecondition(err) {
			t.Errorf("replaced by the program that is %s: %v", name, err)
		}
	}
	if _, same := w.pids(); same != monitor {
		t.Errorf("monitor %d became %d", monitor, same)
	}
	// One that promises to take over, and exits: the keeper starts the one before.
	liar := filepath.Join(w.base, "liar")
	w.must(os.WriteFile(liar, fmt.Appendf(nil, "#!/bin/sh\n[ $1 = version ] || exit 1\necho '{\"reads\":[%d]}'\n", Format), 0o755))
	w.must(w.client.Replace(w.ctx, liar))
	w.connect()
	if e := w.awaitExit(writer.ID); e.Code != 22 || e.Unknown {
		t.Errorf("exit: %+v", e)
	}
	w.delete(writer.ID)
	w.wantNumbers(writer.ID, 400)
	w.killAndDelete(tty.ID)
	w.wantNothing()
}

// wantNumbers checks that a log has the numbers from 0.
func (w *world) wantNumbers(id string, n int) {
	w.Helper()
	lines := w.log(id, "")
	for i, line := range lines {
		if line != fmt.Sprint(i) {
			w.Errorf("log of %s: line %d is %q", id, i, line)
			return
		}
	}
	if len(lines) != n {
		w.Errorf("log of %s: %d lines, want %d", id, len(lines), n)
	}
}

// TestManyExits has 1,000 commands that exit at once. Meanwhile another container writes its lines, and its probes are answered.
func TestManyExits(t *testing.T) {
	w := newWorld(t)
	quiet := w.run(testContainer{}, `while :; do echo line; sleep 0.05; done`)
	busy := w.run(testContainer{hostPID: true}, `i=0; while [ $i -lt 1000 ]; do (sleep 1000 & ) ; i=$((i+1)); done; echo ready; sleep 1000`)
	w.eventually("1,000 processes run", func() error {
		pids, err := w.client.PIDs(w.ctx, busy.ID)
		if err == nil && len(pids) < 1000 {
			err = fmt.Errorf("%d processes", len(pids))
		}
		return errors.Join(err, w.lines(busy.ID, 1))
	})
	pids, err := w.client.PIDs(w.ctx, busy.ID)
	w.must(err)
	for _, pid := range pids {
		if pid != busy.PID {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	before := len(w.log(quiet.ID, ""))
	w.must(w.probe(quiet.ID, 10*time.Second))
	w.eventually("the quiet container writes", func() error { return w.lines(quiet.ID, before+2) })
	_, monitor := w.pids()
	w.eventually("orphans are reaped", func() error {
		for _, pid := range childrenOf(monitor) {
			if s, err := proc.StatOf(pid); err == nil && s.State == 'Z' {
				return fmt.Errorf("%d is a zombie", pid)
			}
		}
		return nil
	})
	w.killAndDelete(busy.ID)
	w.killAndDelete(quiet.ID)
	w.wantNothing()
}

// TestHungRuntime has OCI runtimes that do not return: requests for other containers are answered, and the hung ones are killed.
func TestHungRuntime(t *testing.T) {
	w := newWorld(t)
	c := w.run(testContainer{}, "sleep 1000")
	hangs := filepath.Join(w.base, "hangs")
	real, err := exec.LookPath(w.binary)
	w.must(err)
	w.must(os.WriteFile(hangs, fmt.Appendf(nil, `#!/bin/sh
case "$*" in *" create "*) kill -STOP $$ ;; esac
exec %s "$@"
`, real), 0o755))
	r := w.bundle(testContainer{}, "true")
	r.Runtime.Binary = hangs
	created := make(chan error, 1)
	go func() {
		k := &worker{w: w}
		_, err := k.connected().Create(w.ctx, r)
		created <- err
	}()
	var stopped int
	w.eventually("the OCI runtime is stopped", func() error {
		for dir, runs := range interruptedRuns(w.dir()) {
			for _, run := range runs {
				if s, err := proc.StatOf(run.pid); err == nil && s.State == 'T' && strings.Contains(dir, r.ID) {
					stopped = run.pid
					return nil
				}
			}
		}
		return errors.New("no such process")
	})
	begun := time.Now()
	w.must(w.probe(c.ID, patience))
	if d := time.Since(begun); d > 30*time.Second {
		t.Errorf("a probe took %v", d)
	}
	// The next monitor waits for it, and its list does not have the container.
	_, monitor := w.pids()
	w.kill(monitor)
	w.connect()
	list, _, err := w.client.List(w.ctx)
	w.must(err)
	if len(list) != 1 || list[0].ID != c.ID {
		t.Errorf("list: %+v", list)
	}
	if err := <-created; !errors.Is(err, ErrClosed) {
		t.Errorf("create: %v", err)
	}
	w.subscribe()
	w.kill(stopped)
	w.event(func(e Event) bool { return e.Kind == EventLost && e.Container == r.ID })
	w.removeBundles(r)

	// A runtime that hangs while a probe is started is killed at the timeout of the probe.
	w.must(os.WriteFile(hangs, fmt.Appendf(nil, `#!/bin/sh
case "$*" in *" exec "*) kill -STOP $$ ;; esac
exec %s "$@"
`, real), 0o755))
	r = w.bundle(testContainer{}, "sleep 1000")
	r.Runtime.Binary = hangs
	_, err = w.client.CreateAndStart(w.ctx, r)
	w.must(err)
	err = w.probe(r.ID, time.Second)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("run with a runtime that hangs: %v", err)
	}
	w.killAndDelete(r.ID)
	w.killAndDelete(c.ID)
	w.wantNothing()
}

// probe runs a command that succeeds.
func (w *world) probe(id string, timeout time.Duration) error {
	w.next++
	mark := fmt.Sprintf("m-%d-probe", w.next)
	_, err := w.client.Run(w.ctx, Run{Container: id, Mark: mark, Process: w.processJSON("true", mark), Timeout: timeout})
	return err
}

// TestFlood has a container that writes as much as it can: another one's lines and probes are not late.
func TestFlood(t *testing.T) {
	w := newWorld(t)
	quiet := w.run(testContainer{}, `while :; do echo line; sleep 0.05; done`)
	probe := func() time.Duration {
		var all []time.Duration
		for range 10 {
			begun := time.Now()
			before := len(w.log(quiet.ID, ""))
			w.eventually("the quiet container writes", func() error { return w.lines(quiet.ID, before+1) })
			_, err := w.client.State(w.ctx, quiet.ID)
			w.must(err)
			all = append(all, time.Since(begun))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	calm := probe()
	flood := w.run(testContainer{}, "yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")
	flooded := probe()
	t.Logf("median until a line and an answer: %v, with a flood %v", calm, flooded)
	if flooded > 2*calm+time.Second { // loaded machines
		t.Errorf("a flood delays others: %v, %v without", flooded, calm)
	}
	w.killAndDelete(flood.ID)
	w.killAndDelete(quiet.ID)
	w.wantNothing()
}

// TestMemory measures the private memory of a monitor with containers at rest.
func TestMemory(t *testing.T) {
	w := newWorld(t)
	containers := 60
	if text := os.Getenv("PODSTEAD_MONITOR_CONTAINERS"); text != "" {
		_, err := fmt.Sscan(text, &containers)
		w.must(err)
	}
	var ids []string
	for range containers {
		ids = append(ids, w.run(testContainer{}, "echo x; sleep 1000").ID)
	}
	keeper, monitor := w.pids()
	limit := 6 << 10
	<-time.After(calmTime + 5*time.Second)
	w.eventually("it returns memory", func() error {
		kib := privateKiB(t, monitor)
		if kib > limit {
			return fmt.Errorf("%d KiB private", kib)
		}
		return nil
	})
	t.Logf("%d containers: monitor %d KiB private, keeper %d KiB", containers, privateKiB(t, monitor), privateKiB(t, keeper))
	begun := time.Now()
	w.kill(monitor)
	w.connect()
	t.Logf("the next monitor answers after %v", time.Since(begun))
	for _, id := range ids {
		w.killAndDelete(id)
	}
	w.wantNothing()
}

// privateKiB returns the private memory of a process.
func privateKiB(t *testing.T, pid int) (kib int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		var n int
		if strings.HasPrefix(line, "Private_") {
			if _, err := fmt.Sscan(strings.Fields(line)[1], &n); err == nil {
				kib += n
			}
		}
	}
	return kib
}

// TestDamagedRecords has records that cannot be read: they affect no other container.
func TestDamagedRecords(t *testing.T) {
	w := newWorld(t)
	c := w.run(testContainer{}, "sleep 1000")
	containers := filepath.Join(w.dir(), containersDir)
	for name, text := range map[string]string{
		"damaged": `{"format":1,"cre`, "later": `{"format":99,"create":{"id":"later"}}`, "other": `{"format":1,"create":{"id":"x"}}`,
	} {
		w.must(os.MkdirAll(filepath.Join(containers, name), 0o700))
		w.must(os.WriteFile(filepath.Join(containers, name, recordFile), []byte(text), 0o600))
	}
	w.must(os.MkdirAll(filepath.Join(containers, "empty", execsDir), 0o700)) // not created, or removed in part
	w.must(os.WriteFile(filepath.Join(w.dir(), sandboxesDir, "s.json"), []byte("{"), 0o600))
	w.must(os.WriteFile(filepath.Join(w.dir(), countFile), []byte("x"), 0o600))
	w.must(os.WriteFile(filepath.Join(w.dir(), "c123.sock"), nil, 0o600))
	_, monitor := w.pids()
	w.kill(monitor)
	w.connect()
	w.subscribe()
	failed := map[string]bool{}
	for len(failed) < 4 {
		e := w.event(func(e Event) bool { return e.Kind == EventFailed })
		failed[e.Container+e.Sandbox] = true
	}
	for _, name := range []string{"damaged", "later", "other", "s"} {
		if !failed[name] {
			t.Errorf("no event for %s: %v", name, failed)
		}
	}
	if _, err := os.Stat(filepath.Join(containers, "empty")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory without record: %v", err)
	}
	w.must(w.probe(c.ID, patience))
	for name := range failed {
		w.must(os.RemoveAll(filepath.Join(containers, name)))
	}
	w.killAndDelete(c.ID)
	w.wantNothing()
}

// TestFullState has a state directory without space: exits and output are recorded when there is some again.
func TestFullState(t *testing.T) {
	w := newWorldOn(t, func(dir string) error { return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m") })
	c := w.run(testContainer{}, "sleep 1000")
	w.must(w.probe(c.ID, patience))
	fill := filepath.Join(w.dir(), "fill")
	f, err := os.Create(fill)
	w.must(err)
	defer f.Close()
	full := func() {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, 4<<10))
		}
	}
	full()
	if err := w.probe(c.ID, patience); err == nil {
		t.Error("ran a command without space for its record")
	}
	_, monitor := w.pids()
	w.kill(monitor)
	w.connect()
	full() // a monitor removes files when it starts
	w.must(unix.Kill(c.PID, unix.SIGKILL))
	if s, err := w.client.State(w.ctx, c.ID); err == nil && s.Phase == Exited {
		t.Errorf("state while the exit cannot be recorded: %+v", s)
	}
	w.must(errors.Join(f.Truncate(0), os.Remove(fill)))
	if e := w.awaitExit(c.ID); e.Code != 137 || e.Unknown {
		t.Errorf("exit %+v", e)
	}
	w.delete(c.ID)
	w.wantNothing()
}

// TestFrozenDisk freezes the disk of one container's log, and kills the monitor, which cannot exit then. Others are not affected.
func TestFrozenDisk(t *testing.T) {
	w := newWorld(t)
	image, disk := filepath.Join(w.base, "image"), filepath.Join(w.base, "disk")
	w.must(os.Mkdir(disk, 0o755))
	w.must(errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 16<<20)))
	for _, args := range [][]string{{"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, disk}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	defer func() {
		w.eventually("the disk is unmounted", func() error { return unix.Unmount(disk, 0) })
	}()
	slow := w.run(testContainer{logs: disk}, `i=0; while [ $i -lt 300 ]; do echo $i; i=$((i+1)); sleep 0.01; done; exit 7`)
	quiet := w.run(testContainer{}, `while :; do echo line; sleep 0.05; done`)
	_, monitor := w.pids()

	// If this process dies the disk thaws.
	frozen := exec.Command("sh", "-c", `fsfreeze -f "$0" && echo frozen && read end; fsfreeze -u "$0"`, disk)
	end, err := frozen.StdinPipe()
	w.must(err)
	output, err := frozen.StdoutPipe()
	w.must(err)
	w.must(frozen.Start())
	thaw := sync.OnceFunc(func() {
		_ = end.Close()
		_ = frozen.Wait()
	})
	defer thaw()
	if _, err := output.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	w.eventually("the monitor waits for the disk", func() error {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", monitor))
		for _, task := range tasks {
			if text, err := os.ReadFile(task); err == nil {
				if s, err := proc.ParseStat(text); err == nil && s.State == 'D' {
					return nil
				}
			}
		}
		return errors.New("no thread waits")
	})
	if s, err := proc.StatOf(monitor); err != nil || s.State == 'D' {
		t.Fatalf("the first thread, by which the keeper notices that a monitor cannot exit, waits for the disk: %v", err)
	}
	works := func() {
		t.Helper()
		before := len(w.log(quiet.ID, ""))
		w.eventually("the quiet container writes", func() error { return w.lines(quiet.ID, before+2) })
		w.must(w.probe(quiet.ID, patience))
	}
	works()
	if err := w.client.Replace(w.ctx, program); !errdefs.IsUnavailable(err) || errors.Is(err, ErrClosed) {
		t.Errorf("replace a monitor that waits for a disk: %v", err)
	}
	works()
	w.must(unix.Kill(monitor, unix.SIGKILL))
	w.eventually("another monitor answers", func() error {
		w.connect()
		h, err := w.client.Hello(w.ctx)
		if err == nil && h.PID == monitor {
			err = errors.New("the same one")
		}
		return err
	})
	works()
	w.killAndDelete(quiet.ID)
	thaw()
	if e := w.awaitExit(slow.ID); e.Code != 7 || e.Unknown {
		t.Errorf("exit %+v", e)
	}
	w.delete(slow.ID)
	w.wantNumbers(slow.ID, 300)
	w.eventually("the killed monitor is reaped", func() error {
		if isProcess(monitor, startOf(monitor)) {
			return errors.New("it is a process")
		}
		return nil
	})
	w.wantNothing()
}

func startOf(pid int) uint64 {
	s, err := proc.StatOf(pid)
	if err != nil {
		return 0
	}
	return s.Start
}
