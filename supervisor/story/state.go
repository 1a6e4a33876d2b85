package story

import (
	"fmt"
	"slices"
	"strings"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// fine reports whether a container is as it should be: it is ready, or has done its work.
func (t *teller) fine(c *lifecycle.ContainerStatus) bool {
	switch {
	case c.State.Terminated != nil:
		return c.State.Terminated.ExitCode == 0
	case c.State.Running != nil:
		return c.Ready || c.Started == nil
	}
	return false
}

// state is how a container is, in a sentence.
func (t *teller) state(c *lifecycle.ContainerStatus) string {
	newest := t.snapshot.Facts.Containers[c.Name].Newest
	switch {
	case newest.StopReason != "" && newest.Exited.IsZero():
		return "It is being stopped."
	case c.State.Running != nil:
		return t.running(c)
	case c.State.Terminated != nil:
		return t.ended(c)
	case c.State.Waiting != nil && (t.snapshot.AtRest || newest.Attempt == 0 && t.toEnd()): // before its turn came
		return neverRan(c.State.Waiting)
	case c.State.Waiting != nil && !newest.Started.IsZero() && newest.Exited.IsZero():
		return fmt.Sprintf("It was started, and its postStart hook runs (%s).", c.State.Waiting.Reason)
	case c.State.Waiting != nil && behindOthers[c.State.Waiting.Reason]:
		if until := t.until(c.Name); until != "" {
			return fmt.Sprintf("It waits until %s (%s).", until, c.State.Waiting.Reason)
		}
	}
	if c.State.Waiting != nil {
		return waiting(c.State.Waiting)
	}
	return "It is not known how it is."
}

// behindOthers are the reasons for which a container waits whose turn has not come.
var behindOthers = map[lifecycle.Reason]bool{
	lifecycle.ReasonPodInitializing: true, lifecycle.ReasonContainerCreating: true, lifecycle.ReasonRestartingAllContainers: true,
}

// until is what others have to come to before a container starts; empty if it waits for nobody.
func (t *teller) until(name string) string {
	if slices.ContainsFunc(t.snapshot.Facts.Ephemeral, func(c spec.Container) bool { return c.Name == name }) {
		return ""
	}
	if first := t.before(name); t.sidecar(first) {
		return "sidecar " + first + " is started"
	} else if first != "" {
		return "init container " + first + " is done"
	}
	if ahead := lifecycle.Ahead(t.snapshot.Pod, t.snapshot.Facts, name); ahead != "" {
		return ahead + " is started"
	}
	return ""
}

// ended is how a container is that has ended.
func (t *teller) ended(c *lifecycle.ContainerStatus) string {
	end, then := c.State.Terminated, "is not started again"
	if end.Reason == lifecycle.ReasonStatusUnknown && end.StartedAt.IsZero() { // so the status has it of one that is missing
		return notRun
	}
	if lifecycle.RunsAgain(t.snapshot.Pod, t.snapshot.Facts, c.Name) {
		then = "is started again"
	}
	if end.ExitCode == 0 {
		return "It has ended, with 0, and " + then + "."
	}
	return fmt.Sprintf("It has ended, with %d (%s), and %s.", end.ExitCode, end.Reason, then)
}

// toEnd reports whether nothing of the pod is started any more.
func (t *teller) toEnd() bool {
	return t.snapshot.Status.Phase.Terminal() || !t.snapshot.Facts.Stop.Asked.IsZero()
}

// before is the init container that a container waits for; empty if there is none.
func (t *teller) before(name string) string {
	turn := lifecycle.Turn(t.snapshot.Pod, t.snapshot.Facts)
	for i := range t.snapshot.Pod.InitContainers {
		switch t.snapshot.Pod.InitContainers[i].Name {
		case name:
			return "" // those behind it are none of its business
		case turn:
			return turn
		}
	}
	return ""
}

// initContainer is the definition of a container that the pod's own ones wait for; nil if it is none.
func (t *teller) initContainer(name string) *spec.Container {
	list := t.snapshot.Pod.InitContainers
	if i := slices.IndexFunc(list, func(c spec.Container) bool { return c.Name == name }); i >= 0 {
		return &list[i]
	}
	return nil
}

func (t *teller) sidecar(name string) bool {
	c := t.initContainer(name)
	return c != nil && c.IsSidecar()
}

func (t *teller) running(c *lifecycle.ContainerStatus) string {
	ready := t.snapshot.Facts.Containers[c.Name].Newest.Probes.Readiness
	switch {
	case c.Ready:
		return "It runs and is ready."
	case c.Started == nil: // an ephemeral one
		return "It runs."
	case *c.Started && t.initContainer(c.Name) != nil && !t.sidecar(c.Name):
		return "It runs, and has not done its work yet."
	case !*c.Started:
		return "It runs; its startup probe has not succeeded yet" + t.answer(c.Name, "Startup") + "."
	case ready.Verdict == lifecycle.VerdictFailure:
		text := "It runs and is not ready: its readiness probe fails"
		if output := oneLine(ready.Message); output != "" {
			text += " (" + output + ")"
		}
		return text + "."
	}
	return "It runs; its readiness probe has not succeeded yet" + t.answer(c.Name, "Readiness") + "."
}

// answer is what a probe of the present run has last said, if it failed and is still known.
func (t *teller) answer(container, probe string) string {
	attempt := t.snapshot.Facts.Containers[container].Newest.Attempt
	for _, e := range slices.Backward(t.events) {
		if e.Container != container || e.Attempt != attempt || e.Fields["probe"] != probe {
			continue
		}
		if said := oneLine(e.Fields["output"] + e.Fields["error"]); said != "" {
			return " (" + said + ")"
		}
		break
	}
	return ""
}

const notRun = "It has not run, and will not."

// neverRan is what a container waited for that will never have it.
func neverRan(w *lifecycle.Waiting) string {
	if w.Message == "" {
		return notRun
	}
	return fmt.Sprintf("It has not run, and will not; it waited (%s): %s", w.Reason, sentence(w.Message))
}

// waiting is what a container waits for.
func waiting(w *lifecycle.Waiting) string {
	switch string(w.Reason) {
	case string(lifecycle.ReasonCrashLoopBackOff):
		return "It waits for its next start (CrashLoopBackOff)."
	case string(lifecycle.ReasonContainerCreating), string(lifecycle.ReasonPodInitializing):
		if w.Message != "" {
			return fmt.Sprintf("It waits to be made (%s): %s", w.Reason, sentence(w.Message))
		}
		return fmt.Sprintf("It is being made (%s).", w.Reason)
	case "":
		return "It is about to start."
	}
	if w.Message == "" {
		return fmt.Sprintf("It waits (%s).", w.Reason)
	}
	return fmt.Sprintf("It waits (%s): %s", w.Reason, sentence(w.Message))
}

// sentence is a message of others with its full stop.
func sentence(message string) string { return strings.TrimSuffix(oneLine(message), ".") + "." }

// summary is how the pod is, and whether that is well.
func (t *teller) summary(s *Story) (string, bool) {
	stop := &t.snapshot.Facts.Stop
	status := &t.snapshot.Status
	by := ""
	if stop.By != "" {
		by = ", asked by " + stop.By
	}
	switch {
	case status.Phase == lifecycle.PhaseSucceeded:
		return "succeeded" + by, true
	case status.Phase == lifecycle.PhaseFailed && stop.Reason != "":
		return fmt.Sprintf("failed (%s): %s", stop.Reason, strings.TrimSuffix(sentence(stop.Message), ".")), false
	case status.Phase == lifecycle.PhaseFailed && !stop.Asked.IsZero():
		return "was ended" + by, true
	case status.Phase == lifecycle.PhaseFailed:
		return "failed" + t.culprit(s), false
	case status.Phase == lifecycle.PhaseUnknown:
		return "cannot be seen: the container engine cannot be reached", false
	case !stop.Asked.IsZero():
		return "is to end" + by, false
	}
	if why := t.unready(s); why != "" {
		return why, false
	}
	last, restarts := t.lastRestart(s)
	if restarts == 0 {
		return "runs and is ready", true
	}
	return "runs and is ready; " + last, t.now.Wall.Sub(t.restartedAt(s)) > recent
}

// culprit is the container that a pod failed by. A sidecar never is: how it ends decides nothing.
func (t *teller) culprit(s *Story) string {
	for _, c := range s.Containers {
		if !strings.HasPrefix(c.Now, "It has ended, with 0,") && !t.sidecar(c.Name) {
			return ": " + c.Name + clause(c.Now)
		}
	}
	return ""
}

// clause makes the sentence of a container's state follow its name.
func clause(now string) string {
	return strings.TrimSuffix(strings.TrimPrefix(now, "It"), ".")
}

// unready is why the pod is not ready; empty if it is.
func (t *teller) unready(s *Story) string {
	condition := lifecycle.Condition{}
	for _, c := range t.snapshot.Status.Conditions {
		if c.Type == lifecycle.PodReady {
			condition = c
		}
	}
	if condition.Status == "True" {
		return ""
	}
	for _, c := range s.Containers {
		if !strings.HasPrefix(c.Now, "It runs and is ready") && !strings.HasPrefix(c.Now, "It has ended, with 0,") {
			text := "is not ready: " + c.Name + clause(c.Now)
			if c.Restarts > 0 {
				text += ", after " + times(c.Restarts, "restart")
			}
			return text
		}
	}
	if condition.Reason == lifecycle.ReasonReadinessGatesNotReady {
		return "is not ready: " + strings.TrimSuffix(sentence(condition.Message), ".")
	}
	for i := range t.snapshot.Status.ContainerStatuses {
		if c := &t.snapshot.Status.ContainerStatuses[i]; c.State.Terminated != nil {
			return "runs, and is not ready any more: " + c.Name + clause(t.state(c))
		}
	}
	return "is not ready yet"
}

func times(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
