package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

func (v *validator) probes(c *Container) {
	v.probe(c, c.LivenessProbe)
	v.probe(c, c.ReadinessProbe)
	v.probe(c, c.StartupProbe)
	if p := c.ReadinessProbe; p != nil && p.TerminationGracePeriodSeconds != nil {
		v.bad(p.TerminationGracePeriodSeconds, "Forbidden: must not be set for readinessProbes")
	}
	for _, p := range []*Probe{c.LivenessProbe, c.StartupProbe} {
		if p != nil && p.SuccessThreshold != 1 {
			v.bad(&p.SuccessThreshold, "Invalid value: %d: must be 1 for liveness and startup probes", p.SuccessThreshold)
		}
	}
}

func (v *validator) probe(c *Container, p *Probe) {
	if p == nil {
		return
	}
	v.exactlyOne(p, "exec", "httpGet", "tcpSocket", "grpc")
	v.exec(p.Exec)
	v.httpGet(c, p.HTTPGet)
	if t := p.TCPSocket; t != nil {
		v.port(c, t, &t.Port)
	}
	if g := p.GRPC; g != nil {
		v.required(g, "port", g.Port == 0)
		v.portNumber(&g.Port)
	}
	for _, threshold := range []*int32{&p.SuccessThreshold, &p.FailureThreshold} {
		if *threshold < 0 {
			v.bad(threshold, notNegative)
		}
	}
	v.positive(p.TerminationGracePeriodSeconds)
}

func (v *validator) exec(e *ExecAction) {
	if e != nil {
		v.required(e, "command", len(e.Command) == 0)
		v.words(&e.Command)
	}
}

func (v *validator) httpGet(c *Container, h *HTTPGetAction) {
	if h == nil {
		return
	}
	v.port(c, h, &h.Port)
	oneOf(v, &h.Scheme, "HTTP", "HTTPS")
	for i := range h.HTTPHeaders {
		header := &h.HTTPHeaders[i]
		v.requiredName(header, "name", &header.Name, validation.IsHTTPHeaderName)
		if strings.ContainsAny(header.Value, "\r\n") {
			v.bad(&header.Value, "must not contain line breaks")
		}
	}
}

// port checks that a port is set, and its name. As the Pod API, it accepts the name of a port that the container does not have, with a
// warning: the probe or the hook fails.
func (v *validator) port(c *Container, table any, p *Port) {
	v.required(table, "port", *p == Port{})
	if p.Name == "" {
		return
	}
	if reasons := validation.IsValidPortName(p.Name); len(reasons) > 0 {
		hint := ""
		if number, err := strconv.Atoi(p.Name); err == nil && len(validation.IsValidPortNum(number)) == 0 {
			hint = fmt.Sprintf("write %d without quotes", number)
		}
		v.badHint(p, hint, "Invalid value: %s: %s", quote(p.Name), withoutExample(reasons[0]))
		return
	}
	var known []string
	for _, port := range c.Ports {
		if port.Name != "" {
			known = append(known, port.Name)
		}
	}
	if !slices.Contains(known, p.Name) {
		v.warn(p, "the container has no port %s, so this always fails", quote(p.Name))
	}
}

func (v *validator) lifecycle(c *Container) {
	l := c.Lifecycle
	if l == nil {
		return
	}
	if n := v.at[&l.StopSignal]; l.StopSignal == "" && n != nil && n.kind == kindString {
		v.badHint(&l.StopSignal, "remove it for the default", "Unsupported value: \"\": must be a Linux signal such as \"SIGTERM\"")
	}
	for _, hook := range []*LifecycleHandler{l.PostStart, l.PreStop} {
		if hook == nil {
			continue
		}
		v.exactlyOne(hook, "exec", "httpGet", "sleep")
		v.exec(hook.Exec)
		v.httpGet(c, hook.HTTPGet)
		grace := v.pod.TerminationGracePeriodSeconds
		n := v.at[&v.pod.TerminationGracePeriodSeconds]
		invalid := n != nil && n.failed
		if s := hook.Sleep; s != nil && s.Seconds > grace && !invalid {
			v.bad(&s.Seconds, "must be less than or equal to terminationGracePeriodSeconds (%s)", number(grace))
		}
	}
	if l.StopSignal != "" && v.format != formatTOML && v.pod.OS == nil { // a pod file is for Linux
		hint := "set " + v.format.assign("os", v.format.table([]pair{{"name", Linux}})) + " in the spec"
		v.badHint(&l.StopSignal, hint, "Forbidden: may not be set for containers with empty `spec.os.name`")
	}
	if l.StopSignal != "" && !slices.Contains(signals, l.StopSignal) {
		hint := didYouMean(l.StopSignal, signals)
		if long := "SIG" + strings.ToUpper(l.StopSignal); slices.Contains(signals, long) {
			hint = "did you mean " + quote(long) + "?"
		}
		v.badHint(&l.StopSignal, hint, "Unsupported value: %s: must be a Linux signal such as \"SIGTERM\"", quote(l.StopSignal))
	}
}

// signals are the stop signals that Kubernetes supports on Linux (KEP-4960).
var signals = func() []string {
	names := strings.Fields(`SIGABRT SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGIO SIGIOT
		SIGKILL SIGPIPE SIGPOLL SIGPROF SIGPWR SIGQUIT SIGSEGV SIGSTKFLT SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP
		SIGTTIN SIGTTOU SIGURG SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ SIGRTMIN SIGRTMAX`)
	for i := 1; i <= 15; i++ {
		names = append(names, fmt.Sprintf("SIGRTMIN+%d", i))
	}
	for i := 1; i <= 14; i++ {
		names = append(names, fmt.Sprintf("SIGRTMAX-%d", i))
	}
	return names
}()
