// Package view is what a person sees of pods: the table of `get`, the prefixed output and the events of `run`. It prints
// values of package api and decides nothing.
package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// columns are what a row says of a pod's containers, by the rules of kubectl's printer (printPod). Init containers count up to the
// first that is not done, or sidecar that is not started, and app containers once the pod is initialized.
type columns struct {
	status       string
	ready, total int
	restarts     int
	last         time.Time // when a run ended that another one has followed
}

// columnsOf counts the containers of a pod. One whose init containers run again, since the machine was restarted, has them for its
// status, and not how its containers ended then.
func columnsOf(p *api.Pod) columns {
	c := columns{status: cmp.Or(string(p.Status.Reason), string(p.Status.Phase)), total: len(p.Status.ContainerStatuses)}
	for i := range p.Spec.InitContainers {
		if sidecar(p, i) {
			c.total++
		}
	}
	whole := columns{}
	initializing := c.addInit(p, &whole)
	initialized := holds(p, lifecycle.PodInitialized)
	if initializing && !initialized {
		c.restarts, c.last = whole.restarts, whole.last
	} else {
		for i := range p.Status.ContainerStatuses {
			app := &p.Status.ContainerStatuses[i]
			c.addRestarts(app)
			if app.Ready && app.State.Running != nil {
				c.ready++
			}
		}
	}
	if !initializing || initialized && !beginsAgain(p) {
		c.status = appStatus(p, c.status)
	}
	if p.Metadata.DeletionTimestamp != nil && !p.Status.Phase.Terminal() {
		c.status = "Terminating"
	}
	return c
}

// addInit counts the sidecars, and into whole all init containers, and reports whether the pod is at one of them, which has the status
// then.
func (c *columns) addInit(p *api.Pod, whole *columns) bool {
	for i := range p.Status.InitContainerStatuses {
		s := &p.Status.InitContainerStatuses[i]
		whole.addRestarts(s)
		if sidecar(p, i) {
			c.addRestarts(s)
		}
		switch t, w := s.State.Terminated, s.State.Waiting; {
		case t != nil && t.ExitCode == 0:
		case sidecar(p, i) && s.Started != nil && *s.Started:
			if s.Ready {
				c.ready++
			}
		case t != nil:
			c.status = "Init:" + endStatus(t)
			return true
		case w != nil && w.Reason != "" && w.Reason != lifecycle.ReasonPodInitializing:
			c.status = "Init:" + string(w.Reason)
			return true
		default:
			c.status = fmt.Sprintf("Init:%d/%d", i, len(p.Status.InitContainerStatuses))
			return true
		}
	}
	return false
}

// addRestarts counts the restarts of a container, and when the newest run that was followed by one ended.
func (c *columns) addRestarts(s *lifecycle.ContainerStatus) {
	c.restarts += s.RestartCount
	if t := s.LastState.Terminated; t != nil && t.FinishedAt.After(c.last) {
		c.last = t.FinishedAt
	}
}

// Status is the STATUS column of a pod.
func Status(p *api.Pod) string { return columnsOf(p).status }

// beginsAgain reports whether a pod is at its init containers again, and all that its own show is how they ended before.
func beginsAgain(p *api.Pod) bool {
	return p.Status.Phase == lifecycle.PhasePending &&
		!slices.ContainsFunc(p.Status.ContainerStatuses, func(c lifecycle.ContainerStatus) bool { return c.State.Terminated == nil })
}

// sidecar reports whether an init container, by its place, is one that keeps running.
func sidecar(p *api.Pod, i int) bool {
	return i < len(p.Spec.InitContainers) && p.Spec.InitContainers[i].IsSidecar()
}

// appStatus is that of the last container, from the end, that has a reason, else what it was. That one is done says nothing
// beside others that run or that have failed.
func appStatus(p *api.Pod, reason string) string {
	running, failed := false, ""
	list := p.Status.ContainerStatuses
	for i := len(list) - 1; i >= 0; i-- {
		switch c := &list[i]; {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			reason = string(c.State.Waiting.Reason)
		case c.State.Terminated != nil:
			reason = endStatus(c.State.Terminated)
			if c.State.Terminated.ExitCode != 0 {
				failed = reason
			}
		case c.Ready && c.State.Running != nil:
			running = true
		}
	}
	switch {
	case reason != string(lifecycle.ReasonCompleted):
		return reason
	case running && holds(p, lifecycle.PodReady):
		return "Running"
	case failed != "":
		return failed
	case running:
		return "NotReady"
	}
	return reason
}

// endStatus is the word for how a container ended.
func endStatus(t *lifecycle.Terminated) string {
	return cmp.Or(string(t.Reason), "ExitCode:"+strconv.Itoa(t.ExitCode))
}

// holds reports whether a condition is true.
func holds(p *api.Pod, t lifecycle.ConditionType) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == t {
			return c.Status == "True"
		}
	}
	return false
}

// Ready is the READY column: how many of the containers are ready, sidecars included.
func Ready(p *api.Pod) string {
	c := columnsOf(p)
	return fmt.Sprintf("%d/%d", c.ready, c.total)
}

// Restarts is the RESTARTS column: their number, and how long ago the last was.
func Restarts(p *api.Pod, now time.Time) string {
	c := columnsOf(p)
	if c.restarts == 0 || c.last.IsZero() {
		return strconv.Itoa(c.restarts)
	}
	return fmt.Sprintf("%d (%s ago)", c.restarts, Age(now.Sub(c.last)))
}

// Age is a span of time as kubectl shows one: two units at most, coarser the longer it is.
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
		return "0s" // the wall clock was set back
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
