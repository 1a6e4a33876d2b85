package spec

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
)

// livenessBeforeStart warns of a liveness probe that stops a container before it can have started. The container has the time until the
// last of failureThreshold failures, which comes without a delay if nothing listens. Two of its needs are known:
//
//   - no server listens at the instant of its start,
//   - a readiness probe with the same handler has an initialDelaySeconds.
//
// Probes wait for a postStart hook, so that the time with one is not known.
func (l *linter) livenessBeforeStart(c *Container) {
	p := c.LivenessProbe
	if p == nil || c.StartupProbe != nil || c.Lifecycle != nil && c.Lifecycle.PostStart != nil {
		return
	}
	last := p.InitialDelaySeconds + Seconds(p.FailureThreshold-1)*p.PeriodSeconds
	sum := fmt.Sprintf("initialDelaySeconds %s + (failureThreshold %d - 1) x periodSeconds %s = %s",
		number(p.InitialDelaySeconds), p.FailureThreshold, number(p.PeriodSeconds), secs(last))
	const hint = "add a startupProbe with the same handler and failureThreshold "
	switch r := c.ReadinessProbe; {
	case last == 0 && p.Exec == nil && p.isLocal():
		l.advise(CodeLivenessBeforeStart, hint+"30, or raise failureThreshold",
			"stops a container that does not listen at the instant of its start: "+sum, p)
	case r != nil && p.SameHandler(r) && last < r.InitialDelaySeconds:
		const period = 10 // the default
		l.advise(CodeLivenessBeforeStart, hint+number(Seconds(math.Ceil(float64(r.InitialDelaySeconds)/period)+1)), fmt.Sprintf(
			"stops a container that does not respond for %s, while readinessProbe expects the first response after %s: %s",
			secs(last), secs(r.InitialDelaySeconds), sum), p)
	}
}

// isLocal reports whether the handler connects to the pod.
func (p *Probe) isLocal() bool {
	host := ""
	switch {
	case p.HTTPGet != nil:
		host = p.HTTPGet.Host
	case p.TCPSocket != nil:
		host = p.TCPSocket.Host
	}
	return slices.Contains([]string{"", "localhost", "127.0.0.1", "::1"}, host)
}

// livenessWithoutRestart warns of a liveness probe whose failure ends the pod.
func (l *linter) livenessWithoutRestart(c *Container) {
	if c.LivenessProbe == nil || len(c.RestartPolicyRules) > 0 || cmp.Or(c.RestartPolicy, l.pod.RestartPolicy) != RestartNever {
		return
	}
	l.advise(CodeLivenessWithoutRestart, "set "+l.format.word("restartPolicy", string(RestartOnFailure)),
		"a failure stops the container, and restartPolicy Never does not start it again: the pod fails", c.LivenessProbe)
}

// timeoutOverPeriod warns of a timeout of a probe that stops the container, if the file sets it to more than the period. The next probe
// begins after one that times out. The default of a second is no reason for a warning: a period of less is meant for a container that
// responds. So is the period of a readiness probe with a long timeout, which waits for a slow start.
func (l *linter) timeoutOverPeriod(p *Probe) {
	if p == nil || p.TimeoutSeconds <= p.PeriodSeconds {
		return
	}
	l.advise(CodeTimeoutOverPeriod, "set timeoutSeconds to at most periodSeconds", fmt.Sprintf(
		"a probe that times out lasts %s, longer than periodSeconds %s, and the next one begins after it: "+
			"a container that does not respond fails the probe after failureThreshold %d x timeoutSeconds %s = %s",
		secs(p.TimeoutSeconds), number(p.PeriodSeconds), p.FailureThreshold, number(p.TimeoutSeconds),
		secs(Seconds(p.FailureThreshold)*p.TimeoutSeconds),
	), &p.TimeoutSeconds)
}

// startupOrder warns of a sidecar whose startup probe connects to a container that starts after the sidecar has started (KEP-753).
func (l *linter) startupOrder(i int) {
	c := &l.pod.InitContainers[i]
	p := c.StartupProbe
	if p == nil || !c.IsSidecar() || !p.isLocal() {
		return
	}
	var port int32
	switch {
	case p.HTTPGet != nil:
		port = p.HTTPGet.Port.Number // 0: a name is that of a port of the sidecar
	case p.TCPSocket != nil:
		port = p.TCPSocket.Port.Number
	case p.GRPC != nil:
		port = p.GRPC.Port
	}
	listens := func(c Container) bool {
		return slices.ContainsFunc(c.Ports, func(p ContainerPort) bool { return p.ContainerPort == port && p.Protocol == ProtocolTCP })
	}
	if slices.ContainsFunc(l.pod.InitContainers[:i+1], listens) {
		return
	}
	later := slices.Concat(l.pod.InitContainers[i+1:], l.pod.Containers)
	if j := slices.IndexFunc(later, listens); j >= 0 {
		l.advise(CodeStartupOrder, "probe a port of this sidecar, or make it a readinessProbe", fmt.Sprintf(
			"port %d is that of container %s, which does not start before this probe has succeeded", port, quote(later[j].Name)), p)
	}
}

// missingPrograms warns of commands of probes and hooks whose program the image, as it is on this host, does not have. A volume can have
// the program, and a variable of the container can name other directories.
func (l *linter) missingPrograms(c *Container) {
	if l.o.Programs == nil || len(l.pod.ArchivesOf(c)) > 0 {
		return
	}
	type command struct {
		field   any
		program string
		probe   bool
	}
	var commands []command
	vars := c.PlainVariables()
	add := func(field any, exec *ExecAction, probe bool) {
		if exec == nil || len(exec.Command) == 0 {
			return
		}
		program := exec.Command[0]
		if probe {
			program, _ = Expand(program, vars, len(program)+maxProgram)
		}
		// A relative path depends on the working directory, and a command in one string has a warning of its own.
		if (path.IsAbs(program) || !strings.Contains(program, "/")) && !strings.ContainsAny(program, " $") {
			commands = append(commands, command{field, program, probe})
		}
	}
	for _, p := range []*Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if p != nil {
			add(p, p.Exec, true)
		}
	}
	if c.Lifecycle != nil {
		for _, h := range []*LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil {
				add(h, h.Exec, false)
			}
		}
	}
	if len(commands) == 0 {
		return
	}
	var names []string
	for _, command := range commands {
		names = append(names, command.program)
	}
	found, search := l.o.Programs(c.Image, names)
	for _, command := range commands {
		if at, known := found[command.program]; !known || at != "" || l.mayHave(c, command.program, search) {
			continue
		}
		hint := "use a program of the image"
		if handler := replacements[path.Base(command.program)]; handler != "" && command.probe {
			hint = "use " + handler + ", which needs no program in the image"
		}
		l.advise(CodeMissingProgram, hint, fmt.Sprintf("runs %s, which image %s, as it is on this host, does not have",
			quote(command.program), quote(c.Image)), command.field)
	}
}

// replacements are the handlers of probes that do what a program does.
var replacements = map[string]string{
	"curl": "httpGet", "wget": "httpGet", "nc": "tcpSocket", "ncat": "tcpSocket", "netcat": "tcpSocket", "grpc_health_probe": "grpc",
}

// maxProgram is the maximum length of the path of a program.
const maxProgram = 4096

// mayHave reports whether a container can find a program elsewhere than in its image: in a volume that is mounted above or on a directory
// in which it is searched, or on its own path.
func (l *linter) mayHave(c *Container, program string, search []string) bool {
	name := path.Base(program)
	if path.IsAbs(program) {
		search = []string{path.Dir(program)}
	} else if len(c.EnvFrom) > 0 || slices.ContainsFunc(c.Env, func(v EnvVar) bool { return v.Name == "PATH" }) {
		return true
	}
	below := func(inner, outer string) bool {
		return strings.HasPrefix(strings.TrimSuffix(inner, "/")+"/", strings.TrimSuffix(outer, "/")+"/")
	}
	return slices.ContainsFunc(c.VolumeMounts, func(m VolumeMount) bool {
		at := path.Clean(m.MountPath)
		return slices.ContainsFunc(search, func(dir string) bool { return below(dir, at) || at == path.Join(dir, name) })
	})
}
