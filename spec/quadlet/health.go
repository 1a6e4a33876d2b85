package quadlet

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/spec"
)

// healthKeys are the keys of health checks.
var healthKeys = []string{
	"HealthCmd", "HealthInterval", "HealthOnFailure", "HealthRetries", "HealthStartPeriod", "HealthTimeout",
	"HealthStartupCmd", "HealthStartupInterval", "HealthStartupRetries", "HealthStartupSuccess", "HealthStartupTimeout",
}

// check is a command that Podman runs periodically.
type check struct {
	command           []string
	interval, timeout spec.Seconds
	retries           int32
}

// health are the health checks of a container, with the defaults of Podman.
type health struct {
	check, startup check
	start          spec.Seconds // in which failures do not count
	kills          bool         // an unhealthy container is killed, and restarted by its policy
	waits          bool         // Notify=healthy: what is ordered after the container waits until it is healthy
	disabled       bool
	at, notifyAt   entry
}

func newHealth() health {
	return health{check: check{interval: 30, timeout: 30, retries: 3}, startup: check{interval: 30, timeout: 30}}
}

// healthCommand returns the command of a check as Podman reads it: an array in JSON, or a line for a shell; nil: there is no check.
func healthCommand(text string) []string {
	var words []string
	isArray := strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &words) == nil && len(words) > 0
	if !isArray {
		words = []string{text}
		if first, rest, _ := strings.Cut(text, " "); first == "CMD" {
			words = append([]string{first}, strings.Fields(rest)...)
		} else if first == "CMD-SHELL" {
			words = []string{first, rest}
		}
	}
	switch {
	case words[0] == "none" || words[0] == "NONE":
		return nil
	case words[0] == "CMD":
		return words[1:]
	case words[0] == "CMD-SHELL":
		return []string{"sh", "-c", strings.Join(words[1:], " ")}
	case isArray && len(words) > 1:
		return words
	}
	return []string{"sh", "-c", words[0]}
}

func takeHealth(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	h := &x.member.health
	number := func(to *int32) {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": must be a number", "")
			return
		}
		*to = int32(n)
	}
	duration := func(to *spec.Seconds) {
		seconds, err := parseTime(text)
		if err != nil || seconds == forever {
			c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": "+errTime.Error(), "")
			return
		}
		*to = seconds
	}
	switch e.key {
	case "HealthCmd":
		h.check.command, h.at = healthCommand(text), e
	case "HealthStartupCmd":
		h.startup.command = healthCommand(text)
	case "HealthInterval":
		if text == "disable" {
			h.disabled = true
			c.ignore(e, "the container has no probe then", "")
			return
		}
		duration(&h.check.interval)
	case "HealthStartupInterval":
		duration(&h.startup.interval)
	case "HealthTimeout":
		duration(&h.check.timeout)
	case "HealthStartupTimeout":
		duration(&h.startup.timeout)
	case "HealthStartPeriod":
		duration(&h.start)
	case "HealthRetries":
		number(&h.check.retries)
	case "HealthStartupRetries":
		number(&h.startup.retries)
	case "HealthStartupSuccess":
		var n int32
		if number(&n); n > 1 {
			c.lose(e, "a startup probe succeeds with its first success", "")
		}
	case "HealthOnFailure":
		switch text {
		case "none":
		case "kill", "restart":
			h.kills = true
		case "stop":
			c.lose(e, "an unhealthy container is not stopped for good", "write HealthOnFailure=kill")
		default:
			c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": must be none, kill, restart or stop", "")
		}
	}
}

func takeNotify(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	if text == "healthy" {
		x.member.health.waits, x.member.health.notifyAt = true, e
		return
	}
	if value, _ := parseBool(text); value {
		c.lose(e, "messages of sd_notify are not read", "write HealthCmd= and Notify=healthy")
	}
}

// probe returns the probe of a check.
func (k check) probe(failures int32) *spec.Probe {
	p := &spec.Probe{
		Exec: &spec.ExecAction{Command: slices.Clone(k.command)}, PeriodSeconds: k.interval,
		TimeoutSeconds: k.timeout, FailureThreshold: failures,
	}
	if p.TimeoutSeconds == 0 {
		p.TimeoutSeconds = 30
	}
	if p.PeriodSeconds == 0 {
		p.PeriodSeconds = 30
	}
	return p
}

// probes sets the probes of a container. A check makes the container ready. It is a liveness probe too if Podman kills the container.
func (c *converter) probes(m *member) {
	h := &m.health
	if len(h.check.command) == 0 {
		if h.waits {
			c.lose(h.notifyAt, "the container has no health check: those of images are not read", "write HealthCmd=")
		}
		return
	}
	if h.disabled {
		return
	}
	failures := max(h.check.retries, 1)
	m.ReadinessProbe = h.check.probe(failures)
	if h.kills {
		m.LivenessProbe = h.check.probe(failures)
	}
	timeout := c.startTimeout(m.unit)
	times := func(of spec.Seconds, each check) int32 {
		return int32(min(math.Ceil(float64(of/max(each.interval, 0.001))), 1e6))
	}
	switch {
	case len(h.startup.command) > 0:
		k := h.startup
		failures := k.retries
		if failures == 0 { // without a limit
			failures = 1e6
		}
		if h.waits {
			failures = min(failures, max(times(timeout, k), 1))
		}
		m.StartupProbe = k.probe(failures)
	case h.waits:
		m.StartupProbe = h.check.probe(max(times(timeout, h.check), 1))
	case h.kills && h.start > 0:
		m.StartupProbe = h.check.probe(times(h.start, h.check) + failures)
	}
	for _, field := range []string{"readinessProbe", "livenessProbe", "startupProbe"} {
		m.origin[field] = h.at
	}
}

// defaultStartTimeout is that of systemd, in seconds.
const defaultStartTimeout spec.Seconds = 90

// startTimeout returns the time to start of a service.
func (c *converter) startTimeout(u *unit) spec.Seconds {
	for _, key := range []string{"TimeoutStartSec", "TimeoutSec"} {
		e, has := u.last("Service", key)
		if !has {
			continue
		}
		seconds, err := parseTime(c.text(u, e))
		if err != nil {
			c.problem(e, "invalid value: "+strconv.Quote(clip(e.value))+": "+err.Error(), "")
			return defaultStartTimeout
		}
		return seconds
	}
	return defaultStartTimeout
}
