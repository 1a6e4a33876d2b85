package explain

import (
	"slices"
	"strings"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
)

// tooOpen are parts of the lines by which programs refuse files that their group can access: PostgreSQL (data directory), MongoDB (key
// file), OpenSSH (private key).
var tooOpen = []string{"has invalid permissions", "has group or world access", "are too open"}

// logHint is what a person can do about the last lines of the log of a run that failed; empty: nothing is known.
func logHint(pod *spec.Pod, c *spec.Container, lines []string) string {
	text := strings.Join(lines, "\n")
	says := func(part string) bool { return strings.Contains(text, part) }
	if s := pod.SecurityContext; s != nil && s.FSGroup != nil && s.FSGroupChangePolicy != "OnRootMismatch" {
		if slices.ContainsFunc(tooOpen, says) {
			return "fsGroup gives the group rights to the files of volumes at each start of the pod: " +
				"set securityContext.fsGroupChangePolicy to OnRootMismatch in the pod"
		}
	}
	for _, m := range pod.DeviceMounts(c) {
		if says("peration not permitted") && says(m.MountPath) {
			return spec.DeviceMountHint
		}
	}
	return ""
}

// addLogHint adds the hint for the log of the last exit to its cause.
func addLogHint(pod *spec.Pod, c *api.ExplainedContainer, lines []string) {
	if d := pod.Container(c.Name); d != nil && c.Cause != nil && c.Cause.Kind == api.CauseExited && c.Cause.Hint == "" {
		c.Cause.Hint = logHint(pod, d, lines)
	}
}
