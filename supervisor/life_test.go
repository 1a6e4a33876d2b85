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

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// newest is a store that keeps what was saved last.
type newest struct {
	noStore
	mu   sync.Mutex
	save func() error // nil: nothing fails
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
	begun := time.Now()
	return func() lifecycle.Instant {
		return lifecycle.Instant{Boot: "b", Mono: time.Since(begun), Wall: time.Now()}
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

// TestChangeIsKept: a change that was answered is known to the next supervisor too, however this one ends.
func TestChangeIsKept(t *testing.T) {
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
		if err := s.AddEphemeral(t.Context(), "p", "", &spec.Container{Name: "d", Image: "i"}, ""); err != nil || len(kept().Ephemeral) == 0 {
			t.Errorf("the ephemeral container: %v", err)
		}
		time.Sleep(time.Minute)
		if err := s.SetCondition(t.Context(), "p", "", "door", lifecycle.SetCondition{Status: "True"}, ""); err != nil || len(kept().Conditions) == 0 {
			t.Errorf("the condition: %v", err)
		}
		time.Sleep(time.Minute)
		if err := s.Stop(t.Context(), "p", StopOptions{}); err != nil || kept().Stop.Requested.IsZero() {
			t.Errorf("the stop: %v", err)
		}
	})
}

// TestPanicLosesNoAction lets the decision panic that follows each action, when the action is issued and not begun.
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

// TestPanicLosesNoEvent lets the first message panic when a pod is taken up, and another one before those that wait.
func TestPanicLosesNoEvent(t *testing.T) {
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
		l := s.begin(disk.last, func(*loop, lifecycle.Instant) { panic("a bug") })
		synctest.Wait() // the loop pauses
		heard := false
		l.mailbox <- func(lifecycle.Instant) { panic("another bug") }
		l.mailbox <- func(lifecycle.Instant) { heard = true }
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if p, _ := s.Pod("p"); !heard || p.Status.Phase != lifecycle.PhaseSucceeded {
			t.Errorf("the pod is %s; the message behind the one that panicked was heard: %v", p.Status.Phase, heard)
		}
	})
}

// TestPanicRepeatsNoEvent has outcomes wait in the mailbox while the loop pauses.
func TestPanicRepeatsNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t.Context(), Options{Runtime: fakeruntime.New(fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
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
		s.pods["p"].mailbox <- func(lifecycle.Instant) { panic("a bug") }
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		events, _ := s.Events().Since(0)
		kinds := map[Kind]int{}
		for _, e := range events {
			kinds[e.Kind]++
		}
		if kinds[InternalError] != 1 || kinds[ContainerStarted] != 1 || kinds[ContainerSucceeded] != 1 || kinds[PodSucceeded] != 1 {
			t.Errorf("the events are %v", kinds)
		}
	})
}

// TestLeavingWhileATurnPanics expects a stop that was heard on the disk, though the loop has not come to write it.
func TestLeavingWhileATurnPanics(t *testing.T) {
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
		l.mailbox <- func(now lifecycle.Instant) { l.fold(lifecycle.StopRequested{By: "test", At: now}, now) }
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Stop(limited, "p", StopOptions{By: "test"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a stop that is not heard in time: %v, want the context's error", err)
		}
		leave(t, s)
		if disk.last.Facts.Stop.Requested.IsZero() {
			t.Error("the stop is not on the disk")
		}
	})
}

// TestWriteIsHeardOfThroughAFullMailbox fails the newest write while the loop is busy and much is told to it.
func TestWriteIsHeardOfThroughAFullMailbox(t *testing.T) {
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
		l.mailbox <- func(lifecycle.Instant) { l.dirty = true }
		<-writing
		l.mailbox <- func(lifecycle.Instant) { <-busy }
		synctest.Wait()
		for range cap(l.mailbox) {
			l.mailbox <- func(lifecycle.Instant) {}
		}
		close(fails)
		synctest.Wait()
		close(busy)
		synctest.Wait()
		if p, _ := s.Pod("p"); !p.NotDurable {
			t.Error("the pod is said to be durable, though the newest write failed")
		}
		disk.mu.Lock()
		disk.save = nil
		disk.mu.Unlock()
	})
}

// TestAddWhileLeaving lets the supervisor leave when a pod is half added.
func TestAddWhileLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *Supervisor
		clock, readings := bubbleClock(), 0
		leaves := func() lifecycle.Instant {
			if readings++; readings == 2 { // the first is of Add, which holds the lock
				leave(t, s)
			}
			return clock()
		}
		engine := fakeruntime.New(fakeruntime.Options{})
		s = New(t.Context(), Options{Runtime: engine, Store: noStore{}, Clock: leaves})
		if _, err := s.Add(sleeper("5"), state.Owner{}); !errors.Is(err, ErrLeaving) {
			t.Errorf("adding a pod to a supervisor that has left: %v, want ErrLeaving", err)
		}
		synctest.Wait()
		if calls := engine.Calls(); len(calls) > 0 || len(s.Pods()) > 0 {
			t.Errorf("the pod was begun: %v", calls)
		}
	})
}

// TestAddedIsToldWhenItIsThere expects the word that there is another pod when readers can see it, not before.
func TestAddedIsToldWhenItIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := fakeruntime.New(fakeruntime.Options{Before: func(ctx context.Context, _ fakeruntime.Call) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		s := New(t.Context(), Options{Runtime: hangs, Store: noStore{}, Clock: bubbleClock()})
		defer leave(t, s)
		e := state.Pod{Pod: sleeper("5"), Facts: lifecycle.Facts{UID: "u", Accepted: s.shared.now()}}
		newLoop(s.shared, e, func() { t.Error("told before it is there") })
		changed := s.Changed()
		if _, err := s.Add(sleeper("5"), state.Owner{}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		default:
			t.Error("nobody was told")
		}
	})
}

// TestEndIsToldBeforeItIsSeen looks for the event of a pod's end when readers first see that it has ended.
func TestEndIsToldBeforeItIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sh := &shared{now: bubbleClock(), ring: NewRing(16), log: slog.New(slog.DiscardHandler), store: noStore{}}
		var l *loop
		ended := false
		l = newLoop(sh, state.Pod{Pod: sleeper("5"), Facts: lifecycle.Facts{UID: "u", Accepted: sh.now()}}, func() {
			if !l.snapshot.Load().Status.Phase.Terminal() {
				return
			}
			ended = true
			events, _ := sh.ring.Since(0)
			if n := len(events); n == 0 || events[n-1].Kind != PodFailed {
				t.Errorf("the pod is seen to have ended, and told is %+v", events)
			}
		})
		now := sh.now()
		l.fold(lifecycle.StopRequested{Grace: lifecycle.EffectiveGrace(l.pod, nil), At: now}, now)
		l.observe(now)
		if !ended {
			t.Errorf("the pod has not ended: %+v", l.snapshot.Load().Status)
		}
	})
}

// counted is a context that counts what hangs on its end.
type counted struct {
	context.Context
	hanging atomic.Int64
}

func (c *counted) AfterFunc(f func()) func() bool {
	c.hanging.Add(1)
	stop := context.AfterFunc(c.Context, f)
	return func() bool { c.hanging.Add(-1); return stop() }
}

func (c *counted) Value(any) any { return nil } // hides the context within from package context

// TestEffectsLeaveNothing carries out what a container that crashes for a year would.
func TestEffectsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, end := context.WithCancel(t.Context())
		defer end()
		ctx := &counted{Context: ended}
		sh := &shared{now: bubbleClock(), log: slog.New(slog.DiscardHandler), ring: NewRing(1), store: noStore{}}
		l := newLoop(sh, state.Pod{Pod: sleeper("5"), Facts: lifecycle.Facts{UID: "u"}}, func() {})
		for _, limit := range slices.Repeat([]time.Duration{0, effectLimit}, 5) {
			l.effect(ctx, limit, lifecycle.RemovePod{}, func(context.Context) (outcome, error) { return nil, nil })
		}
		l.effects.Wait()
		if n := ctx.hanging.Load(); n != 0 {
			t.Errorf("%d things hang on the loop's life when all effects have ended", n)
		}
	})
}

// TestRecorderPassesOver what earlier lives have told: it has nothing to do until there is an event of this one.
func TestRecorderPassesOver(t *testing.T) {
	ring := NewRing(16)
	ring.restore([]Event{{Seq: 5, Kind: PodAccepted, Pod: "p"}})
	r := &recorder{ring: ring, pods: func() []string { return nil }}
	events, _ := ring.Since(r.seq)
	if !r.keep(events) {
		t.Error("the events of an earlier life are not kept")
	}
	if again, _ := ring.Since(r.seq); len(again) > 0 {
		t.Errorf("it would look at %v for ever", again)
	}
}

// TestEndIsNotTakenBack: what is heard of a sandbox after the pod came to rest, and told before, changes nothing.
func TestEndIsNotTakenBack(t *testing.T) {
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
		s.pods["p"].mailbox <- func(lifecycle.Instant) { <-busy }
		synctest.Wait()
		engine.Crash(added.Facts.UID, "c", lifecycle.Exit{})
		synctest.Wait()
		engine.Overuse(added.Facts.UID, "too much")
		synctest.Wait()
		close(busy)
		time.Sleep(time.Minute)
		if p, _ := s.Pod("p"); p.Status.Phase != lifecycle.PhaseSucceeded {
			t.Errorf("the pod is %s (%s), want Succeeded", p.Status.Phase, p.Status.Reason)
		}
	})
}
