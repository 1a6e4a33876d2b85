package monitor

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// token identifies a registration in a loop. It is never reused, unlike a descriptor.
type token uint64

// loop waits for descriptors and timers, and calls what they are registered with in one goroutine, which owns all state of the monitor.
// Only post and do may be called from other goroutines.
type loop struct {
	fd, wake int
	last     token
	watched  map[token]watch
	timers   []timer // sorted by time
	failed   func(what any)

	mu     sync.Mutex
	posted []func()
	ended  bool
	end    chan struct{} // closed when the loop has returned
}

// watch is a descriptor and what is called when it is ready.
type watch struct {
	fd int
	// ready is called with the events of epoll. A watch whose ready panics is removed.
	ready func(events uint32)
}

type timer struct {
	at   time.Time
	id   token
	call func()
}

// newLoop returns a loop. failed is called with what a function has panicked with.
func newLoop(failed func(what any)) (*loop, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll: %w", err)
	}
	l := &loop{fd: fd, watched: map[token]watch{}, failed: failed, end: make(chan struct{})}
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, errors.Join(fmt.Errorf("create eventfd: %w", err), unix.Close(fd))
	}
	_, err = l.watch(l.wake, func(uint32) {
		var count [8]byte
		_, _ = unix.Read(l.wake, count[:]) // resets it
	})
	return l, err
}

// watch calls ready when a descriptor is readable; see change for other events. The caller calls unwatch before it closes the descriptor.
func (l *loop) watch(fd int, ready func(events uint32)) (token, error) {
	l.last++
	t := l.last
	if err := unix.EpollCtl(l.fd, unix.EPOLL_CTL_ADD, fd, event(t, unix.EPOLLIN)); err != nil {
		return 0, fmt.Errorf("watch descriptor: %w", err)
	}
	l.watched[t] = watch{fd, ready}
	return t, nil
}

// event has the token in the 64 bits that epoll returns.
func event(t token, events uint32) *unix.EpollEvent {
	return &unix.EpollEvent{Events: events, Fd: int32(uint32(t)), Pad: int32(uint32(t >> 32))}
}

func tokenOf(e unix.EpollEvent) token { return token(uint32(e.Fd)) | token(uint32(e.Pad))<<32 }

// change changes the events of a watch. It does nothing for one that was removed.
func (l *loop) change(t token, events uint32) {
	if w, has := l.watched[t]; has {
		_ = unix.EpollCtl(l.fd, unix.EPOLL_CTL_MOD, w.fd, event(t, events)) // fails only without memory, and then wakes more often
	}
}

// unwatch removes a watch. It does nothing for one that was removed.
func (l *loop) unwatch(t token) {
	if w, has := l.watched[t]; has {
		delete(l.watched, t)
		_ = unix.EpollCtl(l.fd, unix.EPOLL_CTL_DEL, w.fd, nil) // it is registered
	}
}

// after calls a function once, unless it is cancelled.
func (l *loop) after(d time.Duration, call func()) (cancel func()) {
	l.last++
	t := timer{at: time.Now().Add(d), id: l.last, call: call}
	at, _ := slices.BinarySearchFunc(l.timers, t, func(a, b timer) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return int(a.id) - int(b.id)
	})
	l.timers = slices.Insert(l.timers, at, t)
	return func() {
		l.timers = slices.DeleteFunc(l.timers, func(other timer) bool { return other.id == t.id })
	}
}

// post calls a function in the loop, later. It does nothing after the end of the loop.
func (l *loop) post(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.posted = append(l.posted, f)
	if len(l.posted) == 1 {
		one := [8]byte{1} // in the byte order of all architectures it is not 0
		_, _ = unix.Write(l.wake, one[:])
	}
}

// do calls a function in the loop and waits for it. It returns false if the loop has returned.
func (l *loop) do(f func()) bool {
	done := make(chan struct{})
	l.post(func() {
		defer close(done)
		f()
	})
	select {
	case <-done:
		return true
	case <-l.end:
		return false
	}
}

// run runs the loop until stop was called.
func (l *loop) run() error {
	defer close(l.end)
	events := make([]unix.EpollEvent, 64)
	for !l.ended {
		n, err := retry(func() (int, error) { return unix.EpollWait(l.fd, events, l.timeout(time.Now())) })
		if err != nil {
			return fmt.Errorf("wait for events: %w", err)
		}
		for _, e := range events[:n] {
			t := tokenOf(e)
			if w, has := l.watched[t]; has && !l.call(func() { w.ready(e.Events) }) {
				l.unwatch(t)
			}
		}
		for _, f := range l.takePosted() {
			l.call(f)
		}
		for now := time.Now(); len(l.timers) > 0 && !l.timers[0].at.After(now); {
			t := l.timers[0]
			l.timers = slices.Delete(l.timers, 0, 1)
			l.call(t.call)
		}
	}
	return nil
}

// stop ends the loop after this turn.
func (l *loop) stop() { l.ended = true }

func (l *loop) takePosted() []func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	posted := l.posted
	l.posted = nil
	return posted
}

// timeout returns the argument of epoll_wait.
func (l *loop) timeout(now time.Time) int {
	if len(l.timers) == 0 {
		return -1
	}
	left := (l.timers[0].at.Sub(now) + time.Millisecond - 1) / time.Millisecond
	return int(min(max(left, 0), math.MaxInt32))
}

// call calls a function. It reports false if the function has panicked.
func (l *loop) call(f func()) (ok bool) {
	defer func() {
		if what := recover(); what != nil {
			logf("internal error: %v\n%s", what, debug.Stack())
			l.failed(what)
		}
	}()
	f()
	return true
}
