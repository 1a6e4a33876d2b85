package lifecycle

// ProbeKind says what a probe is asked for.
type ProbeKind string

// The kinds of probes, by what they decide.
const (
	// ProbeStartup holds the other two back until it succeeds; its failure ends the run.
	ProbeStartup ProbeKind = "startup"
	// ProbeLiveness ends the run when it fails.
	ProbeLiveness ProbeKind = "liveness"
	// ProbeReadiness makes the container ready or not, and ends nothing.
	ProbeReadiness ProbeKind = "readiness"
)

// ProbeOutcome is how one answer of a handler is to be taken.
type ProbeOutcome string

// The outcomes of a handler.
const (
	ProbeSuccess ProbeOutcome = "Success"
	// ProbeWarning is a success with something to be told, such as a redirect to another host.
	ProbeWarning ProbeOutcome = "Warning"
	ProbeFailure ProbeOutcome = "Failure"
	// ProbeError says that the handler itself could not run: it counts for nothing, as in the kubelet. It is asked again
	// at once, up to three times in all.
	ProbeError ProbeOutcome = "Error"
)

// ProbeResult is one answer of a probe's handler. Message says what was wrong, in the handler's words, without the name
// of the probe; it is empty for a plain success.
type ProbeResult struct {
	Outcome ProbeOutcome `json:"outcome"`
	Message string       `json:"message,omitempty"`
}
