package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// newest is a store that keeps the last state.
type newest struct {
	noStore
	mu   sync.Mutex
	save func() error // may be nil
	last state.Pod
}

func (n *newest) Save(e state.Pod) error {
	n.mu.Lock()
	save := n.save
	n.mu.Unlock()
	if save != nil {
		if err := save(); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = e
	return nil
}

func bubbleClock() Clock {
	started := time.Now()
	return func() lifecycle.Instant {
		return lifecycle.Instant{Boot: "b", Mono: time.Since(started), Wall: time.Now()}
	}
}

func sleeper(seconds string) *spec.Pod {
	return &spec.Pod{Name: "p", RestartPolicy: spec.RestartNever, Containers: []spec.Container{
		{Name: "c", Image: "i", Command: []string{"sleep", seconds}},
	}}
}

func leave(t *testing.T, s *Supervisor) {
	if err := s.Leave(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// TestChangeIsSavedBeforeTheAnswer expects every change on the disk when the call returns.
func TestChangeIsSavedBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &newest{save: func() error { time.Sleep(time.Second / 2); return nil }}
		s := New(t.Context(), Options{Runtime: fakeruntime.New(fakeruntime.Options{}), Store: disk, Clock: bubbleClock()})
		defer leave(t, s)
		kept := func() lifecycle.Facts {
			disk.mu.Lock()
			defer disk.mu.Unlock()
			return disk.last.Facts
		}
		pod := sleeper("1000")
		pod.ReadinessGates = []spec.ReadinessGate{{ConditionType: "door"}}
		if _, err := s.Add(pod, state.Owner{}); err != nil || kept().UID == "" {
			t.Errorf("the pod: %v", err)
		}
		time.Sleep(time.Minute)
		if err := s.AddEphemeral(t.Context(), "p", "", &spec.Container{Name: "d", Image: "i"}, ""); err != nil ||
			len(kept().Ephemeral) == 0 {
			t.Errorf("the ephemeral container: %v", err)
		}
		time.Sleep(time.Minute)
		if err := s.SetCondition(t.Context(), "p", "", "door", lifecycle.SetCondition{Status: "True"}, ""); err != nil ||
			len(kept().Conditions) == 0 {
			t.Errorf("the condition: %v", err)
		}
		time.Sleep(time.Minute)
		if err := s.Stop(t.Context(), "p", StopOptions{}); err != nil || kept().Stop.Requested.IsZero() {
			t.Errorf("the stop: %v", err)
		}
	})
}

// TestPanicLosesNoAction panics in the decision after each action, when the action is issued but not started.
func TestPanicLosesNoAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t.Context(), Options{Runtime: fakeruntime.New(fakeruntime.Options{}), Store: noStore{}, Clock: bubbleClock()})
		defer leave(t, s)
		issued, panics := 0, 0
		s.shared.decide = func(p *spec.Pod, f lifecycle.Facts, now lifecycle.Instant) lifecycle.Decision {
			if issued > panics {
				panics++
				panic("a bug")
			}
			d := lifecycle.Decide(p, f, now)
			issued += len(d.Actions)
			panics = max(panics, issued-1)
			return d
		}
		if _, err := s.Add(sleeper("5"), state.Owner{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if p, _ := s.Pod("p"); !p.AtRest || p.Status.Phase != lifecycle.PhaseSucceeded {
			t.Errorf("after %d panics the pod is %s, at rest: %v", panics, p.Status.Phase, p.AtRest)
		}
	})
}

// TestPanicAnswersRequest expects that a client without a deadline gets an error if its change panics.
func TestPanicAnswersRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t.Context(), Options{Runtime: fakeruntime.New(fakeruntime.Options{}), Store: noStore{}, Clock: bubbleClock()})
		defer leave(t, s)
		if _, err := s.Add(sleeper("50"), state.Owner{}); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		err := s.change(t.Context(), "stop", "p", "", func(*loop, lifecycle.Instant) error { panic("a bug") })
		if want := `stop pod "p": internal error in the pod's supervisor`; err == nil || err.Error() != want || time.Since(begun) > 0 {
			t.Errorf("error %v after %v, want %s", err, time.Since(begun), want)
		}
		time.Sleep(10 * time.Minute)
		if p, _ := s.Pod("p"); p.Status.Phase != lifecycle.PhaseSucceeded {
			t.Errorf("after the panic: %+v", p.Status)
		}
	})
}

// TestPanicLosesNoMessage panics in the first message after a recovery, and in one before other messages.
func TestPanicLosesNoMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, disk, clock := fakeruntime.New(fakeruntime.Options{}), &newest{}, bubbleClock()
		s := New(t.Context(), Options{Runtime: engine, Store: disk, Clock: clock})
		if _, err := s.Add(sleeper("50"), state.Owner{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		leave(t, s)
		s = New(t.Context(), Options{Runtime: engine, Store: disk, Clock: clock})
		defer leave(t, s)
		l := s.startLoop(disk.last, func(*loop, lifecycle.Instant) { panic("a bug") })
		synctest.Wait() // the loop pauses
		handled := false
		l.mailbox <- startup{func(lifecycle.Instant) { panic("another bug") }}
		l.mailbox <- startup{func(lifecycle.Instant) { handled = true }}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if p, _ := s.Pod("p"); !handled || p.Status.Phase != lifecycle.PhaseSucceeded {
			t.Errorf("the pod is %s; the message after the one that panicked was handled: %v", p.Status.Phase, handled)
		}
	})
}

// TestPanicRepeatsNoEvent has a result in the mailbox while the loop pauses after a panic.
func TestPanicRepeatsNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t.Context(),
			Options{Runtime: fakeruntime.New(fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
				if c.Method == "StartContainer" {
					time.Sleep(5 * time.Second)
				}
				return nil
			}}), Store: noStore{}, Clock: bubbleClock()})
		defer leave(t, s)
		if _, err := s.Add(sleeper("50"), state.Owner{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		s.pods["p"].mailbox <- startup{func(lifecycle.Instant) { panic("a bug") }}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		events, _ := s.Events().Since(0)
		kinds := map[api.EventKind]int{}
		for _, e := range events {
			kinds[e.Kind]++
		}
		if kinds[api.EventInternalError] != 1 || kinds[api.EventContainerStarted] != 1 || kinds[api.EventContainerSucceeded] != 1 ||
			kinds[api.EventPodSucceeded] != 1 {
			t.Errorf("the events are %v", kinds)
		}
	})
}

// TestShutdownDuringPanicPause expects that a stop is saved by the shutdown although the turn that folded it panicked.
func TestShutdownDuringPanicPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &newest{}
		s := New(t.Context(), Options{Runtime: fakeruntime.New(fakeruntime.Options{}), Store: disk, Clock: bubbleClock()})
		s.shared.decide = func(p *spec.Pod, f lifecycle.Facts, now lifecycle.Instant) lifecycle.Decision {
			if !f.Stop.Requested.IsZero() {
				panic("a bug")
			}
			return lifecycle.Decide(p, f, now)
		}
		if _, err := s.Add(sleeper("100000"), state.Owner{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		l := s.pods["p"]
		l.mailbox <- startup{func(now lifecycle.Instant) { l.fold(lifecycle.StopRequested{By: "test", At: now}, now) }}
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Stop(limited, "p", StopOptions{By: "test"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stop that is not handled in time: %v, want the error of the context", err)
		}
		leave(t, s)
		if disk.last.Facts.Stop.Requested.IsZero() {
			t.Error("the stop is not saved")
		}
	})
}

// TestFailedWriteWithFullMailbox fails the newest write while the mailbox is full.
func TestFailedWriteWithFullMailbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writing, fails := make(chan struct{}), make(chan struct{})
		disk := &newest{}
		s := New(t.Context(), Options{Runtime: fakeruntime.New(fakeruntime.Options{}), Store: disk, Clock: bubbleClock()})
		defer leave(t, s)
		if _, err := s.Add(sleeper("100000"), state.Owner{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		disk.mu.Lock()
		disk.save = func() error {
			writing <- struct{}{}
			<-fails
			return errors.New("no space left on device")
		}
		disk.mu.Unlock()
		l := s.pods["p"]
		busy := make(chan struct{})
		l.mailbox <- startup{func(lifecycle.Instant) { l.dirty = true }}
		<-writing
		l.mailbox <- startup{func(lifecycle.Instant) { <-busy }}
		synctest.Wait()
		for range cap(l.mailbox) {
			l.mailbox <- startup{func(lifecycle.Instant) {}}
		}
		close(fails)
		synctest.Wait()
		close(busy)
		synctest.Wait()
		if p, _ := s.Pod("p"); !p.NotDurable {
			t.Error("NotDurable is not set although the newest write failed")
		}
		disk.mu.Lock()
		disk.save = nil
		disk.mu.Unlock()
	})
}

// TestAddDuringShutdown shuts the supervisor down between the reservation of a name and the start of the loop.
func TestAddDuringShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *Supervisor
		clock, readings := bubbleClock(), 0
		leaves := func() lifecycle.Instant {
			if readings++; readings == 2 { // the first reading is in Add, which holds the lock
				leave(t, s)
			}
			return clock()
		}
		engine := fakeruntime.New(fakeruntime.Options{})
		s = New(t.Context(), Options{Runtime: engine, Store: noStore{}, Clock: leaves})
		if _, err := s.Add(sleeper("5"), state.Owner{}); !errors.Is(err, ErrLeaving) {
			t.Errorf("add during the shutdown: %v, want ErrLeaving", err)
		}
		synctest.Wait()
		if calls := engine.Calls(); len(calls) > 0 || len(s.Pods()) > 0 || s.Count() > 0 {
			t.Errorf("the pod was started: %v", calls)
		}
	})
}

// TestAddIsNotifiedWhenVisible expects that Changed fires for a new pod when Pods returns it, not earlier.
func TestAddIsNotifiedWhenVisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := fakeruntime.New(fakeruntime.Options{Before: func(ctx context.Context, _ fakeruntime.Call) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		s := New(t.Context(), Options{Runtime: hangs, Store: noStore{}, Clock: bubbleClock()})
		defer leave(t, s)
		e := state.Pod{Pod: sleeper("5"), Facts: lifecycle.Facts{UID: "u", Accepted: s.shared.now()}}
		newLoop(s.shared, e, func() { t.Error("notified before the pod is visible") })
		changed := s.Changed()
		if _, err := s.Add(sleeper("5"), state.Owner{}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		default:
			t.Error("Changed did not fire")
		}
	})
}

// TestCompletionIsEmittedBeforeSnapshot expects the event of a completed pod before clients see the phase.
func TestCompletionIsEmittedBeforeSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sh := &shared{now: bubbleClock(), ring: event.NewRing(16), log: slog.New(slog.DiscardHandler), store: noStore{}}
		var l *loop
		ended := false
		l = newLoop(sh, state.Pod{Pod: sleeper("5"), Facts: lifecycle.Facts{UID: "u", Accepted: sh.now()}}, func() {
			if !l.snapshot.Load().Status.Phase.Terminal() {
				return
			}
			ended = true
			events, _ := sh.ring.Since(0)
			if n := len(events); n == 0 || events[n-1].Kind != api.EventPodStopped {
				t.Errorf("the phase is visible, the events are %+v", events)
			}
		})
		now := sh.now()
		l.fold(lifecycle.StopRequested{Grace: lifecycle.EffectiveGrace(l.pod, nil), At: now}, now)
		l.publish(now)
		if !ended {
			t.Errorf("the pod has not completed: %+v", l.snapshot.Load().Status)
		}
	})
}

// counted is a context that counts the functions registered with AfterFunc.
type counted struct {
	context.Context
	registered atomic.Int64
}

func (c *counted) AfterFunc(f func()) func() bool {
	c.registered.Add(1)
	stop := context.AfterFunc(c.Context, f)
	return func() bool { c.registered.Add(-1); return stop() }
}

func (c *counted) Value(any) any { return nil } // hides the embedded context from package context

// TestEffectsReleaseContexts expects that finished effects do not stay registered with the context of the loop.
func TestEffectsReleaseContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, end := context.WithCancel(t.Context())
		defer end()
		ctx := &counted{Context: ended}
		sh := &shared{now: bubbleClock(), log: slog.New(slog.DiscardHandler), ring: event.NewRing(1), store: noStore{}}
		l := newLoop(sh, state.Pod{Pod: sleeper("5"), Facts: lifecycle.Facts{UID: "u"}}, func() {})
		for _, limit := range slices.Repeat([]time.Duration{0, effectTimeout}, 5) {
			l.effects.run(ctx, limit, lifecycle.RemovePod{}, func(context.Context) (effectResult, error) { return effectResult{}, nil })
		}
		l.effects.running.Wait()
		if n := ctx.registered.Load(); n != 0 {
			t.Errorf("%d functions are registered after all effects have ended", n)
		}
	})
}

// TestEvictionAfterCompletion expects that an eviction that arrives after the pod has completed changes nothing.
func TestEvictionAfterCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := fakeruntime.New(fakeruntime.Options{})
		s := New(t.Context(), Options{Runtime: engine, Store: noStore{}, Clock: bubbleClock()})
		defer leave(t, s)
		added, err := s.Add(sleeper("100000"), state.Owner{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		busy := make(chan struct{})
		s.pods["p"].mailbox <- startup{func(lifecycle.Instant) { <-busy }}
		synctest.Wait()
		engine.Crash(added.Facts.UID, "c", lifecycle.Exit{})
		synctest.Wait()
		engine.Evict(added.Facts.UID, "too much")
		synctest.Wait()
		close(busy)
		time.Sleep(time.Minute)
		if p, _ := s.Pod("p"); p.Status.Phase != lifecycle.PhaseSucceeded {
			t.Errorf("the pod is %s (%s), want Succeeded", p.Status.Phase, p.Status.Reason)
		}
	})
}
