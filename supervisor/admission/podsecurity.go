package admission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// control is one of the Pod Security Standards, which a test holds against the library that Kubernetes itself uses.
type control struct {
	title string // the standards' own
	// baseline and restricted look at a pod; the stricter one, where there is one, stands for both. Nil: the level asks for
	// nothing more.
	baseline, restricted func(*look)
}

// controls are those of the standards' latest version (1.37), in their order. Of what they ask, a pod file has neither
// Windows' host processes nor SELinux options, and no volumes of clusters.
var controls = []control{
	{"Host Namespaces", (*look).hostNamespaces, nil},
	{"Privileged Containers", (*look).privileged, nil},
	{"Capabilities", (*look).capabilities, (*look).fewCapabilities},
	{"HostPath Volumes", (*look).hostPathVolumes, nil},
	{"Host Ports", (*look).hostPorts, nil},
	{"Host Probes / Lifecycle Hooks", (*look).handlerHosts, nil},
	{"AppArmor", (*look).appArmor, nil},
	{"/proc Mount Type", (*look).procMountOfMachine, (*look).procMount},
	{"Seccomp", (*look).seccomp, (*look).seccompSet},
	{"Sysctls", (*look).safeSysctls, nil},
	{"Privilege Escalation", nil, (*look).escalation},
	{"Running as Non-root", nil, (*look).nonRoot},
	{"Running as Non-root user", nil, (*look).nonRootUser},
}

// podSecurity holds a pod against a level.
func (r *review) podSecurity(level Level) {
	if level != Baseline && level != Restricted {
		return
	}
	for _, c := range controls {
		c.run(r, level)
	}
}

// run makes the look of the control that a level, which is not [Privileged], asks for.
func (c control) run(r *review, level Level) {
	asks, check := Baseline, c.baseline
	if level == Restricted && c.restricted != nil {
		asks, check = Restricted, c.restricted
	}
	if check != nil {
		check(&look{r, asks, c.title})
	}
}

// look is that of one control.
type look struct {
	*review
	level Level
	title string
}

// refuse says what was found in a field, in words or quoted, and what is wanted there.
func (l *look) refuse(field, found, want string) {
	l.refusals = append(l.refusals, lifecycle.Refusal{
		Reason: lifecycle.ReasonPodSecurity, Field: field,
		Message: fmt.Sprintf("found %s, want %s (pod security %q, %s)", found, want, l.level, l.title),
		Hint:    "change the pod, or podSecurity of [policy] in podstead.toml, and restart the daemon",
	})
}

// containers calls do with the path and the security context, which is never nil, of every container.
func (l *look) containers(do func(at string, c *spec.Container, s *spec.SecurityContext)) {
	for _, list := range []struct {
		name       string
		containers []spec.Container
	}{{"initContainers[", l.pod.InitContainers}, {"containers[", l.pod.Containers}, {ephemeral, l.pod.EphemeralContainers}} {
		for i := range list.containers {
			c := &list.containers[i]
			do(list.name+strconv.Itoa(i)+"].", c, cmp.Or(c.SecurityContext, &spec.SecurityContext{}))
		}
	}
}

// podContext is the pod's security context, never nil.
func (l *look) podContext() *spec.PodSecurityContext {
	return cmp.Or(l.pod.SecurityContext, &spec.PodSecurityContext{})
}

// ownUsers reports whether root of the pod is not root of the machine, for which the standards ask less since 1.35 (KEP-127).
func (l *look) ownUsers() bool { return l.pod.HostUsers != nil && !*l.pod.HostUsers }

func (l *look) hostNamespaces() {
	for _, n := range []struct {
		field string
		set   bool
	}{{"hostNetwork", l.pod.HostNetwork}, {"hostPID", l.pod.HostPID}, {"hostIPC", l.pod.HostIPC}} {
		if n.set {
			l.refuse(n.field, "true", "false or nothing")
		}
	}
}

func (l *look) privileged() {
	l.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) {
		if isTrue(s.Privileged) {
			l.refuse(at+"securityContext.privileged", "true", "false or nothing")
		}
	})
}

// baselineCapabilities are those that containers have by default, without NET_RAW.
var baselineCapabilities = []string{
	"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP",
	"SETUID", "SYS_CHROOT",
}

func (l *look) capabilities() { l.addedCapabilities(baselineCapabilities) }

func (l *look) addedCapabilities(allowed []string) {
	l.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) {
		if s.Capabilities == nil {
			return
		}
		for i, name := range s.Capabilities.Add {
			if !slices.Contains(allowed, name) {
				l.refuse(fmt.Sprintf("%ssecurityContext.capabilities.add[%d]", at, i), strconv.Quote(name), either(allowed))
			}
		}
	})
}

func (l *look) fewCapabilities() {
	l.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) {
		if s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") {
			l.refuse(at+"securityContext.capabilities.drop", "no \"ALL\"", `["ALL"]`)
		}
	})
	l.addedCapabilities([]string{"NET_BIND_SERVICE"})
}

func (l *look) hostPathVolumes() {
	for i := range l.pod.Volumes {
		if v := l.pod.Volumes[i].HostPath; v != nil {
			l.refuse(fmt.Sprintf("volumes[%d].hostPath", i), strconv.Quote(v.Path), "another kind of volume")
		}
	}
}

func (l *look) hostPorts() {
	l.containers(func(at string, c *spec.Container, _ *spec.SecurityContext) {
		for i := range c.Ports {
			if port := c.Ports[i].HostPort; port != 0 {
				l.refuse(fmt.Sprintf("%sports[%d].hostPort", at, i), strconv.Itoa(int(port)), "0 or nothing")
			}
		}
	})
}

func (l *look) handlerHosts() {
	l.containers(func(at string, c *spec.Container, _ *spec.SecurityContext) {
		for _, p := range []struct {
			field string
			probe *spec.Probe
		}{{"livenessProbe", c.LivenessProbe}, {"readinessProbe", c.ReadinessProbe}, {"startupProbe", c.StartupProbe}} {
			if p.probe == nil {
				continue
			}
			l.handlerHost(at+p.field, p.probe.HTTPGet)
			if tcp := p.probe.TCPSocket; tcp != nil && tcp.Host != "" {
				l.refuse(at+p.field+".tcpSocket.host", strconv.Quote(tcp.Host), `"" or nothing`)
			}
		}
		if c.Lifecycle == nil {
			return
		}
		for _, h := range []struct {
			field   string
			handler *spec.LifecycleHandler
		}{{"lifecycle.postStart", c.Lifecycle.PostStart}, {"lifecycle.preStop", c.Lifecycle.PreStop}} {
			if h.handler != nil {
				l.handlerHost(at+h.field, h.handler.HTTPGet)
			}
		}
	})
}

func (l *look) handlerHost(at string, get *spec.HTTPGetAction) {
	if get != nil && get.Host != "" {
		l.refuse(at+".httpGet.host", strconv.Quote(get.Host), `"" or nothing`)
	}
}

const (
	runtimeDefault = "RuntimeDefault"
	localhost      = "Localhost"
	// appArmorAnnotation is how AppArmor profiles were named before they had a field. It has no effect here, and the standards
	// look at it still.
	appArmorAnnotation = "container.apparmor.security.beta.kubernetes.io/"
)

func confined(p *spec.SecurityProfile) bool {
	return p != nil && (p.Type == runtimeDefault || p.Type == localhost)
}

// profile refuses a profile that is set and does not confine.
func (l *look) profile(field string, p *spec.SecurityProfile) {
	if p != nil && !confined(p) {
		l.refuse(field+".type", strconv.Quote(p.Type), either([]string{runtimeDefault, localhost}))
	}
}

func (l *look) appArmor() {
	l.profile("securityContext.appArmorProfile", l.podContext().AppArmorProfile)
	l.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) {
		l.profile(at+"securityContext.appArmorProfile", s.AppArmorProfile)
	})
	for _, name := range slices.Sorted(maps.Keys(l.pod.Annotations)) {
		value := l.pod.Annotations[name]
		if strings.HasPrefix(name, appArmorAnnotation) && value != "" && value != "runtime/default" && !strings.HasPrefix(value, "localhost/") {
			l.refuse("annotations."+name, strconv.Quote(value), `"runtime/default", or "localhost/" and a name`)
		}
	}
}

func (l *look) procMountOfMachine() {
	if !l.ownUsers() {
		l.procMount()
	}
}

func (l *look) procMount() {
	l.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) {
		if s.ProcMount != "" && s.ProcMount != "Default" {
			l.refuse(at+"securityContext.procMount", strconv.Quote(s.ProcMount), `"Default" or nothing`)
		}
	})
}

func (l *look) seccomp() {
	l.profile("securityContext.seccompProfile", l.podContext().SeccompProfile)
	l.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) {
		l.profile(at+"securityContext.seccompProfile", s.SeccompProfile)
	})
}

// seccompSet asks for a profile in writing, though the default here is one that the standards allow: the pod is to be as safe
// elsewhere.
func (l *look) seccompSet() {
	l.seccomp()
	if l.podContext().SeccompProfile != nil { // refused above, or good for all
		return
	}
	l.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) {
		if s.SeccompProfile == nil {
			l.refuse(at+"securityContext.seccompProfile", "nothing, nor in the pod", `type = "RuntimeDefault" or "Localhost" in one of them`)
		}
	})
}

// standardSysctls are the kernel parameters that the standards let pods set, by these spellings.
var standardSysctls = []string{
	"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports", "net.ipv4.ip_unprivileged_port_start",
	"net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes",
	"net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_notsent_lowat", "net.ipv4.tcp_rmem", "net.ipv4.tcp_slow_start_after_idle",
	"net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
}

func (l *look) safeSysctls() {
	list := l.podContext().Sysctls
	for i := range list {
		if name := list[i].Name; !slices.Contains(standardSysctls, name) {
			l.refuse(fmt.Sprintf("securityContext.sysctls[%d].name", i), strconv.Quote(name), either(standardSysctls))
		}
	}
}

func (l *look) escalation() {
	l.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) {
		if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
			l.refuse(at+"securityContext.allowPrivilegeEscalation", written(s.AllowPrivilegeEscalation), "false")
		}
	})
}

func (l *look) nonRoot() {
	if l.ownUsers() {
		return
	}
	pod := l.podContext().RunAsNonRoot
	if pod != nil && !*pod {
		l.refuse("securityContext.runAsNonRoot", "false", "true")
	}
	l.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) {
		switch own := s.RunAsNonRoot; {
		case own != nil && !*own:
			l.refuse(at+"securityContext.runAsNonRoot", "false", "true")
		case own == nil && pod == nil:
			l.refuse(at+"securityContext.runAsNonRoot", "nothing, nor in the pod", "true in one of them")
		}
	})
}

func (l *look) nonRootUser() {
	if l.ownUsers() {
		return
	}
	root := func(field string, user *int64) {
		if user != nil && *user == 0 {
			l.refuse(field+".runAsUser", "0", "another user or nothing")
		}
	}
	root("securityContext", l.podContext().RunAsUser)
	l.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) { root(at+"securityContext", s.RunAsUser) })
}

func isTrue(b *bool) bool { return b != nil && *b }

func written(b *bool) string {
	if b == nil {
		return "nothing"
	}
	return strconv.FormatBool(*b)
}

func either(values []string) string {
	if len(values) == 1 {
		return strconv.Quote(values[0])
	}
	return "one of " + strings.Join(values, ", ")
}
