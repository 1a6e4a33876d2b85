package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// TestKillPointsOfChanges kills the supervisor before and after every call to the engine while a pod is redefined, resized, restarted,
// stopped and started. The client repeats its request if it was lost. It expects the same result as without a kill.
func TestKillPointsOfChanges(t *testing.T) {
	calls := changedLife(t, killPoint{})
	if len(calls) < 30 {
		t.Fatalf("the pod needed %d calls, too few for this test", len(calls))
	}
	for i, method := range calls {
		if method == "WaitSandbox" || method == "WaitContainer" || method == "WatchShim" {
			continue // TestKillPoints has these
		}
		t.Run(fmt.Sprintf("before %s, call %d", method, i+1), func(t *testing.T) { changedLife(t, killPoint{at: i + 1}) })
		t.Run(fmt.Sprintf("after %s, call %d", method, i+1), func(t *testing.T) { changedLife(t, killPoint{at: i + 1, after: true}) })
		t.Run(fmt.Sprintf("after %s, call %d, last writes lost", method, i+1), func(t *testing.T) {
			changedLife(t, killPoint{at: i + 1, after: true, lost: 4})
		})
	}
}

// striker kills the supervisor of a machine at a kill point.
type striker struct {
	m     *machine
	k     killPoint
	mu    sync.Mutex
	calls []string
	done  bool
}

// strikes reports whether a call is the one at which the supervisor is killed.
func (s *striker) strikes(method string, after bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done || method == "Inventory" {
		return false
	}
	if !after {
		s.calls = append(s.calls, method)
		if s.k.lost > 0 && len(s.calls) == s.k.at-s.k.lost {
			s.m.disk.kill()
		}
		s.done = len(s.calls) == s.k.at && !s.k.after
	} else {
		s.done = s.k.after && len(s.calls) >= s.k.at && method == s.calls[s.k.at-1]
	}
	return s.done
}

func (s *striker) hook(after bool) func(context.Context, fakeruntime.Call) error {
	return func(ctx context.Context, c fakeruntime.Call) error {
		if !s.strikes(c.Method, after) {
			return nil
		}
		s.m.disk.kill()
		close(s.m.killed)
		<-ctx.Done() // the result is lost
		return ctx.Err()
	}
}

// changedLife redefines, restarts, stops and starts a pod, with a kill at k. It returns the calls.
func changedLife(t *testing.T, k killPoint) (calls []string) {
	synctest.Test(t, func(t *testing.T) {
		s := &striker{k: k}
		m := newMachine(t, fakeruntime.Options{
			Before: s.hook(false), After: s.hook(true),
			Exec: func(lifecycle.Ref, []string) (fakeruntime.Program, bool) {
				return fakeruntime.Program{Runs: 2 * time.Second}, true
			},
		})
		m.killed, s.m = make(chan struct{}), m
		m.start()
		p := pod("p", spec.RestartAlways, graceful, graceful)
		p.Containers[1].Lifecycle = &spec.Lifecycle{PreStop: execHook("hook")}
		to := pod("p", spec.RestartAlways, "trap 'exit 1' TERM; sleep 100000 & wait")
		to.Containers = append(to.Containers, spec.Container{Name: "new", Image: "image:2", Command: []string{"sh", "-c", graceful}})
		uid := m.add(p).Facts.UID
		m.insist(allRunning, func(context.Context) error { return nil })

		changed := func(s supervisor.Snapshot) bool {
			return s.Pod.Container("new") != nil && len(s.Facts.Outgoing) == 0 && len(s.Facts.Containers) == 2 && allRunning(s)
		}
		m.insist(changed, func(ctx context.Context) error {
			staged, err := m.Stage(ctx, to, nil, func(string, lifecycle.Progress) {})
			if err == nil {
				_, err = m.Redefine(ctx, uid, to, staged, state.Owner{})
			}
			return err
		})
		atLeast := func(n int) func(supervisor.Snapshot) bool {
			return func(s supervisor.Snapshot) bool {
				return changed(s) && s.Status.ContainerStatuses[0].RestartCount >= n && s.Facts.Restart == lifecycle.Restart{} &&
					s.Facts.Stop == lifecycle.Stop{}
			}
		}
		resized := *to
		resized.Containers = slices.Clone(to.Containers)
		resized.Containers[0].Resources.Requests = spec.ResourceList{spec.ResourceCPU: resource.MustParse("20m")}
		m.insist(func(s supervisor.Snapshot) bool {
			is := m.engine.Resized(uid)
			return is != nil && reflect.DeepEqual(is.Containers[0].Resources, resized.Containers[0].Resources) && allRunning(s) &&
				reflect.DeepEqual(s.Pod.Containers[0].Resources, resized.Containers[0].Resources) &&
				s.Facts.Resize.Requested.IsZero()
		}, func(ctx context.Context) error {
			staged, err := m.Stage(ctx, &resized, nil, func(string, lifecycle.Progress) {})
			if err == nil {
				_, err = m.Redefine(ctx, uid, &resized, staged, state.Owner{})
			}
			return err
		})
		m.insist(atLeast(2), func(ctx context.Context) error { return m.Restart(ctx, "p", uid, "c0", "test") })
		m.insist(atLeast(3), func(ctx context.Context) error { return m.Restart(ctx, "p", uid, "", "test") })
		m.insist(func(s supervisor.Snapshot) bool { return s.AtRest }, func(ctx context.Context) error {
			return m.Stop(ctx, "p", supervisor.StopOptions{UID: uid})
		})
		m.insist(atLeast(4), func(ctx context.Context) error { return m.Start(ctx, "p", uid, "test") })
		now, _ := m.Pod("p")
		if running := m.engine.Running(uid); len(running) != 2 || now.Facts.UID != uid {
			t.Errorf("running: %v, %+v", running, now.Facts)
		}
		found, _ := m.engine.Inventory(t.Context())
		if len(found) != 1 || slices.ContainsFunc(found[0].Runs, func(r lifecycle.Run) bool { return r.Container == "c1" }) {
			t.Errorf("the engine has %+v", found)
		}
		s.mu.Lock()
		calls, s.done = s.calls, true // TestKillPoints has the deletion
		s.mu.Unlock()
		m.delete("p")
		if len(m.disk.files) > 0 {
			t.Errorf("the disk still has %v", m.disk.files)
		}
	})
	return calls
}

// insist makes a request until the pod is as wanted, and again if the supervisor was killed meanwhile.
func (m *machine) insist(wanted func(supervisor.Snapshot) bool, request func(context.Context) error) {
	m.t.Helper()
	for range 3 {
		s, exists := m.Pod("p")
		if !exists {
			m.add(pod("p", spec.RestartAlways, graceful, graceful)) // it was not saved
		} else if wanted(s) {
			return
		}
		ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
		err := request(ctx)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, supervisor.ErrNotFound) {
			m.t.Logf("request failed: %v", err)
		}
		if m.achieved(wanted) {
			return
		}
	}
	s, _ := m.Pod("p")
	m.t.Fatalf("the pod is not as wanted: %+v; %+v", s.Status, s.Facts)
}

// achieved waits for an hour until the pod is as wanted. It returns false if the supervisor was killed, after it has started another one.
func (m *machine) achieved(wanted func(supervisor.Snapshot) bool) bool {
	for range 3600 {
		select {
		case <-m.killed:
			m.restartKilled()
			return false
		default:
		}
		if s, exists := m.Pod("p"); exists && wanted(s) {
			return true
		}
		time.Sleep(time.Second)
	}
	return false
}
