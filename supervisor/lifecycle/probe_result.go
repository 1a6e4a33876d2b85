package lifecycle

// ProbeKind says what a probe is for.
type ProbeKind string

// The kinds of probes (KUBELET: Container.startupProbe, livenessProbe, readinessProbe).
const (
	ProbeStartup   ProbeKind = "startup"
	ProbeLiveness  ProbeKind = "liveness"
	ProbeReadiness ProbeKind = "readiness"
)

// ProbeOutcome is what one run of a probe's handler found.
type ProbeOutcome string

// The outcomes.
const (
	ProbeSuccess ProbeOutcome = "success"
	ProbeFailure ProbeOutcome = "failure"
	ProbeError   ProbeOutcome = "error" // the handler itself could not run: counts for nothing
)

// ProbeResult is one answer of a probe's handler. The message of a success is a warning, and mostly empty.
type ProbeResult struct {
	Outcome ProbeOutcome
	Message string
}
