package supervisor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

type noStore struct{}

func (noStore) Load() ([]state.Pod, []state.Unusable, error) { return nil, nil, nil }
func (noStore) Save(state.Pod) error                         { return nil }
func (noStore) Delete(string) error                          { return nil }

// TestPanicInTurn has a Decide that panics or never reaches a fixed point for a while.
func TestPanicInTurn(t *testing.T) {
	endless := func(*spec.Pod, lifecycle.Facts, lifecycle.Instant) lifecycle.Decision {
		return lifecycle.Decision{Actions: []lifecycle.Action{lifecycle.CancelPull{Container: "none"}}}
	}
	for name, fault := range map[string]func(*spec.Pod, lifecycle.Facts, lifecycle.Instant) lifecycle.Decision{
		"panic":   func(*spec.Pod, lifecycle.Facts, lifecycle.Instant) lifecycle.Decision { panic("a bug") },
		"endless": endless,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				started := time.Now()
				clock := func() lifecycle.Instant {
					return lifecycle.Instant{Boot: "b", Mono: time.Since(started), Wall: time.Now()}
				}
				s := New(t.Context(), Options{Runtime: fakeruntime.New(fakeruntime.Options{}), Store: noStore{}, Clock: clock})
				defer func() {
					if err := s.Leave(t.Context()); err != nil {
						t.Error(err)
					}
				}()
				s.shared.decide = func(p *spec.Pod, f lifecycle.Facts, now lifecycle.Instant) lifecycle.Decision {
					if a := f.Container("c").Newest; !a.Started.IsZero() && time.Since(started) < time.Minute {
						return fault(p, f, now)
					}
					return lifecycle.Decide(p, f, now)
				}
				pod := &spec.Pod{Name: "p", RestartPolicy: spec.RestartNever, Containers: []spec.Container{
					{Name: "c", Image: "i", Command: []string{"sleep", "5"}},
				}}
				if _, err := s.Add(pod, state.Owner{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if snapshot, _ := s.Pod("p"); snapshot.Status.Phase != lifecycle.PhaseSucceeded {
					t.Errorf("the phase is %s: the pod did not recover", snapshot.Status.Phase)
				}
				events, _ := s.Events().Since(0)
				panics := 0
				for _, e := range events {
					if e.Kind == api.EventInternalError {
						panics++
					}
				}
				if panics < 2 || panics > 10 {
					t.Errorf("%d events of panics, want one every %v", panics, panicPause)
				}
			})
		})
	}
}

func TestSystemClock(t *testing.T) {
	clock, err := SystemClock()
	if err != nil {
		t.Fatal(err)
	}
	a, b := clock(), clock()
	if a.IsZero() || b.Before(a) || a.Boot != b.Boot || time.Since(a.Wall) > time.Minute {
		t.Errorf("the clock shows %v, then %v", a, b)
	}
}

func TestAddress(t *testing.T) {
	for _, test := range []struct {
		host bool
		ips  []string
		want string
	}{
		{false, nil, ""},
		{false, []string{"10.88.0.2", "fd00::2"}, "10.88.0.2"},
		{true, []string{"192.0.2.1"}, "127.0.0.1"},
	} {
		pod, facts := &spec.Pod{HostNetwork: test.host}, lifecycle.Facts{Sandbox: lifecycle.Sandbox{IPs: test.ips}}
		if got := address(pod, facts); got != test.want {
			t.Errorf("the address of %+v is %q", test, got)
		}
	}
}

// TestRequestCancelled cancels a request while the loop handles it. The caller and the loop must share nothing that the race detector
// objects to.
func TestRequestCancelled(t *testing.T) {
	box, ended := make(mailbox, 1), make(chan struct{})
	accept := func(lifecycle.Instant) error { return nil }
	handle := func(before func()) {
		r, ok := (<-box).(changeRequest)
		if !ok {
			t.Error("the mailbox has another message than the request")
			return
		}
		before()
		r.answer <- changeAnswer{err: r.change(lifecycle.Instant{})}
	}
	ctx, cancel := context.WithCancel(t.Context())
	handled := make(chan struct{})
	go func() {
		handle(cancel)
		close(handled)
	}()
	if _, ok, err := box.request(ctx, ended, accept); ok != (err == nil) {
		t.Errorf("handled %v with error %v", ok, err)
	}
	<-handled

	rejected := errors.New("rejected")
	go func() {
		handle(func() {})
		close(ended)
	}()
	if a, ok, err := box.request(t.Context(), ended, func(lifecycle.Instant) error { return rejected }); !ok || err != nil ||
		!errors.Is(a.err, rejected) {
		t.Errorf("last message of a loop: answer %v, handled %v, error %v", a.err, ok, err)
	}
	box = make(mailbox) // without a receiver
	if _, ok, err := box.request(t.Context(), ended, accept); ok || err != nil {
		t.Errorf("after the end of the loop: handled %v, error %v", ok, err)
	}
}
