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
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/runtime/ocibundle"
)

// quiet is a container that does little, whose delays are measured.
type quiet struct {
	w       *world
	c       Container
	order   *os.File // the number of a line that the container is to write
	lines   int
	command int
	client  *Client // of events
	null    *os.File
	delays  [3][]time.Duration
}

// What is measured of a quiet container.
var measured = [3]string{"line", "exit", "probe"}

func (w *world) newQuiet() *quiet {
	w.Helper()
	q := &quiet{w: w, client: (&worker{w: w}).connected()}
	q.c = w.run(testContainer{}, "mkfifo /tmp/order; exec 3<>/tmp/order; while read n <&3; do echo line $n; done")
	_, _, _, err := q.client.Subscribe(w.ctx)
	w.must(err)
	w.eventually("the container listens", func() (err error) {
		q.order, err = os.OpenFile(fmt.Sprintf("/proc/%d/root/tmp/order", q.c.PID), os.O_WRONLY|unix.O_NONBLOCK, 0)
		return err
	})
	q.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0)
	w.must(err)
	return q
}

// end removes the container.
func (q *quiet) end() {
	q.w.must(errors.Join(q.order.Close(), q.null.Close()))
	q.w.killAndDelete(q.c.ID)
	q.w.must(q.client.Close())
}

// sample measures once how long it takes from a line that the container is told to write until it is in the log, from the exit of a
// command until its event, and for a probe.
func (q *quiet) sample() {
	w := q.w
	w.Helper()
	q.lines++
	want := fmt.Sprintf(" line %d\n", q.lines)
	begun := time.Now()
	_, err := fmt.Fprintln(q.order, q.lines)
	w.must(err)
	for {
		text, err := os.ReadFile(w.logPath(q.c.ID))
		w.must(err)
		if strings.HasSuffix(string(text), want) {
			break
		}
		if time.Since(begun) > patience {
			w.Fatalf("no line %d", q.lines)
		}
		<-time.After(200 * time.Microsecond)
	}
	q.delays[0] = append(q.delays[0], time.Since(begun))

	q.command++
	id := fmt.Sprintf("x%d", q.command)
	x := Exec{Container: q.c.ID, ID: id, Process: w.processJSON("sleep 1000", "")}
	p, err := w.client.Exec(w.ctx, x, &[3]*os.File{q.null, q.null, q.null})
	w.must(err)
	begun = time.Now()
	w.must(unix.Kill(p.PID, unix.SIGKILL))
	for e := range q.client.Events() {
		if e.Kind == EventExited && e.Container == q.c.ID && e.Exec == id {
			break
		}
	}
	q.delays[1] = append(q.delays[1], time.Since(begun))
	_, err = w.client.DeleteExec(w.ctx, q.c.ID, id)
	w.must(err)

	begun = time.Now()
	w.must(w.probe(q.c.ID, patience))
	q.delays[2] = append(q.delays[2], time.Since(begun))
}

// take returns the medians and the maxima of what was measured since the last call.
func (q *quiet) take() (medians, most [3]time.Duration) {
	for i := range q.delays {
		slices.Sort(q.delays[i])
		medians[i], most[i] = q.delays[i][len(q.delays[i])/2], q.delays[i][len(q.delays[i])-1]
		q.delays[i] = nil
	}
	return medians, most
}

// BenchmarkDelays measures the delays of a quiet container beside hostile ones: the medians in ms, the maxima, and the medians as multiples
// of those without the hostile ones. One iteration takes one sample of each. -benchtime 30x is enough for a median.
func BenchmarkDelays(b *testing.B) {
	for _, hostile := range []struct {
		name string
		// begin starts hostile containers. burst, unless nil, is called before each sample.
		begin func(w *world) (burst, end func())
	}{
		{"none", func(*world) (burst, end func()) { return nil, func() {} }},
		{"flood", beginFlood},
		{"attached-reader", beginUnreadFlood},
		{"probes", beginProbes},
		{"bare-execs", beginExecs},
		{"exits-of-one", func(w *world) (burst, end func()) { return beginExits(w, 1, 1000, orphan) }},
		{"exits-of-25", func(w *world) (burst, end func()) { return beginExits(w, 25, 40, orphan) }},
		{"bare-exits-of-one", func(w *world) (burst, end func()) { return beginExits(w, 1, 1000, ofShell) }},
		{"bare-exits-of-25", func(w *world) (burst, end func()) { return beginExits(w, 25, 40, ofShell) }},
	} {
		b.Run(hostile.name, func(b *testing.B) {
			w := newWorld(b)
			q := w.newQuiet()
			for range 30 {
				q.sample()
			}
			calm, _ := q.take()
			burst, end := hostile.begin(w)
			for b.Loop() {
				if burst != nil {
					b.StopTimer()
					burst()
					b.StartTimer()
				}
				q.sample()
			}
			medians, most := q.take()
			for i, name := range measured {
				b.ReportMetric(float64(medians[i].Microseconds())/1000, name+"-ms")
				b.ReportMetric(float64(most[i].Microseconds())/1000, name+"-max-ms")
				b.ReportMetric(float64(medians[i])/float64(calm[i]), name+"-times")
			}
			end()
			q.end()
			w.wantNothing()
		})
	}
}

// flood is a script that writes as much as it can.
const flood = "yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

func beginFlood(w *world) (burst, end func()) {
	c := w.run(testContainer{log: crilog.Options{MaxBytes: 16 << 20, Keep: 2}}, flood)
	return nil, func() { w.killAndDelete(c.ID) }
}

// beginUnreadFlood attaches a client that does not read what the container writes.
func beginUnreadFlood(w *world) (burst, end func()) {
	c := w.run(testContainer{stdin: ocibundle.OpenStdin, log: crilog.Options{MaxBytes: 16 << 20, Keep: 2}}, flood)
	s := w.attach(c.ID)
	return nil, func() {
		w.must(s.Close())
		w.killAndDelete(c.ID)
	}
}

// busyContainers is how many containers have commands at once.
const busyContainers = 8

// beginProbes runs probes without a pause, and reports their number.
func beginProbes(w *world) (burst, end func()) {
	var clients []*Client
	for range busyContainers {
		clients = append(clients, (&worker{w: w}).connected())
	}
	mark := func(i int) string { return fmt.Sprintf("m-%d-hostile", i) }
	process := func(i int) []byte { return w.processJSON("true", mark(i)) }
	stop := w.repeat(func(ctx context.Context, i int, id string) error {
		_, err := clients[i].Run(ctx, Run{Container: id, Mark: mark(i), Process: process(i), Timeout: patience})
		return err
	})
	return nil, func() {
		stop()
		for _, c := range clients {
			w.must(c.Close())
		}
	}
}

// beginExecs is beginProbes without the monitor: what the OCI runtime alone costs others on this host.
func beginExecs(w *world) (burst, end func()) {
	spec := filepath.Join(w.base, "bare.json")
	w.must(os.WriteFile(spec, w.processJSON("true", ""), 0o600))
	return nil, w.repeat(func(ctx context.Context, _ int, id string) error {
		return exec.CommandContext(ctx, w.binary, "--root", filepath.Join(w.base, "runtime"), "exec", "--process", spec, id).Run()
	})
}

// repeat runs commands in containers at once and without a pause, until the result is called, which reports their number.
func (w *world) repeat(command func(ctx context.Context, i int, id string) error) (stop func()) {
	var ids []string
	for range busyContainers {
		ids = append(ids, w.run(testContainer{}, "sleep 1000").ID)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	var commands atomic.Int64
	var running sync.WaitGroup
	for i, id := range ids {
		running.Go(func() {
			for ctx.Err() == nil {
				if err := command(ctx, i, id); err != nil && ctx.Err() == nil {
					w.Errorf("command: %v", err)
					return
				}
				commands.Add(1)
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
		w.Logf("%d commands", commands.Load())
		for _, id := range ids {
			w.killAndDelete(id)
		}
	}
}

// How a shell starts a process whose parent is the monitor, because it has lost its own, and one whose parent is the shell. The exits of
// the latter show what exits alone cost others on this host.
const orphan, ofShell = "(sleep 1000 &);", "sleep 1000 &"

// beginExits has bursts of exits: so many processes of each of so many containers exit at once.
func beginExits(w *world, containers, each int, start string) (burst, end func()) {
	list := make([]Container, containers)
	for i := range list {
		list[i] = w.run(testContainer{hostPID: true}, fmt.Sprintf("mkfifo /tmp/again; exec 4<>/tmp/again; "+
			"while read n <&4; do i=0; while [ $i -lt %d ]; do %s i=$((i+1)); done; done", each, start))
	}
	processes := func(c Container) []int {
		pids, err := w.client.PIDs(w.ctx, c.ID)
		w.must(err)
		return slices.DeleteFunc(pids, func(pid int) bool { return pid == c.PID })
	}
	burst = func() {
		for _, c := range list {
			var order *os.File
			w.eventually("the container listens", func() (err error) {
				order, err = os.OpenFile(filepath.Join(fmt.Sprintf("/proc/%d/root/tmp/again", c.PID)), os.O_WRONLY|unix.O_NONBLOCK, 0)
				return err
			})
			_, err := fmt.Fprintln(order, "go")
			w.must(errors.Join(err, order.Close()))
		}
		var all []int
		for _, c := range list {
			w.eventually("its processes run", func() error {
				if n := len(processes(c)); n < each {
					return fmt.Errorf("%d processes", n)
				}
				return nil
			})
			all = append(all, processes(c)...)
		}
		for _, pid := range all {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	return burst, func() {
		for _, c := range list {
			w.killAndDelete(c.ID)
		}
	}
}
