package supervisor

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// maxOutput is how much of what a probe has found an event holds, in bytes: a probe that fails every second must not
// fill the memory with its reasons.
const maxOutput = 1 << 10

// tellAnswer tells of an answer to a probe that was no plain success, and of how many such in a row it is the last, if the run
// that it is about is the newest.
func (l *loop) tellAnswer(ref lifecycle.ProbeRef, r lifecycle.ProbeResult, count int, now lifecycle.Instant) {
	if l.facts.Containers[ref.Container].Newest.Ref != ref.Ref {
		return
	}
	probe := map[lifecycle.ProbeKind]string{
		lifecycle.ProbeStartup: "Startup", lifecycle.ProbeLiveness: "Liveness", lifecycle.ProbeReadiness: "Readiness",
	}[ref.Kind]
	output := shorten(r.Message)
	switch r.Outcome {
	case lifecycle.ProbeFailure:
		l.tell(now, ProbeFailed, ref.Container, fields{"probe": probe, "output": output, "count": strconv.Itoa(count)})
	case lifecycle.ProbeError:
		l.tell(now, ProbeErrored, ref.Container, fields{"probe": probe, "error": output})
	case lifecycle.ProbeWarning:
		l.tell(now, ProbeWarned, ref.Container, fields{"probe": probe, "output": output})
	case lifecycle.ProbeSuccess:
	}
}

// shorten returns the beginning of an output, as text. It shares no memory with the whole.
func shorten(output string) string {
	if len(output) > maxOutput {
		output = output[:maxOutput] + "…"
	}
	return strings.Clone(strings.TrimRight(strings.ToValidUTF8(output, "�"), "\n"))
}

// tellHook tells of a hook that has failed. One that was given up, for which the time was over, or whose run has ended is
// no news. Why it has failed is not told: it may hold what the container has written.
func (l *loop) tellHook(kind Kind, ref lifecycle.Ref, h lifecycle.Hook, now lifecycle.Instant) {
	inTime := h.Limit == 0 || now.Before(h.Requested.Add(h.Limit))
	if l.facts.Containers[ref.Container].Newest.Ref == ref && h.Failed && h.Cancelled.IsZero() && inTime {
		l.tell(now, kind, ref.Container, nil)
	}
}

// afterProbe is what the kubelet calls a container that a probe ends, and what it says will become of it: of a sidecar, which is
// always restarted, it says nothing.
func (l *loop) afterProbe(container string) (role, then string) {
	c := l.pod.Container(container)
	switch {
	case slices.ContainsFunc(l.pod.InitContainers, func(i spec.Container) bool { return i.Name == container }):
		return "Init container", ""
	case cmp.Or(c.RestartPolicy, l.pod.RestartPolicy) == spec.RestartNever:
		return "Container", ""
	}
	return "Container", ", will be restarted"
}

// addVerdict adds what a probe has said to the fields of the end that it leads to.
func (l *loop) addVerdict(f fields, ref lifecycle.Ref, why lifecycle.Reason) {
	probes := l.facts.Containers[ref.Container].Newest.Probes
	probed, asked := map[lifecycle.Reason]lifecycle.ProbeStatus{
		lifecycle.ReasonLivenessProbe: probes.Liveness, lifecycle.ReasonStartupProbe: probes.Startup,
	}[why]
	if asked { // what a hook says is told nobody
		f["count"], f["output"] = strconv.Itoa(probed.Count), shorten(probed.Message)
	}
}
