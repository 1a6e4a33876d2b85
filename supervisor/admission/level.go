package admission

import (
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// CheckLevel returns the violations of a level by a pod.
func CheckLevel(pod *spec.Pod, level Level) []lifecycle.Refusal {
	r := &review{pod: pod}
	r.podSecurity(level)
	return r.refusals
}

// BeyondBaseline returns what a pod requests that the level baseline does not allow, such as "privileged", "hostPID" and "hostPath /".
func BeyondBaseline(pod *spec.Pod) []string {
	r := &review{pod: pod}
	r.podSecurity(Baseline)
	slices.Sort(r.requests)
	return slices.Compact(r.requests)
}

// Includes reports whether a level has all checks of another one.
func (l Level) Includes(other Level) bool {
	return slices.Index(Levels(), string(l)) >= slices.Index(Levels(), string(other))
}

// request describes a violation in a few words: the field without its container and indexes, and the value unless it is "true". The
// value is as in [check.deny].
func request(field, value string) string {
	for _, list := range []string{"initContainers[", "containers[", ephemeral, "volumes[", "ports["} {
		if strings.HasPrefix(field, list) {
			_, field, _ = strings.Cut(field, ".")
		}
	}
	field = strings.TrimPrefix(field, "securityContext.")
	field, _, _ = strings.Cut(field, "[")
	field = strings.TrimSuffix(field, ".type")
	// the quotes are needed for special characters only
	if text, err := strconv.Unquote(value); err == nil && strconv.Quote(text) == `"`+text+`"` {
		value = text
	}
	if value == "" || value == "true" {
		return field
	}
	return field + " " + value
}
