package lifecycle

// ProbeKind is the kind of a probe.
type ProbeKind string

// The kinds of probes.
const (
	// ProbeStartup delays the other two until it succeeds. If it fails, the container is stopped.
	ProbeStartup ProbeKind = "startup"
	// ProbeLiveness stops the container if it fails.
	ProbeLiveness ProbeKind = "liveness"
	// ProbeReadiness determines whether the container is ready.
	ProbeReadiness ProbeKind = "readiness"
)

// ProbeOutcome classifies one result of a handler.
type ProbeOutcome string

// The outcomes of a handler.
const (
	ProbeSuccess ProbeOutcome = "Success"
	// ProbeWarning is a success with a warning, such as a redirect to another host.
	ProbeWarning ProbeOutcome = "Warning"
	ProbeFailure ProbeOutcome = "Failure"
	// ProbeError means that the handler could not run. It does not count, as in the kubelet. The handler is tried again at once,
	// up to three times.
	ProbeError ProbeOutcome = "Error"
)

// ProbeResult is one result of a probe's handler. Message is the handler's error or output without the name of the probe; it is
// empty for a success without a warning.
type ProbeResult struct {
	Outcome ProbeOutcome `json:"outcome"`
	Message string       `json:"message,omitempty"`
}
