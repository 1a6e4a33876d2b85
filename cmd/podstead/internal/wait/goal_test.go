package wait

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
)

// watch yields changes, and then waits until the context ends.
type watch []api.PodChange

func (watch) Connect(context.Context) error { return nil }

func (w watch) Watch(ctx context.Context) iter.Seq2[api.PodChange, error] {
	return func(yield func(api.PodChange, error) bool) {
		for _, c := range w {
			if !yield(c, nil) {
				return
			}
		}
		<-ctx.Done()
		yield(api.PodChange{}, ctx.Err())
	}
}

// pod returns a pod that runs, and of which the newest request is complete.
func pod(uid, hash string) api.PodChange {
	c := api.PodChange{Type: api.Modified}
	p := &c.Object
	p.Metadata.Name, p.Metadata.UID, p.Spec.Hash, p.Status.Phase = "web", uid, hash, api.PhaseRunning
	p.Status.Conditions = []api.Condition{{Type: api.PodReady, Status: "True"}}
	p.Status.Outcome.State, p.Status.Outcome.Request = api.RolloutComplete, 2
	return c
}

func with(c api.PodChange, changes ...func(*api.Pod)) api.PodChange {
	for _, change := range changes {
		change(&c.Object)
	}
	return c
}

func notReady(p *api.Pod) {
	p.Status.Conditions[0].Status, p.Status.Outcome.State = "False", api.RolloutProgressing
}

// TestSettling: a pod can be ready while a change of its definition or a restart is about to stop it.
func TestSettling(t *testing.T) {
	for state, want := range map[api.RolloutState]bool{
		api.RolloutProgressing: false, "Ready": true, api.RolloutComplete: false, api.RolloutFailed: false, "": false,
	} {
		c := with(pod("1", "a"), func(p *api.Pod) { p.Status.Outcome.State = state })
		if Settling(&c.Object) != want {
			t.Errorf("%q, ready: want settling %v", state, want)
		}
	}
}

func progressing(p *api.Pod)       { p.Status.Outcome.State = api.RolloutProgressing }
func earlier(p *api.Pod)           { p.Status.Outcome = api.RequestOutcome{} }
func request(n int) func(*api.Pod) { return func(p *api.Pod) { p.Status.Outcome.Request = n } }

// inState sets the state of the only container, and its ID.
func inState(state api.ContainerState, id string) func(*api.Pod) {
	return func(p *api.Pod) {
		notReady(p)
		p.Status.ContainerStatuses = []api.ContainerStatus{{Name: "app", State: state, ContainerID: id}}
	}
}

// resizing reports that a resize is not complete.
func resizing(why string) func(*api.Pod) {
	return func(p *api.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, api.Condition{Type: api.PodResizeInProgress, Status: "True", Message: why})
		p.Status.Outcome.State, p.Status.Outcome.Message = api.RolloutProgressing, "the resize of the pod is not complete: "+why
	}
}

// infeasible reports that the resize requires a restart.
func infeasible(p *api.Pod) {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == api.PodResizeInProgress {
			c.Type = api.PodResizePending
		}
	}
}

// TestResizing: only a pod that is ready otherwise has a resize that a timeout is about.
func TestResizing(t *testing.T) {
	for name, test := range map[string]struct {
		changes []func(*api.Pod)
		want    string
	}{
		"resizing":  {[]func(*api.Pod){resizing("below usage")}, "the resize of the pod is not complete: below usage"},
		"not ready": {[]func(*api.Pod){resizing("below usage"), notReady}, ""},
		"settling":  {[]func(*api.Pod){progressing}, ""},
		"complete":  {nil, ""},
	} {
		c := with(pod("1", "a"), test.changes...)
		if got := Resizing(&c.Object); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// runs is the state of a container that runs.
var runs = api.ContainerState{Running: &api.Running{}}

// pending reports that a change waits.
func pending(why string) func(*api.Pod) {
	return func(p *api.Pod) {
		p.Status.Conditions = append(p.Status.Conditions,
			api.Condition{Type: api.FileAccepted, Status: "False", Reason: api.ReasonUpdatePending, Message: why})
	}
}

// waitingFor is a state of a container that waits.
func waitingFor(reason api.Reason) api.ContainerState {
	return api.ContainerState{Waiting: &api.Waiting{Reason: reason, Message: "a message"}}
}

func failed(p *api.Pod) {
	notReady(p)
	p.Status.Outcome.State, p.Status.Outcome.Message = api.RolloutFailed, "exit code 3"
}

func refused(reason api.Reason) func(*api.Pod) {
	return func(p *api.Pod) {
		p.Status.Conditions = append(p.Status.Conditions,
			api.Condition{Type: api.FileAccepted, Status: "False", Reason: reason, Message: "line 3"})
	}
}

// TestReady checks after which change a pod has reached its goal.
func TestReady(t *testing.T) {
	before := pod("1", "old")
	images := Goal{SpecHash: "old", Changed: true, Before: &before.Object}
	returned := with(pod("1", "old"), refused(api.ReasonRolledBack))
	trial := with(pod("1", "new"), progressing)
	onTrial := Goal{SpecHash: "new", Before: &trial.Object}
	update := Goal{SpecHash: "new", Before: &before.Object}
	stopped := with(pod("1", "old"), inState(api.ContainerState{Terminated: &api.Terminated{}}, "1"))
	succeeded := with(stopped, func(p *api.Pod) { p.Status.Phase = api.PhaseSucceeded })
	unpulled := with(pod("1", "old"), inState(waitingFor(api.ReasonImagePullBackOff), ""))
	const replaced = "the pod was changed to another definition in the meantime"
	for name, test := range map[string]struct {
		goal    Goal
		changes watch
		seen    int // changes until the goal is reached
		want    string
	}{
		"pod is ready": {Goal{}, watch{pod("1", "old")}, 1, ""},
		"pod becomes ready and stays so": {Goal{}, watch{
			with(pod("1", "old"), notReady), with(pod("1", "old"), progressing), pod("1", "old"),
		}, 3, ""},
		"pod was ready for a moment": {Goal{}, watch{
			with(pod("1", "old"), progressing), with(pod("1", "old"), failed),
		}, 2, "exit code 3"},
		"daemon of an earlier version": {Goal{}, watch{
			with(pod("1", "old"), notReady, earlier), with(pod("1", "old"), earlier),
		}, 2, ""},
		"daemon of an earlier version, pod succeeds": {Goal{}, watch{
			with(pod("1", "old"), notReady, earlier, func(p *api.Pod) { p.Status.Phase = api.PhaseSucceeded }),
		}, 1, ""},
		"limits are refused": {update, watch{
			with(pod("1", "new"), resizing("")), with(pod("1", "new"), resizing("below usage")), pod("1", "new"),
		}, 3, ""},
		"limits are refused, with a goal of started containers": {
			Goal{SpecHash: "new", Changed: true, Started: true, Before: &before.Object},
			watch{with(pod("1", "new"), request(3), resizing("")), with(pod("1", "new"), request(3), resizing("below usage"))},
			2,
			"the resize of the pod is not complete: below usage",
		},
		"limits require a restart of a pod that is not ready, with a goal of started containers": {
			Goal{SpecHash: "new", Changed: true, Started: true, Before: &before.Object},
			watch{with(pod("1", "new"), request(3), resizing("no cgroup"), notReady, infeasible)},
			1,
			"the resize of the pod is not complete: no cgroup",
		},
		"limits of an earlier change are refused, with a goal of started containers": {
			Goal{Started: true}, watch{with(pod("1", "new"), inState(runs, "1"), resizing("below usage"))}, 1, "",
		},
		"containers start": {Goal{Started: true}, watch{
			with(pod("1", "old"), notReady), with(pod("1", "old"), inState(waitingFor("ContainerCreating"), "")),
			with(pod("1", "old"), inState(runs, "1")),
		}, 3, ""},
		"one of two containers starts": {Goal{Started: true}, watch{
			with(pod("1", "old"), inState(runs, "1"), func(p *api.Pod) {
				second := api.ContainerStatus{Name: "second", State: waitingFor("ContainerCreating")}
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, second)
			}),
			with(pod("1", "old"), inState(runs, "1")),
		}, 2, ""},
		"container has started before": {Goal{Started: true}, watch{
			with(pod("1", "old"), inState(waitingFor("CrashLoopBackOff"), "1"), func(p *api.Pod) {
				p.Status.ContainerStatuses[0].LastState.Terminated = &api.Terminated{}
			}),
		}, 1, ""},
		"pod with a goal of started containers succeeds": {Goal{Started: true}, watch{
			with(pod("1", "old"), progressing, func(p *api.Pod) { p.Status.Phase = api.PhaseSucceeded }),
		}, 1, ""},
		"image of a container cannot be pulled": {Goal{Started: true}, watch{
			with(pod("1", "old"), inState(waitingFor(api.ReasonErrImagePull), "")),
		}, 1, "container app: ErrImagePull: a message"},
		"pod that was stopped starts again": {
			Goal{Started: true, Restarted: true, Before: &stopped.Object},
			watch{
				with(stopped, progressing), with(stopped, progressing, request(3), inState(waitingFor("ContainerCreating"), "1")),
				with(stopped, progressing, request(3), inState(runs, "1")), with(stopped, progressing, request(3), inState(runs, "2")),
			},
			4, "",
		},
		"pod that had succeeded starts again": {
			Goal{Started: true, Restarted: true, Before: &succeeded.Object},
			watch{succeeded, with(succeeded, progressing, request(3)), with(pod("1", "old"), request(3), inState(runs, "2"))},
			3, "",
		},
		"container of a pod that starts again cannot be created": {
			Goal{Started: true, Restarted: true, Before: &stopped.Object},
			watch{with(stopped, progressing, request(3), inState(waitingFor(api.ReasonRunContainerError), "2"))},
			1, "container app: RunContainerError: a message",
		},
		"changed pod runs the earlier container": {
			Goal{Started: true, SpecHash: "new", Changed: true, Before: &before.Object},
			watch{
				with(pod("1", "new"), request(3), inState(runs, "1")), with(pod("1", "new"), request(3), inState(runs, "2")),
				with(pod("1", "new"), request(3)),
			},
			3, "",
		},
		"image of a change cannot be pulled": {
			Goal{Started: true, SpecHash: "new", Changed: true, Before: &before.Object},
			watch{
				with(pod("1", "old"), pending("prepare pod \"web\"")),
				with(pod("1", "old"), pending("prepare pod \"web\": image \"a\": ErrImagePull: not found")),
			},
			2, "UpdatePending: prepare pod \"web\": image \"a\": ErrImagePull: not found",
		},
		"earlier failure": {
			Goal{Started: true, Before: &unpulled.Object},
			watch{unpulled, with(unpulled, inState(waitingFor("ContainerCreating"), "")), with(unpulled, inState(runs, "1"))},
			3, "",
		},
		"failure again": {
			Goal{Started: true, Before: &unpulled.Object},
			watch{unpulled, with(unpulled, inState(waitingFor(api.ReasonErrImagePull), ""))},
			2, "container app: ErrImagePull: a message",
		},
		"init container cannot be created": {Goal{Started: true}, watch{
			with(pod("1", "old"), inState(waitingFor("PodInitializing"), ""), func(p *api.Pod) {
				first := api.ContainerStatus{Name: "first", State: waitingFor(api.ReasonCreateConfigError)}
				p.Status.InitContainerStatuses = []api.ContainerStatus{first}
			}),
		}, 1, "container first: CreateContainerConfigError: a message"},
		"pod fails": {Goal{}, watch{with(pod("1", "old"), failed)}, 1, "exit code 3"},
		"old definition fails, new one is ready": {
			update, watch{with(pod("1", "old"), failed), {Type: api.Deleted, Object: before.Object}, pod("2", "new")}, 2, "",
		},
		"old definition is ready until the new one is": {update, watch{pod("1", "old"), pod("1", "new")}, 2, ""},
		"pod is being deleted": {Goal{}, watch{
			with(pod("1", "old"), func(p *api.Pod) { p.Metadata.DeletionTimestamp = new(time.Time) }), pod("2", "old"),
		}, 2, ""},
		"pod is created while the one before is being deleted": {Goal{SpecHash: "old", Created: true, Before: &before.Object}, watch{
			with(pod("1", "old"), failed), pod("2", "old"),
		}, 2, ""},
		"pod was stopped after it had succeeded": {Goal{}, watch{with(pod("1", "old"), func(p *api.Pod) {
			notReady(p)
			p.Metadata.DeletionTimestamp, p.Status.AtRest, p.Status.Phase = new(time.Time), true, api.PhaseSucceeded
			p.Status.Outcome.State = api.RolloutComplete
		})}, 1, ""},
		"file is invalid": {Goal{SpecHash: "new"}, watch{with(pod("1", "old"), refused("InvalidFile"))}, 1, "InvalidFile: line 3"},
		"file is rolled back": {
			Goal{SpecHash: "new"},
			watch{with(pod("2", "new"), notReady), with(pod("1", "old"), refused("RolledBack"))},
			2,
			"RolledBack: line 3",
		},
		"file without a pod": {
			Goal{},
			watch{with(pod("", ""), func(p *api.Pod) { p.Status.Reason, p.Status.Message = "Rejected", "no CPU" })},
			1,
			"Rejected: no CPU",
		},
		"update waits": {update, watch{
			with(pod("1", "old"), refused(api.ReasonUpdatePending)), pod("1", "new"),
		}, 2, ""},
		"later file is not taken": {Goal{SpecHash: "new"}, watch{with(pod("1", "new"), refused("InvalidFile"))}, 1, ""},
		"pod is stopped": {
			Goal{},
			watch{with(pod("1", "old"), func(p *api.Pod) { p.Status.StoppedAt = time.Now() })},
			1, "the pod is stopped: start it with podstead start web",
		},
		"definition is replaced": {update, watch{
			pod("1", "old"), with(pod("1", "new"), progressing), pod("1", "newest"),
		}, 3, replaced},
		"definition is never seen": {update, watch{pod("1", "old"), pod("1", "newest")}, 2, replaced},
		"other pod is created":     {Goal{SpecHash: "new", Created: true}, watch{pod("1", "newest")}, 1, replaced},
		"only the images change": {images, watch{
			pod("1", "old"), with(pod("1", "old"), progressing, request(3)), with(pod("1", "old"), request(3)),
		}, 3, ""},
		"only the images change, they fail": {images, watch{
			pod("1", "old"), with(pod("1", "old"), failed, request(3)),
		}, 2, "exit code 3"},
		"only the images change, they are rolled back": {images, watch{
			pod("1", "old"), with(pod("1", "old"), progressing, request(3)),
			with(pod("1", "old"), request(4), refused(api.ReasonRolledBack)),
		}, 3, "RolledBack: line 3"},
		"only the images change, others were rolled back": {Goal{SpecHash: "old", Changed: true, Before: &returned.Object}, watch{
			returned, with(pod("1", "old"), request(3)),
		}, 2, ""},
		"unchanged pod is on trial and passes":         {onTrial, watch{trial, pod("1", "new")}, 2, ""},
		"unchanged pod is on trial and is rolled back": {onTrial, watch{trial, returned}, 2, "RolledBack: line 3"},
		"unchanged pod is on trial with other images, which are rolled back": {onTrial, watch{
			trial, with(pod("1", "new"), request(4), refused(api.ReasonRolledBack)),
		}, 2, "RolledBack: line 3"},
		"unchanged pod is deleted by its rollback": {onTrial, watch{
			trial, {Type: api.Deleted, Object: with(trial, refused(api.ReasonRolledBack)).Object},
		}, 2, "RolledBack: line 3"},
		"unchanged pod was rolled back before": {
			Goal{SpecHash: "old", Before: &returned.Object}, watch{returned}, 1, "",
		},
		"only the images change, daemon of an earlier version": {images, watch{with(pod("1", "old"), earlier)}, 1, ""},
		"pod is deleted": {Goal{}, watch{
			with(pod("1", "old"), progressing), {Type: api.Deleted, Object: before.Object},
		}, 2, "the pod was deleted in the meantime"},
		"pod is replaced": {
			Goal{}, watch{with(pod("1", "old"), progressing), pod("2", "old")}, 2, "the pod was replaced in the meantime",
		},
		"definition changes back": {update, watch{with(pod("1", "new"), progressing), pod("1", "old")}, 2, replaced},
	} {
		t.Run(name, func(t *testing.T) {
			test.goal.Pod = "web"
			other := with(pod("9", ""), func(p *api.Pod) { p.Metadata.Name = "other" })
			changes := append(slices.Concat(watch{other, {Type: api.Listed}}, test.changes), with(pod("1", "never"), failed))
			seen := 0
			got, err := Ready(t.Context(), changes, []Goal{test.goal}, func(*api.Pod) { seen++ })
			message := ""
			if got["web"] != nil {
				message = got["web"].Error()
			}
			if err != nil || seen != test.seen || message != test.want {
				t.Errorf("after %d changes: %q, %v; want %q after %d", seen, message, err, test.want, test.seen)
			}
		})
	}
}

// TestReadyTimeout checks that pods that are not ready are returned when the context ends, and that a lost connection is an error.
func TestReadyTimeout(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	goals := []Goal{{Pod: "web"}, {Pod: "db"}}
	got, err := Ready(ctx, watch{pod("1", "")}, goals, func(*api.Pod) { cancel() })
	if err != nil || len(got) != 1 || !errors.Is(got["db"], context.Canceled) {
		t.Errorf("%v, %v, want the end of the context for db", got, err)
	}
	lost := errors.New("connection lost")
	if _, err := Ready(t.Context(), broken{lost}, goals, func(*api.Pod) {}); !errors.Is(err, lost) {
		t.Errorf("lost connection: %v", err)
	}
	if got, err := Ready(t.Context(), broken{lost}, nil, nil); err != nil || len(got) > 0 {
		t.Errorf("no pods: %v, %v", got, err)
	}
}

// TestStartFails checks that a pod that waits for one that cannot start is not awaited.
func TestStartFails(t *testing.T) {
	goals := []Goal{{Pod: "web", Started: true}, {Pod: "db", Started: true}}
	got, err := Ready(t.Context(), watch{with(pod("1", ""), inState(waitingFor(api.ReasonErrImagePull), ""))}, goals, func(*api.Pod) {})
	if err != nil || len(got) != 1 || got["web"] == nil {
		t.Errorf("%v, %v, want the error of web", got, err)
	}
}

// broken is a watch whose connection is lost.
type broken struct{ err error }

func (b broken) Watch(context.Context) iter.Seq2[api.PodChange, error] {
	return func(yield func(api.PodChange, error) bool) { yield(api.PodChange{}, b.err) }
}

func (broken) Connect(context.Context) error { return nil }

// TestRestartOfDaemon checks that the wait continues when the daemon restarts, with what the next daemon lists.
func TestRestartOfDaemon(t *testing.T) {
	one, two := pod("1", ""), pod("2", "")
	first := watch{one, two}
	for name, test := range map[string]struct {
		daemon restarting
		want   []string
	}{
		"connection lost": {restarting{watches: []watch{first, {{Type: api.Listed}}}, end: api.ErrUnavailable}, []string{"one", "two"}},
		"daemon stopped": {restarting{
			watches: []watch{{one, two, {Type: api.Listed}}, {two, {Type: api.Listed}, {Type: api.Deleted, Object: two.Object}}},
			connect: []error{&api.StoppedError{Pods: 2}, &api.StoppedError{Pods: 2}},
		}, []string{"one", "two"}},
		"daemon stopped without pods": {restarting{watches: []watch{first}, connect: []error{&api.StoppedError{}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []string
				err := Deleted(t.Context(), &test.daemon, map[string]string{"1": "one", "2": "two"},
					func(name, _ string) { got = append(got, name) })
				slices.Sort(got)
				if _, stopped := errors.AsType[*api.StoppedError](err); !slices.Equal(got, test.want) || stopped != (test.want == nil) {
					t.Errorf("%q, %v, want %q", got, err, test.want)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		d := restarting{
			watches: []watch{{with(pod("1", ""), notReady)}, {with(pod("1", ""), notReady)}, {pod("1", "")}}, end: api.ErrUnavailable,
		}
		seen := 0
		got, err := Ready(t.Context(), &d, []Goal{{Pod: "web"}}, func(*api.Pod) { seen++ })
		if err != nil || len(got) > 0 || seen != 3 {
			t.Errorf("ready after %d changes: %v, %v; want 3", seen, got, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		d := restarting{watches: []watch{{pod("1", "")}, {pod("1", "")}}, end: api.ErrUnavailable}
		before := pod("1", "")
		got, err := Ready(t.Context(), &d, []Goal{{Pod: "web", Changed: true, Before: &before.Object}}, func(*api.Pod) {})
		const want = "the daemon was restarted before the pod was changed: apply the file again"
		if err != nil || fmt.Sprint(got["web"]) != want {
			t.Errorf("images that a daemon has forgotten: %v, %v; want %q", got, err, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		d := restarting{connect: slices.Repeat([]error{&api.StoppedError{Pods: 1}}, 1000), end: api.ErrUnavailable}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got, err := Ready(ctx, &d, []Goal{{Pod: "web"}}, nil)
		if err != nil || !errors.Is(got["web"], context.DeadlineExceeded) {
			t.Errorf("daemon that is not started again: %v, %v; want the deadline for web", got, err)
		}
	})
}

// restarting is a daemon that ends each watch, with an error or, without one, as a daemon that stops.
type restarting struct {
	watches []watch
	end     error
	connect []error // of the next calls of Connect
}

func (r *restarting) Watch(ctx context.Context) iter.Seq2[api.PodChange, error] {
	return func(yield func(api.PodChange, error) bool) {
		var next watch
		if len(r.watches) > 0 {
			next, r.watches = r.watches[0], r.watches[1:]
		}
		for _, c := range next {
			if !yield(c, nil) {
				return
			}
		}
		if r.end != nil && ctx.Err() == nil {
			yield(api.PodChange{}, r.end)
		}
	}
}

func (r *restarting) Connect(ctx context.Context) error {
	if len(r.connect) == 0 {
		return ctx.Err()
	}
	err := r.connect[0]
	r.connect = r.connect[1:]
	return err
}

// TestStoppedAndDeleted checks that deleted pods count as stopped, and stopped ones not as deleted.
func TestStoppedAndDeleted(t *testing.T) {
	rest := with(pod("1", ""), func(p *api.Pod) { p.Status.AtRest = true })
	changes := watch{
		{Type: api.Added, Object: pod("1", "").Object},
		{Type: api.Added, Object: pod("2", "").Object},
		{Type: api.Listed},
		rest,
		{Type: api.Deleted, Object: pod("2", "").Object},
		{Type: api.Deleted, Object: rest.Object},
	}
	for name, test := range map[string]struct {
		wait func(context.Context, Daemon, map[string]string, func(name, problem string)) error
		want []string
	}{
		"stopped": {Stopped, []string{"none", "one", "two"}},
		"deleted": {Deleted, []string{"none", "two", "one"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			err := test.wait(t.Context(), changes, map[string]string{"1": "one", "2": "two", "3": "none"},
				func(name, problem string) { got = append(got, name+problem) })
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestNotDurable: a pod whose state cannot be saved is stopped when its containers have exited, and is not awaited when it cannot be
// removed.
func TestNotDurable(t *testing.T) {
	change := func(phase api.Phase, atRest bool, conditions ...api.ConditionType) api.PodChange {
		return with(pod("1", ""), func(p *api.Pod) {
			p.Metadata.DeletionTimestamp = new(time.Time)
			p.Status.Phase, p.Status.AtRest, p.Status.Conditions = phase, atRest, nil
			for _, c := range conditions {
				p.Status.Conditions = append(p.Status.Conditions, api.Condition{Type: c, Status: "True", Message: string(c)})
			}
		})
	}
	none, unsaved, kept := api.ConditionType(""), api.StateNotDurable, api.RemovalFailed
	for name, tt := range map[string]struct {
		change           api.PodChange
		stopped, deleted []string
	}{
		"runs":              {change(api.PhaseRunning, false, unsaved), nil, nil},
		"exited":            {change(api.PhaseFailed, false, none), nil, nil},
		"exited, not saved": {change(api.PhaseFailed, false, unsaved), []string{"one: StateNotDurable"}, nil},
		"not removed":       {change(api.PhaseFailed, false, kept), nil, nil},
		"not removed, not saved": {
			change(api.PhaseSucceeded, false, unsaved, kept), []string{"one: StateNotDurable"}, []string{"one: RemovalFailed"},
		},
		"at rest, not saved":        {change(api.PhaseSucceeded, true, unsaved), []string{"one: StateNotDurable"}, nil},
		"at rest":                   {change(api.PhaseSucceeded, true), []string{"one: "}, nil},
		"runs, sandbox not removed": {change(api.PhaseRunning, false, unsaved, kept), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, wait := range []struct {
				pods func(context.Context, Daemon, map[string]string, func(name, problem string)) error
				want []string
			}{{Stopped, tt.stopped}, {Deleted, tt.deleted}} {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					var got []string
					err := wait.pods(ctx, watch{tt.change}, map[string]string{"1": "one"},
						func(name, problem string) { got = append(got, name+": "+problem) })
					if diff := cmp.Diff(wait.want, got); diff != "" || wait.want == nil != errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v (-want +got):\n%s", err, diff)
					}
				})
			}
		})
	}
}
