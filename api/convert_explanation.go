package api

import (
	"github.com/podstead/podstead/supervisor/explain"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// explanationOf converts an explanation.
func explanationOf(e *explain.Explanation) Explanation {
	return Explanation{
		Pod: e.Pod, UID: e.UID, Text: e.Text, State: PodState(e.State), Healthy: e.Healthy, Restarts: e.Restarts, Cause: causeOf(e.Cause),
		StopBy: e.StopBy, Next: e.Next, Containers: convert(e.Containers, explainedContainer), Timeline: convert(e.Timeline, timelineEntry),
		File: e.File, Escalation: e.Escalation, NotUpdated: e.NotUpdated, NotDurable: e.NotDurable, NotRemoved: e.NotRemoved,
	}
}

func explainedContainer(c *explain.Container) ExplainedContainer {
	return ExplainedContainer{
		Name: c.Name, Role: ContainerRole(c.Role), Text: c.Text, State: ExplainedContainerState(c.State), Reason: Reason(c.Reason), Ready: c.Ready,
		Cause: causeOf(c.Cause), Stage: StopStage(c.Stage), StageSince: c.StageSince, Restarts: c.Restarts, WillRestart: c.WillRestart,
		Next: c.Next, LastExit: exitOf(c.LastExit), Evidence: evidenceOf(c.Evidence), Runs: convert(c.Runs, explainedRun),
		RestartCauses: convert(c.RestartCauses, restartCause),
	}
}

func explainedRun(r *explain.Run) ExplainedRun {
	return ExplainedRun{Cause: causeOf(r.Cause), Exit: exitOf(r.Exit), Restarted: r.Restarted, Timeline: convert(r.Timeline, timelineEntry)}
}

func restartCause(r *explain.RestartCause) RestartCause {
	return RestartCause{Cause: causeOf(r.Cause), Count: r.Count, Last: r.Last}
}

func timelineEntry(e *explain.Entry) TimelineEntry {
	return TimelineEntry{Time: e.Time, Message: e.Message, Kind: EventKind(e.Kind), Reason: e.Reason, Seq: e.Seq, Cause: e.Cause, Count: e.Count}
}

func causeOf(c *explain.Cause) *Cause {
	if c == nil {
		return nil
	}
	return &Cause{
		Kind: CauseKind(c.Kind), Text: c.Text, Container: c.Container, Role: ContainerRole(c.Role), Time: c.Time, Reason: Reason(c.Reason),
		Message: c.Message, Hint: c.Hint, Image: c.Image, Progress: progressOf(c.Progress), ImageArchitecture: c.ImageArchitecture,
		HostArchitecture: c.HostArchitecture, Failures: c.Failures, Output: c.Output, Exit: exitOf(c.Exit), Grace: c.Grace, By: c.By,
		ByContainer: c.ByContainer, ByRole: ContainerRole(c.ByRole), Earlier: causeOf(c.Earlier),
	}
}

func exitOf(x *explain.Exit) *ContainerExit {
	if x == nil {
		return nil
	}
	return &ContainerExit{
		Code: x.Code, Signal: x.Signal, Reason: Reason(x.Reason), Meaning: x.Meaning, StartedAt: x.StartedAt, FinishedAt: x.FinishedAt,
		GraceExceeded: x.GraceExceeded,
	}
}

func evidenceOf(e *explain.Evidence) *Evidence {
	if e == nil {
		return nil
	}
	return &Evidence{
		Run: e.Run, Log: e.Log, TerminationMessage: e.TerminationMessage, Probe: e.Probe, ProbeOutput: e.ProbeOutput,
		MemoryLimit: e.MemoryLimit, MemoryPeak: e.MemoryPeak,
	}
}

func progressOf(p *lifecycle.Progress) *Progress {
	if p == nil {
		return nil
	}
	return &Progress{Archive: p.Archive, Done: p.Done, Total: p.Total}
}
