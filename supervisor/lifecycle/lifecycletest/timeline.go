package lifecycletest

import (
	"fmt"
	"strings"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Timeline records the steps of a world as text, one line for each: ">" is an action, "<" an event, "=" a change of the status.
type Timeline struct {
	pod  *spec.Pod
	text strings.Builder
	last map[string]string // the last status by container; by "" of the pod
}

// NewTimeline returns an empty timeline for a pod.
func NewTimeline(pod *spec.Pod) *Timeline { return &Timeline{pod: pod, last: map[string]string{}} }

// String returns the recorded text.
func (t *Timeline) String() string { return t.text.String() }

// Observe records one step. It is meant for [World.Observe].
func (t *Timeline) Observe(s Step) {
	t.pod = s.Pod
	switch e := s.Event.(type) {
	case nil:
		if len(s.Decision.Actions) > 0 {
			return // the next decision follows at the same instant
		}
		t.status(s)
		if s.Decision.Removed {
			t.line(s.Since, "=", "removed")
		}
	case lifecycle.Issued:
		if !s.After.Trial.RollsBack && isTrial(e.Action) {
			return // as frequent as starts, and of no effect
		}
		t.line(s.Since, ">", action(e.Action))
	default:
		t.line(s.Since, "<", event(s.Event))
	}
}

func (t *Timeline) line(at time.Duration, mark, text string) {
	fmt.Fprintf(&t.text, "%10v %s %s\n", at.Round(time.Millisecond), mark, text)
}

func (t *Timeline) status(s Step) {
	status := lifecycle.StatusOf(t.pod, s.After, s.Now)
	for _, list := range [...][]lifecycle.ContainerStatus{
		status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses,
	} {
		for i := range list {
			t.change(s.Since, list[i].Name, t.container(&list[i]))
		}
	}
	t.change(s.Since, "", string(status.Phase))
}

func (t *Timeline) change(at time.Duration, who, what string) {
	if t.last[who] == what {
		return
	}
	t.last[who] = what
	t.line(at, "=", strings.TrimSpace(who+" "+what))
}

// probed reports whether a container has probes that affect its readiness, so that ready is recorded.
func (t *Timeline) probed(name string) bool {
	for _, list := range [...][]spec.Container{t.pod.InitContainers, t.pod.Containers} {
		for i := range list {
			if c := &list[i]; c.Name == name {
				return c.StartupProbe != nil || c.ReadinessProbe != nil
			}
		}
	}
	return false
}

func (t *Timeline) container(c *lifecycle.ContainerStatus) string {
	text := "Nothing"
	switch s := c.State; {
	case s.Running != nil:
		text = "Running"
	case s.Waiting != nil:
		text = "Waiting " + string(s.Waiting.Reason)
	case s.Terminated != nil:
		text = fmt.Sprintf("Terminated %s %d", s.Terminated.Reason, s.Terminated.ExitCode)
	}
	if c.Ready && c.State.Running != nil && t.probed(c.Name) {
		text += ", ready"
	}
	if c.RestartCount > 0 {
		text += fmt.Sprintf(", restarts %d", c.RestartCount)
	}
	return text
}

// isTrial reports whether an action records what has become of a trial.
func isTrial(a lifecycle.Action) bool {
	switch a.(type) {
	case lifecycle.TimeTrial, lifecycle.PassTrial, lifecycle.FailTrial:
		return true
	}
	return false
}

func action(a lifecycle.Action) string {
	switch a := a.(type) {
	case lifecycle.StartSandbox:
		return fmt.Sprintf("StartSandbox %d", a.Sandbox)
	case lifecycle.RemoveSandbox:
		return fmt.Sprintf("RemoveSandbox %d", a.Sandbox)
	case lifecycle.ResizePod:
		return fmt.Sprintf("ResizePod %d", a.N)
	case lifecycle.PullImage:
		return fmt.Sprintf("PullImage %s/%d", a.Container, a.For)
	case lifecycle.FindImage:
		return fmt.Sprintf("FindImage %s/%d", a.Container, a.For)
	case lifecycle.CancelPull:
		return fmt.Sprintf("CancelPull %s/%d", a.Container, a.For)
	case lifecycle.StartContainer:
		return "StartContainer " + ref(a.Ref)
	case lifecycle.StopContainer:
		return fmt.Sprintf("StopContainer %s grace %v, %s", ref(a.Ref), a.Grace, a.Reason)
	case lifecycle.KillContainer:
		return "KillContainer " + ref(a.Ref)
	case lifecycle.RunPostStart:
		return "RunPostStart " + ref(a.Ref)
	case lifecycle.RunPreStop:
		return fmt.Sprintf("RunPreStop %s limit %v, %s", ref(a.Ref), a.Limit, a.Reason)
	case lifecycle.WaitForTurn:
		return fmt.Sprintf("WaitForTurn %s limit %v, %s", ref(a.Ref), a.Limit, a.Reason)
	case lifecycle.CancelHook:
		return fmt.Sprintf("CancelHook %s %s", ref(a.Ref), a.Hook)
	case lifecycle.RemoveContainer:
		return "RemoveContainer " + ref(a.Ref)
	case lifecycle.RemovePod:
		return "RemovePod"
	case lifecycle.CollectPod:
		return "CollectPod"
	case lifecycle.StartRound:
		return fmt.Sprintf("StartRound %d, triggered by %s", a.Round, ref(a.By))
	case lifecycle.StartAgain:
		return fmt.Sprintf("StartAgain, round %d", a.Round)
	case lifecycle.ForgetContainer:
		return "ForgetContainer " + a.Container
	case lifecycle.FailTrial:
		return "FailTrial: " + a.Message
	case lifecycle.StartWait:
		return fmt.Sprintf("StartWait %d", a.Wait)
	case lifecycle.FailPod:
		return fmt.Sprintf("FailPod %s, grace %v", a.Reason, a.Grace)
	}
	return fmt.Sprintf("%T", a)
}

func event(e lifecycle.Event) string {
	switch e := e.(type) {
	case lifecycle.ActionFailed:
		return fmt.Sprintf("failed: %s: %s", action(e.Action), strings.TrimSpace(string(e.Failure.Kind)+" "+e.Failure.Error()))
	case lifecycle.SandboxStarted:
		return fmt.Sprintf("SandboxStarted %d", e.Sandbox)
	case lifecycle.SandboxLost:
		return fmt.Sprintf("SandboxLost %d", e.Sandbox)
	case lifecycle.SandboxRemoved:
		return fmt.Sprintf("SandboxRemoved %d", e.Sandbox)
	case lifecycle.ImagePulled:
		return fmt.Sprintf("ImagePulled %s/%d", e.Container, e.For)
	case lifecycle.ContainerStarted:
		return "ContainerStarted " + ref(e.Ref)
	case lifecycle.ContainerExited:
		return fmt.Sprintf("ContainerExited %s %s %d", ref(e.Ref), e.Exit.Reason, e.Exit.Code)
	case lifecycle.SignalSent:
		if e.Kill {
			return "SignalSent " + ref(e.Ref) + " KILL"
		}
		return "SignalSent " + ref(e.Ref)
	case lifecycle.ContainerRemoved:
		return "ContainerRemoved " + ref(e.Ref)
	case lifecycle.ConditionMet:
		return fmt.Sprintf("ConditionMet %d %s", e.Wait, e.Condition)
	case lifecycle.ConditionUnmet:
		return fmt.Sprintf("ConditionUnmet %d %s", e.Wait, e.Condition)
	case lifecycle.PodEvicted:
		return "PodEvicted"
	case lifecycle.EphemeralAdded:
		return "EphemeralAdded " + e.Container.Name
	case lifecycle.ContainerRestartRequested:
		return "ContainerRestartRequested " + e.Container
	case lifecycle.HookFinished:
		return fmt.Sprintf("HookFinished %s %s", ref(e.Ref), e.Hook)
	case lifecycle.ProbeChanged:
		return fmt.Sprintf("ProbeChanged %s %s %s after %d", ref(e.Ref), e.Kind, e.Verdict, e.Count)
	case lifecycle.ProbeFailed:
		return fmt.Sprintf("ProbeFailed %s %s %s %d", ref(e.Ref), e.Kind, e.Result.Outcome, e.Count)
	case lifecycle.ProbeWarned:
		return fmt.Sprintf("ProbeWarned %s %s", ref(e.Ref), e.Kind)
	case lifecycle.StopRequested:
		switch {
		case e.Grace.Force:
			return "StopRequested, force"
		case e.Delete:
			return fmt.Sprintf("StopRequested, delete, grace %v", e.Grace.Period)
		}
		return fmt.Sprintf("StopRequested, grace %v", e.Grace.Period)
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", e), "lifecycle.")
}

// ref formats a run: the container and the number of the attempt.
func ref(r lifecycle.Ref) string { return fmt.Sprintf("%s/%d", r.Container, r.Attempt) }
