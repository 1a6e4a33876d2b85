package explain

import (
	"fmt"
	"slices"
	"strconv"
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
		return t.stopping(&newest)
	case c.State.Running != nil:
		return t.running(c)
	case c.State.Terminated != nil:
		return t.ended(c)
	case c.State.Waiting != nil && (t.snapshot.AtRest || newest.Attempt == 0 && t.toEnd()): // before its turn came
		return neverRan(c.State.Waiting)
	case c.State.Waiting != nil && !newest.Started.IsZero() && newest.Exited.IsZero():
		return fmt.Sprintf("It was started, and its postStart hook has run for %s (%s).", span(t.now.Sub(newest.Started)), c.State.Waiting.Reason)
	case c.State.Waiting != nil && c.State.Waiting.Reason == lifecycle.ReasonCrashLoopBackOff && newest.PostStart.Message != "":
		return "It waits for its next start (CrashLoopBackOff); its postStart hook failed: " + sentence(newest.PostStart.Message)
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
	if ahead := lifecycle.StartBlockedBy(t.snapshot.Pod, t.snapshot.Facts, name); ahead != "" {
		return ahead + " is started"
	}
	return ""
}

// stopping is how far the end of a run has come.
func (t *teller) stopping(a *lifecycle.Attempt) string {
	switch {
	case !a.KillSent.IsZero():
		return fmt.Sprintf("It is being stopped; it was killed (SIGKILL) %s ago and is still there.", span(t.now.Sub(a.KillSent)))
	case !a.StopSent.IsZero():
		return fmt.Sprintf("It is being stopped; it was sent its stop signal %s ago.", span(t.now.Sub(a.StopSent)))
	case !a.PreStop.Requested.IsZero() && a.PreStop.Done.IsZero():
		return fmt.Sprintf("It is being stopped; its preStop hook has run for %s.", span(t.now.Sub(a.PreStop.Requested)))
	case a.StopRequested.IsZero():
		return "It is being stopped; it waits for what is to end before it."
	}
	return "It is being stopped."
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

// done reports whether a container has ended for good.
func (t *teller) done(c *lifecycle.ContainerStatus) bool {
	return c.State.Terminated != nil && !lifecycle.RunsAgain(t.snapshot.Pod, t.snapshot.Facts, c.Name)
}

// toEnd reports whether nothing of the pod is started any more.
func (t *teller) toEnd() bool {
	return lifecycle.Terminating(t.snapshot.Pod, t.snapshot.Facts)
}

// before is the init container that a container waits for; empty if there is none.
func (t *teller) before(name string) string {
	turn := lifecycle.NextInitContainer(t.snapshot.Pod, t.snapshot.Facts)
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
		answer := t.answer(c.Name, "Readiness")
		if output := oneLine(ready.Message); answer == "" && output != "" {
			answer = " (" + output + ")"
		}
		return "It runs and is not ready: its readiness probe fails" + answer + "."
	}
	return "It runs; its readiness probe has not succeeded yet" + t.answer(c.Name, "Readiness") + "."
}

// answer is what a probe of the present run has last said, and how often in a row, if it failed and is still known.
func (t *teller) answer(container, probe string) string {
	attempt := t.snapshot.Facts.Containers[container].Newest.Attempt
	for _, e := range slices.Backward(t.events) {
		if e.Container != container || e.Attempt != attempt || e.Fields["probe"] != probe {
			continue
		}
		said := oneLine(e.Fields["output"] + e.Fields["error"])
		if n, err := strconv.Atoi(e.Fields["count"]); err == nil && n > 1 {
			said = strings.TrimSuffix(fmt.Sprintf("%d failures in a row: %s", n, said), ": ")
		}
		if said != "" {
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
	case status.Phase == lifecycle.PhaseSucceeded && stop.By != "":
		return "succeeded; " + stop.By + " asked it to end", true
	case status.Phase == lifecycle.PhaseSucceeded:
		return "succeeded", true
	case status.Phase == lifecycle.PhaseFailed && stop.Reason != "":
		return fmt.Sprintf("failed (%s): %s", stop.Reason, strings.TrimSuffix(sentence(stop.Message), ".")), false
	case status.Phase == lifecycle.PhaseFailed && !stop.Requested.IsZero() && !t.overBefore(stop.Requested):
		return "was ended" + by, true
	case status.Phase == lifecycle.PhaseFailed:
		return "failed" + t.culprit(s), false
	case status.Phase == lifecycle.PhaseUnknown:
		return "cannot be seen: the container engine cannot be reached", false
	case !stop.Requested.IsZero():
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

// overBefore reports whether the pod's work was over before an instant.
func (t *teller) overBefore(at lifecycle.Instant) bool {
	end := lifecycle.WorkFinishedAt(t.snapshot.Pod, &t.snapshot.Facts)
	return !end.IsZero() && end.Before(at)
}

// culprit is the container that a pod failed by. A sidecar never is: how it ends decides nothing.
func (t *teller) culprit(s *Story) string {
	for _, c := range s.Containers {
		if !strings.HasPrefix(c.Now, "It has ended, with 0,") && !t.sidecar(c.Name) {
			return ": " + c.Name + clause(c.Now) + ending(&c)
		}
	}
	return ""
}

// clause makes the sentence of a container's state follow its name.
func clause(now string) string {
	return strings.TrimSuffix(strings.TrimPrefix(now, "It"), ".")
}

// ending is why the newest run of a container has ended or is to end, as a clause; empty where it was started again, or what it waits for
// says it.
func ending(c *Container) string {
	n := len(c.Told)
	if n == 0 || c.Told[n-1].over() || c.Told[n-1].Why == "" {
		return ""
	}
	if why := c.Told[n-1].Why; strings.HasPrefix(c.Now, "It has ended") && strings.HasPrefix(why, "it exited") && !strings.Contains(why, ";") {
		return "" // the state has said so
	}
	for _, now := range []string{"It waits for its next start (CrashLoopBackOff).", "It has ended", "It is being stopped"} {
		if strings.HasPrefix(c.Now, now) {
			return "; " + c.Told[n-1].Why
		}
	}
	return ""
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
			return text + ending(&c)
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
