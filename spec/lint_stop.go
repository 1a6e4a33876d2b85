package spec

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// leastGrace is the time between the stop signal and SIGKILL, whatever is left of the grace period.
const leastGrace = "2s"

// preStop warns of a hook that is cancelled when the grace period has passed. A pod has at least a second, as in the kubelet.
func (l *linter) preStop(c *Container) {
	if c.Lifecycle == nil || c.Lifecycle.PreStop == nil {
		return
	}
	hook, grace := c.Lifecycle.PreStop, l.pod.TerminationGracePeriodSeconds
	takes := hook.duration()
	if effective := max(grace, 1); takes > effective {
		l.advise(CodePreStopOverGrace, longerThan("terminationGracePeriodSeconds", takes), fmt.Sprintf(
			"takes at least %s, longer than terminationGracePeriodSeconds %s: it is cancelled after %s, and SIGKILL follows %s after "+
				"the stop signal", secs(takes), number(grace), secs(effective), leastGrace), hook)
	}
	for _, p := range []*Probe{c.LivenessProbe, c.StartupProbe} {
		if p == nil || p.TerminationGracePeriodSeconds == nil || takes <= *p.TerminationGracePeriodSeconds {
			continue
		}
		grace := *p.TerminationGracePeriodSeconds
		l.advise(CodePreStopOverGrace, longerThan("it", takes), fmt.Sprintf(
			"the preStop hook takes at least %s, longer than %s: after a failure of this probe it is cancelled, and SIGKILL follows "+
				"%s after the stop signal", secs(takes), secs(grace), leastGrace), p.TerminationGracePeriodSeconds)
	}
}

// longerThan is the hint to raise a grace period beyond the duration of a hook.
func longerThan(field string, takes Seconds) string {
	if takes >= maxSeconds {
		return "shorten the hook"
	}
	return "set " + field + " to more than " + number(takes)
}

// duration returns how long a hook takes at least; 0: it is not known.
func (h *LifecycleHandler) duration() Seconds {
	switch {
	case h.Sleep != nil:
		return h.Sleep.Seconds
	case h.Exec != nil:
		return sleeps(h.Exec.Command)
	}
	return 0
}

// sleeps returns how long a command sleeps that is sleep, or a shell that runs it first, at most maxSeconds; 0: it is not known.
func sleeps(command []string) Seconds {
	if len(command) == 3 && slices.Contains([]string{"sh", "ash", "bash", "dash"}, path.Base(command[0])) && command[1] == "-c" {
		end := strings.IndexAny(command[2], ";&|\n")
		if end < 0 {
			end = len(command[2])
		}
		if rest := command[2][end:]; strings.HasPrefix(rest, "&") && !strings.HasPrefix(rest, "&&") {
			return 0 // in the background
		}
		command = strings.Fields(command[2][:end])
	}
	if len(command) < 2 || path.Base(command[0]) != "sleep" {
		return 0
	}
	units := map[string]Seconds{"s": 1, "m": 60, "h": 60 * 60, "d": 24 * 60 * 60}
	var total Seconds
	for _, arg := range command[1:] {
		value := strings.TrimRight(arg, "smhd")
		n, err := strconv.ParseFloat(value, 64)
		unit, known := units[arg[len(value):]]
		if value == arg {
			unit, known = 1, true
		}
		if err != nil || !known || !(n >= 0 && n <= maxSeconds) {
			return 0
		}
		total = min(total+Seconds(n)*unit, maxSeconds)
	}
	return total
}

// graceOverShutdown warns of a grace period that a pod does not have when the host shuts down.
func (l *linter) graceOverShutdown() {
	grace, all := &l.pod.TerminationGracePeriodSeconds, l.o.ShutdownGracePeriod
	if all <= 0 || grace.Duration() <= all {
		return
	}
	most := secs(Seconds(all.Seconds()))
	l.advise(CodeGraceOverShutdown, fmt.Sprintf("set shutdownGracePeriod = %q in [pods] of podstead.toml", secs(*grace)), fmt.Sprintf(
		"%s is longer than pods.shutdownGracePeriod of this host: when the host shuts down, all pods have %s together", secs(*grace), most,
	), grace)
}
