package supervisor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// TestReservationOfChange expects that both definitions of a pod count while it is being changed, and that a second change waits.
func TestReservationOfChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := fakeruntime.New(fakeruntime.Options{Allocatable: spec.ResourceList{"memory": resource.MustParse("1Gi")}})
		s := New(t.Context(), Options{Runtime: engine, Store: noStore{}, Clock: bubbleClock()})
		defer leave(t, s)
		of := func(name string, port int32, memory string) *spec.Pod {
			p := sleeper("100000")
			p.Name = name
			p.Containers[0].Resources.Requests = spec.ResourceList{"memory": resource.MustParse(memory)}
			p.Containers[0].Ports = []spec.ContainerPort{{ContainerPort: 80, HostPort: port, Protocol: spec.ProtocolTCP}}
			return p
		}
		if _, err := s.Add(of("p", 80, "400Mi"), state.Owner{}); err != nil {
			t.Fatal(err)
		}
		release, err := s.reserveChange(t.Context(), of("p", 81, "600Mi"), nil, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, refused := range []*spec.Pod{of("old port", 80, "1Mi"), of("new port", 81, "1Mi"), of("new memory", 82, "600Mi")} {
			if _, err := s.Add(refused, state.Owner{}); err == nil {
				t.Errorf("pod %q was accepted during the change", refused.Name)
			}
		}
		if _, err := s.Add(of("other", 83, "400Mi"), state.Owner{}); err != nil { // the requests of both definitions are not added up
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := s.reserveChange(ctx, of("p", 84, "400Mi"), nil, false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("second change: %v", err)
		}
		release()
		if _, err := s.Add(of("new port", 81, "1Mi"), state.Owner{}); err != nil {
			t.Error(err)
		}
		if release, err := s.reserveChange(t.Context(), of("p", 84, "400Mi"), nil, false); err != nil {
			t.Errorf("change after the first: %v", err)
		} else {
			release()
		}
	})
}

// TestReservationOfStoppedPod expects that the change of a stopped pod reserves nothing.
func TestReservationOfStoppedPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t.Context(), Options{Runtime: fakeruntime.New(fakeruntime.Options{}), Store: noStore{}, Clock: bubbleClock()})
		defer leave(t, s)
		of := func(name string) *spec.Pod {
			p := sleeper("100000")
			p.Name = name
			p.Containers[0].Ports = []spec.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: spec.ProtocolTCP}}
			return p
		}
		if _, err := s.Add(of("p"), state.Owner{}); err != nil {
			t.Fatal(err)
		}
		if err := s.Stop(t.Context(), "p", StopOptions{By: "test"}); err != nil {
			t.Fatal(err)
		}
		release, err := s.reserveChange(t.Context(), of("p"), nil, false)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		if _, err := s.Add(of("q"), state.Owner{}); err != nil {
			t.Error(err)
		}
		if p, _ := s.Pod("p"); !lifecycle.Terminating(p.Pod, p.Facts) {
			t.Errorf("the pod runs: %+v", p.Status)
		}
	})
}

// TestConcurrentStarts expects that all of several requests to start a stopped pod succeed.
func TestConcurrentStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t.Context(), Options{Runtime: fakeruntime.New(fakeruntime.Options{}), Store: noStore{}, Clock: bubbleClock()})
		defer leave(t, s)
		if _, err := s.Add(sleeper("100000"), state.Owner{}); err != nil {
			t.Fatal(err)
		}
		name := s.Pods()[0].Pod.Name
		if err := s.Stop(t.Context(), name, StopOptions{By: "test"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)                                                    // it has stopped
		release, err := s.reserveChange(t.Context(), s.Pods()[0].Pod, nil, true) // a request that is being answered
		if err != nil {
			t.Fatal(err)
		}
		errs := make(chan error, 4)
		for range cap(errs) {
			go func() { errs <- s.Start(t.Context(), name, "", "test") }()
		}
		synctest.Wait()
		if n := len(errs); n > 0 {
			t.Errorf("%d requests were answered during another one: %v", n, <-errs)
		}
		release()
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}
