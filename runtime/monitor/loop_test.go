package monitor

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
)

// startLoop runs a loop until the end of the test. panics has what functions have panicked with.
func startLoop(t *testing.T) (l *loop, panics chan any) {
	t.Helper()
	panics = make(chan any, 16)
	l, err := newLoop(func(what any) { panics <- what })
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- l.run() }()
	t.Cleanup(func() {
		l.post(l.stop)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if l.do(func() {}) {
			t.Error("a function was called after the end")
		}
	})
	return l, panics
}

// TestWatch waits for descriptors. An event of a descriptor that was closed in the same turn is not passed to that which has its number.
func TestWatch(t *testing.T) {
	l, panics := startLoop(t)
	fds := make([]int, 2)
	if err := unix.Pipe2(fds, unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	defer closeAll(fds...)
	ready := make(chan struct{}, 100)
	var other token
	l.do(func() {
		first, err := l.watch(fds[0], func(uint32) { t.Error("called after unwatch") })
		if err != nil {
			t.Error(err)
		}
		l.unwatch(first)
		l.unwatch(first)
		l.change(first, unix.EPOLLIN)
		second, err := l.watch(fds[0], func(uint32) {
			var b [1]byte
			_, _ = unix.Read(fds[0], b[:])
			ready <- struct{}{}
		})
		if other = second; err != nil || second == first {
			t.Errorf("token %d after %d, %v", second, first, err)
		}
	})
	if _, err := unix.Write(fds[1], []byte("x")); err != nil {
		t.Fatal(err)
	}
	<-ready

	// A function that panics is not called again, and others are.
	l.do(func() {
		l.unwatch(other)
		_, err := l.watch(fds[0], func(uint32) { panic("oops") })
		if err != nil {
			t.Error(err)
		}
	})
	if _, err := unix.Write(fds[1], []byte("x")); err != nil {
		t.Fatal(err)
	}
	if what := <-panics; what != "oops" {
		t.Errorf("panic %v", what)
	}
	l.do(func() {
		if len(l.watched) != 1 { // its own
			t.Errorf("%d watches", len(l.watched))
		}
	})
}

func TestTimers(t *testing.T) {
	l, _ := startLoop(t)
	var called []int
	done := make(chan struct{})
	l.do(func() {
		l.after(30*time.Millisecond, func() { called = append(called, 3) })
		l.after(10*time.Millisecond, func() { called = append(called, 1) })
		cancel := l.after(5*time.Millisecond, func() { called = append(called, 0) })
		l.after(20*time.Millisecond, func() {
			called = append(called, 2)
			l.after(20*time.Millisecond, func() { close(done) })
		})
		cancel()
		cancel()
	})
	<-done
	l.do(func() {
		if !slices.Equal(called, []int{1, 2, 3}) {
			t.Errorf("called %v", called)
		}
	})
}

// TestLane orders exclusive and other work.
func TestLane(t *testing.T) {
	m := &Monitor{lanes: map[string]*lane{}}
	var order []string
	var finish []func()
	add := func(name string, exclusive bool) {
		m.enter("c", work{exclusive: exclusive, run: func(done func()) {
			order = append(order, name)
			if exclusive {
				finish = append(finish, done)
			}
		}})
	}
	add("probe 1", false)
	add("create", true)
	add("probe 2", false)
	add("delete", true)
	add("create again", true)
	if !slices.Equal(order, []string{"probe 1", "create"}) {
		t.Errorf("order %q", order)
	}
	finish[0]()
	if !slices.Equal(order[2:], []string{"probe 2", "delete"}) {
		t.Errorf("order %q", order)
	}
	finish[1]()
	finish[2]()
	if len(order) != 5 || len(m.lanes) != 0 {
		t.Errorf("order %q, %d lanes are left", order, len(m.lanes))
	}
}

func TestFlights(t *testing.T) {
	var f flights
	if f.any() {
		t.Error("a flight before the first one")
	}
	end := f.begin()
	birth, some := f.oldest()
	now, err := bootTicks()
	if err != nil || !some || birth == 0 || birth > now {
		t.Errorf("oldest %d, %v, now %d, %v", birth, some, now, err)
	}
	ever := f.beginAt(0)
	if birth, _ := f.oldest(); birth != 0 {
		t.Errorf("oldest %d, want 0", birth)
	}
	ever()
	if again, _ := f.oldest(); again != birth {
		t.Errorf("oldest %d, want %d", again, birth)
	}
	end()
	if f.any() {
		t.Error("a flight after the last one")
	}
}

// TestRunsAreNotSwept: a run of the OCI runtime that exits before it is tracked is not reaped by a sweep.
func TestRunsAreNotSwept(t *testing.T) {
	l, _ := startLoop(t)
	score := 0
	m := &Monitor{o: options{score: &score}, loop: l, jobs: map[*job]struct{}{}, base: t.Context}
	m.sweepLater = true // no timer for a later sweep
	l.post(func() {     // until it returns, the run is not tracked
		for {
			for _, pid := range childrenOf(os.Getpid()) {
				name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // other tests have children, too
				if s, err := proc.StatOf(pid); err == nil && s.State == 'Z' && string(name) == "true\n" {
					m.sweepPart([]child{{pid, true}}, false)
					if _, err := proc.StatOf(pid); err != nil {
						t.Errorf("the run was reaped: %v", err)
					}
					return
				}
			}
		}
	})
	c := invocation{runtime: Runtime{Binary: "true", Root: t.TempDir()}, dir: t.TempDir(), action: "state"}
	if _, err := m.run(t.Context(), c); err != nil {
		t.Error(err)
	}
}
