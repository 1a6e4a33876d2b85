package quadlet

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/spec"
)

// podmanGrace is the time to stop of containers that do not set one, in seconds.
const podmanGrace spec.Seconds = 10

// service sets what units have without keys too.
func (c *converter) service(x *scope) {
	if grace, found := c.grace(x.unit); found {
		x.grace = max(x.grace, grace)
	} else if x.member != nil {
		if _, set := c.grace(x.pod.unit); !set || x.pod.unit == x.unit {
			x.grace = max(x.grace, podmanGrace)
		}
	}
	if x.member == nil {
		return
	}
	if x.member.policy == "" {
		x.member.policy = spec.RestartNever
		if e, has := x.pod.unit.last("Service", "Restart"); has && x.pod.unit != x.unit {
			x.member.policy = c.restartPolicy(e, c.text(x.pod.unit, e))
		}
	}
}

func takeRestart(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	policy := c.restartPolicy(e, text)
	if x.member != nil {
		x.member.policy = policy
	}
}

func (c *converter) restartPolicy(e entry, text string) spec.RestartPolicy {
	switch text {
	case "no":
		return spec.RestartNever
	case "always":
		return spec.RestartAlways
	case "on-failure":
		return spec.RestartOnFailure
	case "on-abnormal", "on-abort", "on-watchdog":
		c.ignoreOnce(e, "containers restart after each failure, also after one with an exit code", "")
		return spec.RestartOnFailure
	case "on-success":
		c.lose(e, "containers do not restart only after a success", "")
		return spec.RestartAlways
	}
	c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": must be no, always or on-failure", "")
	return spec.RestartNever
}

// takeRestartSec makes the back-off constant, unless the unit lets it grow.
func takeRestartSec(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	seconds, err := parseTime(text)
	if err != nil || seconds == forever {
		c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": "+errTime.Error(), "")
		return
	}
	const shortest = 0.1 // the default of systemd; a back-off is greater than 0
	seconds = max(seconds, shortest)
	b := &spec.Backoff{InitialSeconds: seconds, MaxSeconds: seconds, Factor: 1}
	if longest, has := x.unit.last("Service", "RestartMaxDelaySec"); has {
		if limit, err := parseTime(c.text(x.unit, longest)); err == nil && limit > seconds && limit != forever {
			b = &spec.Backoff{InitialSeconds: seconds, MaxSeconds: limit}
		}
	}
	if x.member != nil {
		x.member.RestartBackoff = b
	} else {
		x.RestartBackoff = b
	}
}

// takeRuntimeMax is for pods that do not restart: systemd restarts the service after the time.
func takeRuntimeMax(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	seconds, err := parseTime(text)
	restart, restarts := x.unit.last("Service", "Restart")
	switch {
	case err != nil:
		c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": "+err.Error(), "")
	case seconds == forever:
	case restarts && restart.value != "no" || len(x.members) > 1:
		c.lose(e, "containers are not restarted after a time", "")
	default:
		x.ActiveDeadlineSeconds = &seconds
	}
}

func takeType(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	switch text {
	case "oneshot":
		if x.member != nil {
			x.member.once = true
		}
	case "notify", "forking", "exec", "simple":
	default:
		c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": Quadlet sets it to notify or oneshot", "")
	}
}

// takeCondition makes the pod wait for what the unit is skipped without.
func takeCondition(c *converter, x *scope, list []entry) {
	for _, e := range list {
		text := c.text(x.unit, e)
		kind := "path:"
		if strings.HasSuffix(e.key, "MountPoint") {
			kind = "mount:"
		}
		switch {
		case strings.HasPrefix(text, "!") || strings.HasPrefix(text, "|"):
			c.lose(e, "a pod waits only for what exists", "")
		case !filepath.IsAbs(text):
			c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": must be an absolute path", "")
		default:
			x.wait(e, kind+filepath.Clean(text))
		}
	}
}

// wait adds a condition to wait for.
func (p *pod) wait(e entry, condition string) {
	if slices.Contains(p.WaitFor, condition) {
		return
	}
	p.WaitFor = append(p.WaitFor, condition)
	p.origin["waitFor"] = e
}
