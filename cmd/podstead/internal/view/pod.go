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

// Status is the STATUS column of a pod, by the rules of kubectl's printer (printPod). One whose init containers run again, since the
// machine was restarted, has them for its status, and not how its containers ended then.
func Status(p *api.Pod) string {
	reason := string(p.Status.Reason)
	if reason == "" {
		reason = string(p.Status.Phase)
	}
	s := initStatus(p)
	if s != "" {
		reason = s
	}
	if s == "" || holds(p, lifecycle.PodInitialized) && !beginsAgain(p) {
		reason = appStatus(p, reason)
	}
	if p.Metadata.DeletionTimestamp != nil && !p.Status.Phase.Terminal() {
		reason = "Terminating"
	}
	return reason
}

// beginsAgain reports whether a pod is at its init containers again, and all that its own show is how they ended before.
func beginsAgain(p *api.Pod) bool {
	return p.Status.Phase == lifecycle.PhasePending &&
		!slices.ContainsFunc(p.Status.ContainerStatuses, func(c lifecycle.ContainerStatus) bool { return c.State.Terminated == nil })
}

// sidecar reports whether an init container, by its place, is one that keeps running.
func sidecar(p *api.Pod, i int) bool {
	return i < len(p.Spec.InitContainers) && p.Spec.InitContainers[i].IsSidecar()
}

// initStatus is that of the first init container that is not done, or sidecar that is not started, empty if there is none.
func initStatus(p *api.Pod) string {
	for i, c := range p.Status.InitContainerStatuses {
		switch t, w := c.State.Terminated, c.State.Waiting; {
		case t != nil && t.ExitCode == 0, sidecar(p, i) && c.Started != nil && *c.Started:
			continue
		case t != nil:
			return "Init:" + endStatus(t)
		case w != nil && w.Reason != "" && w.Reason != lifecycle.ReasonPodInitializing:
			return "Init:" + string(w.Reason)
		}
		return fmt.Sprintf("Init:%d/%d", i, len(p.Status.InitContainerStatuses))
	}
	return ""
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
	list := keepRunning(p)
	ready := 0
	for _, c := range list {
		if c.Ready {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d", ready, len(list))
}

// keepRunning are the statuses of the sidecars and of the app containers.
func keepRunning(p *api.Pod) []lifecycle.ContainerStatus {
	var list []lifecycle.ContainerStatus
	for i, c := range p.Status.InitContainerStatuses {
		if sidecar(p, i) {
			list = append(list, c)
		}
	}
	return append(list, p.Status.ContainerStatuses...)
}

// Restarts is the RESTARTS column: their number, and how long ago the last was.
func Restarts(p *api.Pod, now time.Time) string {
	list := keepRunning(p)
	if initStatus(p) != "" && !holds(p, lifecycle.PodInitialized) {
		list = p.Status.InitContainerStatuses
	}
	n, last := 0, time.Time{}
	for _, c := range list {
		n += c.RestartCount
		if t := c.LastState.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt
		}
	}
	if n == 0 || last.IsZero() {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d (%s ago)", n, Age(now.Sub(last)))
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
