package emit

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// maxOutput limits the output of a probe in an event, in bytes. A probe may fail every second.
const maxOutput = 1 << 10

// probed emits the result of a probe other than a plain success. count is the number of such results in a row. Results of an older
// attempt are ignored.
func (e Emission) probed(ref lifecycle.ProbeRef, r lifecycle.ProbeResult, count int) {
	if e.newest(ref.Container).Ref != ref.Ref {
		return
	}
	probe := map[lifecycle.ProbeKind]string{
		lifecycle.ProbeStartup: "Startup", lifecycle.ProbeLiveness: "Liveness", lifecycle.ProbeReadiness: "Readiness",
	}[ref.Kind]
	output := shorten(r.Message)
	switch r.Outcome {
	case lifecycle.ProbeFailure:
		e.Emit(api.EventProbeFailed, ref.Container, event.Fields{"probe": probe, "output": output, "count": strconv.Itoa(count)})
	case lifecycle.ProbeError:
		e.Emit(api.EventProbeErrored, ref.Container, event.Fields{"probe": probe, "error": output})
	case lifecycle.ProbeWarning:
		e.Emit(api.EventProbeWarned, ref.Container, event.Fields{"probe": probe, "output": output})
	case lifecycle.ProbeSuccess:
	}
}

// shorten returns the first [maxOutput] bytes of an output as valid UTF-8. The result shares no memory with the output.
func shorten(output string) string {
	if len(output) > maxOutput {
		output = output[:maxOutput] + "…"
	}
	return strings.Clone(strings.TrimRight(strings.ToValidUTF8(output, "�"), "\n"))
}

// afterProbe returns the kubelet's term for a container that is stopped because of a probe, and its statement about the restart. The
// kubelet makes none for sidecars, which are always restarted.
func (e Emission) afterProbe(container string) (role, then string) {
	c := e.pod.Container(container)
	switch {
	case slices.ContainsFunc(e.pod.InitContainers, func(i spec.Container) bool { return i.Name == container }):
		return "Init container", ""
	case cmp.Or(c.RestartPolicy, e.pod.RestartPolicy) == spec.RestartNever:
		return "Container", ""
	}
	return "Container", ", will be restarted"
}

// addProbeResult adds the result of the probe that stops a container to the fields. A stop because of a hook has none: the output of
// hooks is private.
func (e Emission) addProbeResult(f event.Fields, ref lifecycle.Ref, why lifecycle.Reason) {
	probes := e.newest(ref.Container).Probes
	result, probed := map[lifecycle.Reason]lifecycle.ProbeStatus{
		lifecycle.ReasonLivenessProbe: probes.Liveness, lifecycle.ReasonStartupProbe: probes.Startup,
	}[why]
	if probed {
		f["count"], f["output"] = strconv.Itoa(result.Count), shorten(result.Message)
	}
}
