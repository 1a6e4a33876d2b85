package supervisor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

type noStore struct{}

func (noStore) Load() ([]state.Pod, []state.Unusable, error) { return nil, nil, nil }
func (noStore) Save(state.Pod) error                         { return nil }
func (noStore) Delete(string) error                          { return nil }

// TestPanicInATurnIsSurvived lets Decide panic, or never come to an end, for a while.
func TestPanicInATurnIsSurvived(t *testing.T) {
	endless := func(*spec.Pod, lifecycle.Facts, lifecycle.Instant) lifecycle.Decision {
		return lifecycle.Decision{Actions: []lifecycle.Action{lifecycle.CancelPull{Container: "none"}}}
	}
	for name, fault := range map[string]func(*spec.Pod, lifecycle.Facts, lifecycle.Instant) lifecycle.Decision{
		"panic":   func(*spec.Pod, lifecycle.Facts, lifecycle.Instant) lifecycle.Decision { panic("a bug") },
		"endless": endless,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				clock := func() lifecycle.Instant {
					return lifecycle.Instant{Boot: "b", Mono: time.Since(begun), Wall: time.Now()}
				}
				s := New(t.Context(), Options{Runtime: fakeruntime.New(fakeruntime.Options{}), Store: noStore{}, Clock: clock})
				defer func() {
					if err := s.Leave(t.Context()); err != nil {
						t.Error(err)
					}
				}()
				s.shared.decide = func(p *spec.Pod, f lifecycle.Facts, now lifecycle.Instant) lifecycle.Decision {
					if a := f.Containers["c"].Newest; !a.Started.IsZero() && time.Since(begun) < time.Minute {
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
					t.Errorf("the phase is %s: the pod did not go on", snapshot.Status.Phase)
				}
				events, _ := s.Events().Since(0)
				panics := 0
				for _, e := range events {
					if e.Kind == InternalError {
						panics++
					}
				}
				if panics < 2 || panics > 10 {
					t.Errorf("%d panics were told, want one every %v", panics, panicPause)
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
		l := &loop{
			pod:   &spec.Pod{HostNetwork: test.host},
			facts: lifecycle.Facts{Sandbox: lifecycle.Sandbox{IPs: test.ips}},
		}
		if got := l.address(); got != test.want {
			t.Errorf("the address of %+v is %q", test, got)
		}
	}
}

// TestDemandIsGivenUp has the loop deal with a message while the caller gives up waiting: they share nothing that the race
// detector could object to, and a message that ends the loop was heard.
func TestDemandIsGivenUp(t *testing.T) {
	l := &loop{mailbox: make(chan message, 1), ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	dealt := make(chan struct{})
	go func() {
		m := <-l.mailbox
		cancel()
		m(lifecycle.Instant{})
		close(dealt)
	}()
	if heard, err := l.demand(ctx, func(lifecycle.Instant) {}); heard != (err == nil) {
		t.Errorf("heard %v with error %v", heard, err)
	}
	<-dealt

	go func() {
		(<-l.mailbox)(lifecycle.Instant{})
		close(l.ended)
	}()
	if heard, err := l.demand(t.Context(), func(lifecycle.Instant) {}); !heard || err != nil {
		t.Errorf("the last message: heard %v, error %v", heard, err)
	}
	if heard, err := l.demand(t.Context(), func(lifecycle.Instant) {}); heard && err == nil {
		t.Error("a loop that has ended heard a message")
	}
}
