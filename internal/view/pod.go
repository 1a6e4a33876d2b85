// Package view renders values of package api as text and JSON: the table of `get`, the output and the events of `run`, and `why`.
package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
)

// columns are the columns that depend on the containers of a pod (kubectl: printPod). Init containers count up to the first one that has
// not completed or, for a sidecar, not started. App containers count when the pod is initialized.
type columns struct {
	status       string
	ready, total int
	restarts     int
	last         time.Time // finishedAt of the newest run that was followed by a restart
}

// columnsOf returns the columns of a pod. If the init containers run again in a new pod sandbox, for example after a reboot, they
// determine the status, not the previous runs of the app containers.
func columnsOf(p *api.Pod) columns {
	c := columns{status: cmp.Or(string(p.Status.Reason), string(p.Status.Phase))}
	c.total = max(len(p.Spec.Containers), len(p.Status.ContainerStatuses)) // a pod that was rejected has no statuses
	for i := range p.Spec.InitContainers {
		if isSidecar(p, i) {
			c.total++
		}
	}
	init := columns{}
	initializing := c.addInit(p, &init)
	initialized := conditionTrue(p, api.PodInitialized)
	if initializing && !initialized {
		c.restarts, c.last = init.restarts, init.last
	} else {
		for i := range p.Status.ContainerStatuses {
			app := &p.Status.ContainerStatuses[i]
			c.addRestarts(app)
			if app.Ready && app.State.Running != nil {
				c.ready++
			}
		}
	}
	if !initializing || initialized && !reinitializing(p) {
		c.status = appStatus(p, c.status)
	}
	switch {
	case p.Metadata.DeletionTimestamp != nil && !p.Status.Phase.Terminal():
		c.status = "Terminating"
	case !p.Status.StoppedAt.IsZero():
		c.status = "Stopped"
	case p.Status.Reason == api.ReasonJobComplete, p.Status.Reason == api.ReasonJobFailed:
		c.status = string(p.Status.Reason)
	case p.Status.Reason == api.ReasonWaitingFor:
		c.status = "Waiting"
	}
	return c
}

// addInit adds the sidecars to c and all init containers to init. It reports whether the pod is initializing, and sets the status then.
func (c *columns) addInit(p *api.Pod, init *columns) bool {
	for i := range p.Status.InitContainerStatuses {
		s := &p.Status.InitContainerStatuses[i]
		init.addRestarts(s)
		if isSidecar(p, i) {
			c.addRestarts(s)
		}
		switch t, w := s.State.Terminated, s.State.Waiting; {
		case t != nil && t.ExitCode == 0:
		case isSidecar(p, i) && s.Started != nil && *s.Started:
			if s.Ready {
				c.ready++
			}
		case t != nil:
			c.status = "Init:" + terminatedStatus(t)
			return true
		case w != nil && w.Reason != "" && w.Reason != api.ReasonPodInitializing:
			c.status = "Init:" + string(w.Reason)
			return true
		default:
			c.status = fmt.Sprintf("Init:%d/%d", i, len(p.Status.InitContainerStatuses))
			return true
		}
	}
	return false
}

// addRestarts adds the restarts of a container.
func (c *columns) addRestarts(s *api.ContainerStatus) {
	c.restarts += s.RestartCount
	if t := s.LastState.Terminated; t != nil && t.FinishedAt.After(c.last) {
		c.last = t.FinishedAt
	}
}

// Status returns the STATUS column of a pod.
func Status(p *api.Pod) string { return columnsOf(p).status }

// markedStatus returns the STATUS column with a mark if an earlier generation runs in place of the pod's file.
func markedStatus(p *api.Pod) string {
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type == api.FileAccepted && (c.Reason == api.ReasonRolledBack || c.Reason == api.ReasonRolloutUndone) {
			return fmt.Sprintf("%s (%s)", Status(p), c.Reason)
		}
	}
	return Status(p)
}

// scheduleStatus returns the STATUS column of a pod that is started by a schedule, with its last and its next run.
func scheduleStatus(p *api.Pod, now time.Time) string {
	var times []string
	if last := p.Status.Schedule.LastScheduleTime; !last.IsZero() {
		times = append(times, "last "+Age(now.Sub(last))+" ago")
	}
	if next := p.Status.Schedule.NextScheduleTime; !next.IsZero() {
		times = append(times, "next in "+Age(next.Sub(now)))
	}
	if len(times) == 0 {
		return Status(p)
	}
	return fmt.Sprintf("%s (%s)", Status(p), strings.Join(times, ", "))
}

// wideStatus returns the STATUS column with who stopped the pod, or why its file is not what runs.
func wideStatus(p *api.Pod, now time.Time) string {
	status := Status(p)
	if at := p.Status.StoppedAt; !at.IsZero() {
		by := p.Status.StoppedBy
		if user := strings.LastIndex(by, "uid "); user >= 0 {
			by = by[user:] // without the command and its process ID
		}
		return fmt.Sprintf("%s (by %s, %s ago)", status, by, Age(now.Sub(at)))
	}
	for _, c := range p.Status.Conditions {
		if c.Type == api.FileAccepted && c.Status == "False" {
			return fmt.Sprintf("%s (%s)", status, c.Reason)
		}
	}
	return status
}

// reinitializing reports whether the init containers run again, and all app containers show the state of their previous run.
func reinitializing(p *api.Pod) bool {
	return p.Status.Phase == api.PhasePending &&
		!slices.ContainsFunc(p.Status.ContainerStatuses, func(c api.ContainerStatus) bool { return c.State.Terminated == nil })
}

// isSidecar reports whether the init container at an index is a sidecar.
func isSidecar(p *api.Pod, i int) bool {
	return i < len(p.Spec.InitContainers) && p.Spec.InitContainers[i].IsSidecar()
}

// appStatus returns the reason of the first app container that has one, otherwise the given reason. "Completed" is replaced if another
// container is running or has failed.
func appStatus(p *api.Pod, reason string) string {
	running, failed := false, ""
	list := p.Status.ContainerStatuses
	for i := len(list) - 1; i >= 0; i-- {
		switch c := &list[i]; {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			reason = string(c.State.Waiting.Reason)
		case c.State.Terminated != nil:
			reason = terminatedStatus(c.State.Terminated)
			if c.State.Terminated.ExitCode != 0 {
				failed = reason
			}
		case c.Ready && c.State.Running != nil:
			running = true
		}
	}
	switch {
	case reason != string(api.ReasonCompleted):
		return reason
	case running && conditionTrue(p, api.PodReady):
		return "Running"
	case failed != "":
		return failed
	case running:
		return "NotReady"
	}
	return reason
}

// terminatedStatus returns the reason of a terminated container, or its exit code.
func terminatedStatus(t *api.Terminated) string {
	return cmp.Or(string(t.Reason), "ExitCode:"+strconv.Itoa(t.ExitCode))
}

// conditionTrue reports whether the status of a condition is "True".
func conditionTrue(p *api.Pod, t api.ConditionType) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == t {
			return c.Status == "True"
		}
	}
	return false
}

// Ready returns the READY column: the number of ready containers and of all containers, including sidecars.
func Ready(p *api.Pod) string {
	c := columnsOf(p)
	return fmt.Sprintf("%d/%d", c.ready, c.total)
}

// RestartsOf returns the numbers of the RESTARTS column: of restarts, and the time of the last one; zero: not known.
func RestartsOf(p *api.Pod) (n int, last time.Time) {
	c := columnsOf(p)
	return c.restarts, c.last
}

// Restarts returns the RESTARTS column: the number of restarts and the time since the last one.
func Restarts(p *api.Pod, now time.Time) string {
	c := columnsOf(p)
	if c.restarts == 0 || c.last.IsZero() {
		return strconv.Itoa(c.restarts)
	}
	return fmt.Sprintf("%d (%s ago)", c.restarts, Age(now.Sub(c.last)))
}

// Age formats a duration like kubectl (k8s.io/apimachinery/pkg/util/duration: HumanDuration).
func Age(d time.Duration) string {
	const day = 24 * time.Hour
	two := func(big time.Duration, bigName string, small time.Duration, smallName string) string {
		if rest := d % big / small; rest > 0 {
			return fmt.Sprintf("%d%s%d%s", d/big, bigName, rest, smallName)
		}
		return fmt.Sprintf("%d%s", d/big, bigName)
	}
	switch d = d.Truncate(time.Second); {
	case d < 0:
		return "0s" // the wall clock was set back since the start
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 10*time.Minute:
		return two(time.Minute, "m", time.Second, "s")
	case d < 3*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 8*time.Hour:
		return two(time.Hour, "h", time.Minute, "m")
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 8*day:
		return two(day, "d", time.Hour, "h")
	}
	return fmt.Sprintf("%dd", d/day)
}
