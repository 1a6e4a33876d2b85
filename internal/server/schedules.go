package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/explain"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/schedule"
)

// Schedules are the pods that are started by a schedule, under other names. [*schedule.Schedules] implements it.
type Schedules interface {
	List() []schedule.Status
	// Settle waits until no run is being started that was decided before the call.
	Settle()
	// Changed returns a channel that is closed when a schedule has changed.
	Changed() <-chan struct{}
	Status(pod string) (schedule.Status, bool)
	StartNow(pod, by string) (run string, err error)
	Delete(ctx context.Context, pod, by string) error
}

// scheduled returns the schedule of a pod; ok is false if it has none.
func (s *Server) scheduled(pod string) (status schedule.Status, ok bool) {
	if s.o.Schedules == nil {
		return schedule.Status{}, false
	}
	return s.o.Schedules.Status(pod)
}

// scheduledPods returns the pods that are started by a schedule. They have no UID: what runs are other pods.
func (s *Server) scheduledPods() []api.Pod {
	if s.o.Schedules == nil {
		return nil
	}
	var list []api.Pod
	for _, status := range s.o.Schedules.List() {
		list = append(list, scheduledPod(&status))
	}
	return list
}

func scheduledPod(status *schedule.Status) api.Pod {
	d := status.Pod
	p := api.Pod{
		Kind: "Pod", APIVersion: "v1",
		Metadata: api.Metadata{Name: d.Name, Namespace: "default", Labels: d.Labels, Annotations: d.Annotations},
		Spec:     api.PodSpec{Pod: withPullPolicies(d, &lifecycle.Facts{}), NodeName: nodeName()},
		Status: api.PodStatus{
			Phase: api.PhasePending, Reason: status.Reason, Message: scheduleText(status, time.Time{}), Conditions: []api.Condition{},
			QOSClass: d.QOS(), File: status.File,
			Schedule: &api.ScheduleStatus{LastScheduleTime: whole(status.Last), NextScheduleTime: whole(status.Next)},
		},
	}
	if status.Reason == api.ReasonScheduled && !status.Failure.Scheduled.IsZero() {
		p.Status.Reason = api.ReasonRunNotStarted
	}
	for _, r := range status.Runs {
		switch {
		case !r.Finished:
			p.Status.Schedule.Active = append(p.Status.Schedule.Active, r.Pod)
		case r.Succeeded() && r.Ended.After(p.Status.Schedule.LastSuccessfulTime):
			p.Status.Schedule.LastSuccessfulTime = whole(r.Ended)
		}
	}
	return p
}

// whole is a time in UTC and whole seconds, as in Kubernetes.
func whole(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Second)
}

// scheduleText is what a schedule has done and does next, for people. It states how long that is from now; zero: it does not.
func scheduleText(status *schedule.Status, now time.Time) string {
	var sentences []string
	switch status.Reason { //nolint:exhaustive // one that waits for its time has no sentence
	case api.ReasonSuspended:
		sentences = append(sentences, "The schedule is suspended.")
	case api.ReasonClockNotSet:
		sentences = append(sentences, "No run starts until the clock of the host is set.")
	case api.ReasonRunActive:
		sentences = append(sentences, "A run waits until an earlier one has finished.")
	}
	if !status.Failure.Scheduled.IsZero() {
		sentences = append(sentences, fmt.Sprintf("The run of %s was not started: %s.", localTime(status.Failure.Scheduled),
			strings.TrimRight(status.Failure.Cause, ".\n")))
	}
	if !status.Next.IsZero() {
		wait := ""
		if !now.IsZero() {
			wait = " (in " + untilText(status.Next.Sub(now)) + ")"
		}
		sentences = append(sentences, "Next run at "+localTime(status.Next)+wait+".")
	}
	if len(status.Runs) == 0 {
		if status.Last.IsZero() {
			return strings.Join(append(sentences, "No run has started yet."), " ")
		}
		return strings.Join(append(sentences, "Last run at "+localTime(status.Last)+"."), " ")
	}
	last := &status.Runs[0]
	outcome := "is running"
	switch {
	case last.Succeeded():
		outcome = "succeeded"
	case last.Stopped:
		outcome = "was stopped"
	case last.Finished:
		outcome = "failed"
	case last.Waiting != "":
		outcome = "is waiting: " + string(last.Waiting)
	}
	return strings.Join(append(sentences, fmt.Sprintf("Last run %s at %s %s.", last.Pod, localTime(last.Created), outcome)), " ")
}

func localTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

// untilText is a duration without what a person does not read.
func untilText(d time.Duration) string {
	if d = max(d, 0); d > time.Hour {
		return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
	}
	return d.Truncate(time.Second).String()
}

// notAPod is the error of a request that only a pod can answer, such as for logs, if the name is that of a pod with a schedule.
func notAPod(status *schedule.Status) *api.Error {
	name := status.Pod.Name
	e := failure(http.StatusConflict, "pod %q is started by its schedule, and has no run", name)
	e.Hint = "run podstead start " + name
	if len(status.Runs) > 0 {
		newest := status.Runs[0].Pod
		e.Message = fmt.Sprintf("pod %q is started by its schedule, its newest run is pod %q", name, newest)
		e.Hint = "list all runs with podstead get -l " + spec.LabelSchedule + "=" + name
	}
	return e
}

// suspendInstead is the error of a request to stop a pod that is started by its schedule.
func suspendInstead(status *schedule.Status) *api.Error {
	e := failure(http.StatusConflict, "pod %q is started by its schedule, and does not run itself", status.Pod.Name)
	e.Hint = "set suspend = true with podstead edit " + status.Pod.Name + ", or delete it with podstead delete " + status.Pod.Name
	return e
}

// deleteRuns deletes the runs of a pod with a schedule whose file was removed.
func (s *Server) deleteRuns(r *http.Request, name, file string) error {
	if err := s.o.Schedules.Delete(r.Context(), name, requester(r)); err != nil {
		return fmt.Errorf("file %s was removed, but not all runs of pod %q were deleted: %w", file, name, err)
	}
	return nil
}

// explainSchedule explains a pod that is started by a schedule.
func (s *Server) explainSchedule(ctx context.Context, status *schedule.Status) api.Explanation {
	ctx, cancel := context.WithTimeout(ctx, historyLimit)
	defer cancel()
	now := s.o.Supervisor.Now().Wall
	rule := status.Pod.Schedule
	zone := ""
	if rule.TimeZone != "" {
		zone = " (" + rule.TimeZone + ")"
	}
	e := api.Explanation{
		Pod: status.Pod.Name, State: api.PodStateScheduled, Next: whole(status.Next),
		Healthy:  status.Failure.Scheduled.IsZero() && status.Reason != api.ReasonClockNotSet,
		Schedule: fmt.Sprintf("runs at %q%s. %s", rule.Cron, zone, scheduleText(status, now)),
	}
	if len(status.Runs) > 0 {
		last := &status.Runs[0]
		e.Healthy = e.Healthy && !last.Failed()
		if last.Failed() || last.Waiting != "" {
			e.Schedule += " See podstead why " + last.Pod + "."
		}
	}
	events, _ := s.o.Supervisor.History(ctx, e.Pod) // with an error it returns those that could be read
	e.Timeline = explain.ScheduleTimeline(events)
	explain.Render(&e, now.Local())
	return e
}
