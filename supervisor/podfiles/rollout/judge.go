package rollout

import (
	"fmt"
	"slices"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// verdict is what became of a definition that a pod runs. The zero verdict: it is not known yet.
type verdict struct {
	ready     bool
	succeeded bool
	failed    string // why
}

// judge returns what became of the definition that a pod runs since an instant.
func judge(p *supervisor.Snapshot, since lifecycle.Instant) verdict {
	switch {
	case p.Status.Phase == lifecycle.PhaseSucceeded:
		return verdict{succeeded: true}
	case p.AtRest && !startedSince(p, since):
		return verdict{succeeded: true} // it had completed before, and the change started nothing
	case p.Status.Phase == lifecycle.PhaseFailed && p.AtRest:
		return verdict{failed: phaseFailure(p)}
	}
	return verdict{ready: isReady(p), failed: failedRun(p, since)}
}

// isReady reports whether a pod is ready, and runs its definition only: no run of an earlier one has to stop.
func isReady(p *supervisor.Snapshot) bool {
	if len(p.Facts.Outgoing) > 0 || !p.Facts.Restart.Requested.IsZero() {
		return false
	}
	for _, c := range p.Facts.Containers {
		if c.Replaced.Attempt > 0 && c.Newest.N() <= c.Replaced.Attempt {
			return false
		}
	}
	return conditionOf(p, lifecycle.PodReady).Status == "True"
}

// startedSince reports whether a pod was accepted, or a run of a container requested, since an instant.
func startedSince(p *supervisor.Snapshot, since lifecycle.Instant) bool {
	if !p.Facts.Accepted.Before(since) {
		return true
	}
	for _, c := range p.Facts.Containers {
		if c.Newest.N() > 0 && !c.Newest.Requested.Before(since) {
			return true
		}
	}
	return false
}

func conditionOf(p *supervisor.Snapshot, t lifecycle.ConditionType) lifecycle.Condition {
	for _, c := range p.Status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return lifecycle.Condition{}
}

func phaseFailure(p *supervisor.Snapshot) string {
	text := "the pod failed"
	if p.Status.Reason != "" {
		text += " (" + string(p.Status.Reason) + ")"
	}
	if p.Status.Message != "" {
		text += ": " + p.Status.Message
	}
	return text
}

// failedRun describes the first run of a container that was requested after an instant and has failed; empty: there is none.
func failedRun(p *supervisor.Snapshot, since lifecycle.Instant) string {
	for _, list := range [][]spec.Container{p.Pod.InitContainers, p.Pod.Containers} {
		for i := range list {
			c := p.Facts.Containers[list[i].Name]
			for _, a := range []*lifecycle.Attempt{&c.Previous, &c.Newest} {
				if text := failure(a, since); text != "" {
					return fmt.Sprintf("container %q %s", list[i].Name, text)
				}
			}
		}
	}
	return ""
}

// notFailures are reasons for which a run ends although its definition may be good.
var notFailures = []lifecycle.Reason{lifecycle.ReasonUnknown, lifecycle.ReasonStatusUnknown}

// failure describes why a run failed; empty: it has not, or not because of its definition.
func failure(a *lifecycle.Attempt, since lifecycle.Instant) string {
	switch {
	case a.Exited.IsZero() || a.Requested.Before(since) || a.Exit.Code == 0 || slices.Contains(notFailures, a.Exit.Reason):
		return ""
	case a.StopReason == lifecycle.ReasonLivenessProbe:
		return "was stopped because its liveness probe failed"
	case a.StopReason == lifecycle.ReasonStartupProbe:
		return "was stopped because its startup probe failed"
	case a.StopReason == lifecycle.ReasonFailedPostStartHook:
		return "was stopped because its postStart hook failed"
	case a.StopReason != "":
		return ""
	case a.Exit.Reason == lifecycle.ReasonStartError:
		return "could not be started: " + a.Exit.Message
	case a.Exit.Reason == lifecycle.ReasonOOMKilled:
		return "was OOM-killed"
	}
	return fmt.Sprintf("failed with exit code %d", a.Exit.Code)
}

// notInTime describes why a pod counts as failed that was not ready in time.
func notInTime(p *supervisor.Snapshot, within time.Duration) string {
	text := fmt.Sprintf("the pod was not ready within %v", within)
	if c := conditionOf(p, lifecycle.PodReady); c.Message != "" {
		text += ": " + c.Message
	}
	return text
}
