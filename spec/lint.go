package spec

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// The codes of warnings. docs/reference/warnings.md has a section for each.
const (
	CodeCommandInOneString     = "command-in-one-string"
	CodeGraceOverShutdown      = "grace-over-shutdown"
	CodeLatestWithRollback     = "latest-with-rollback"
	CodeLivenessBeforeStart    = "liveness-before-start"
	CodeLivenessWithoutRestart = "liveness-without-restart"
	CodeLowPort                = "low-port"
	CodeMemoryVolumeOverLimit  = "memory-volume-over-limit"
	CodeMillibytes             = "millibytes"
	CodeMissingProgram         = "missing-program"
	CodeNoMemoryLimit          = "no-memory-limit"
	CodePreStopOverGrace       = "prestop-over-grace"
	CodeSecretReadable         = "secret-readable"
	CodeStartupOrder           = "startup-order"
	CodeTimeoutOverPeriod      = "timeout-over-period"
	CodeUnknownCode            = "unknown-code"
	CodeWaitUnfulfilled        = "wait-unfulfilled"
)

// Codes returns the codes of warnings, sorted.
func Codes() []string {
	return []string{
		CodeCommandInOneString, CodeGraceOverShutdown, CodeLatestWithRollback, CodeLivenessBeforeStart, CodeLivenessWithoutRestart,
		CodeLowPort, CodeMemoryVolumeOverLimit, CodeMillibytes, CodeMissingProgram, CodeNoMemoryLimit, CodePreStopOverGrace,
		CodeSecretReadable, CodeStartupOrder, CodeTimeoutOverPeriod, CodeUnknownCode, CodeWaitUnfulfilled,
	}
}

// Lint are the options of warnings about what is valid and cannot work well. The zero value has no warning that depends on the host.
type Lint struct {
	// ShutdownGracePeriod is the time in which all pods stop when the host shuts down (pods.shutdownGracePeriod); 0: it is not known.
	ShutdownGracePeriod time.Duration
	// Strict adds warnings about what a file lacks: [CodeNoMemoryLimit].
	Strict bool
	// Programs returns where programs are in an image of this host (empty: it does not have the program), and the directories in which its
	// containers find programs. Nil: the image is not here. The function may be nil.
	Programs func(image string, names []string) (found map[string]string, search []string)
}

// linter looks for what is valid and cannot work well. It computes with the definition only, as the lifecycle does. The tests of package
// spec show each result with a simulation.
type linter struct {
	*validator
	o *Lint
}

func (l *linter) run() {
	l.graceOverShutdown()
	l.memoryVolumes()
	for i := range l.pod.InitContainers {
		l.startupOrder(i)
	}
	for c := range l.pod.OwnContainers() {
		l.livenessBeforeStart(c)
		l.livenessWithoutRestart(c)
		for _, p := range []*Probe{c.LivenessProbe, c.StartupProbe} {
			l.timeoutOverPeriod(p)
		}
		l.preStop(c)
		l.latestWithRollback(c)
		l.lowPorts(c)
		l.memoryLimit(c)
		l.missingPrograms(c)
	}
}

// advise adds a warning with a code. The field is the first of several that the file sets.
func (v *validator) advise(code, hint, message string, fields ...any) {
	i := slices.IndexFunc(fields, func(field any) bool { return v.at[field] != nil })
	if i < 0 {
		return
	}
	before := len(v.problems)
	v.warnHint(fields[i], hint, "%s", message)
	if len(v.problems) > before {
		v.problems[before].Code = code
	}
}

// number is a number of seconds as a file has it, without an exponent.
func number(s Seconds) string { return strconv.FormatFloat(float64(s), 'f', -1, 64) }

// secs is a number of seconds for people, such as 90s, without the error of a sum beyond nanoseconds.
func secs(s Seconds) string { return number(Seconds(math.Round(float64(s)*1e9)/1e9)) + "s" }
