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

// control is one control of the Pod Security Standards. TestPodSecurityMatchesKubernetes compares the controls with
// k8s.io/pod-security-admission.
type control struct {
	title string // the title in the standards
	// baseline and restricted check a pod. If restricted is set, it includes the checks of baseline. Nil: no check at this
	// level.
	baseline, restricted func(*check)
}

// controls are the controls of the latest version of the standards (1.37), in their order. Windows HostProcess, SELinux
// options and the volume types of clusters are missing because pod files do not support them.
var controls = []control{
	{"Host Namespaces", (*check).hostNamespaces, nil},
	{"Privileged Containers", (*check).privileged, nil},
	{"Capabilities", (*check).capabilities, (*check).restrictedCapabilities},
	{"HostPath Volumes", (*check).hostPathVolumes, nil},
	{"Host Ports", (*check).hostPorts, nil},
	{"Host Probes / Lifecycle Hooks", (*check).handlerHosts, nil},
	{"AppArmor", (*check).appArmor, nil},
	{"/proc Mount Type", (*check).baselineProcMount, (*check).procMount},
	{"Seccomp", (*check).seccomp, (*check).restrictedSeccomp},
	{"Sysctls", (*check).sysctlNames, nil},
	{"Privilege Escalation", nil, (*check).escalation},
	{"Running as Non-root", nil, (*check).nonRoot},
	{"Running as Non-root user", nil, (*check).nonRootUser},
}

// own are controls of fields that Pods of Kubernetes do not have.
var own = []control{{"Devices", (*check).devices, nil}}

// podSecurity checks the pod against a level.
func (r *review) podSecurity(level Level) {
	if level != Baseline && level != Restricted {
		return
	}
	for _, control := range slices.Concat(controls, own) {
		control.run(r, level)
	}
	(&check{r, Baseline, "Ulimits"}).ulimits()
}

// ulimits denies what KEP-5758 denies at these levels, limits that are none, and those that let processes take CPU time of the host's
// processes, as the capability SYS_NICE does. The standards have no control for it, since a Pod has no ulimits yet.
func (c *check) ulimits() {
	c.containers(func(at string, container *spec.Container, _ *spec.SecurityContext) {
		for i := range container.Ulimits {
			u := &container.Ulimits[i]
			soft, hard := u.Limits()
			switch field := fmt.Sprintf("%sulimits[%d]", at, i); {
			case soft == spec.Unlimited || hard == spec.Unlimited:
				c.deny(field, u.String(), "must not be unlimited")
			case hard > 0 && (u.Name == "rtprio" || u.Name == "nice"):
				c.deny(field, u.String(), "must be 0 or unset")
			}
		}
	})
}

// run runs the check of the control at a level other than [Privileged].
func (c control) run(r *review, level Level) {
	violated, run := Baseline, c.baseline
	if level == Restricted && c.restricted != nil {
		violated, run = Restricted, c.restricted
	}
	if run != nil {
		run(&check{r, violated, c.title})
	}
}

// check is the check of one control.
type check struct {
	*review
	level Level
	title string
}

// deny adds a violation. The value is as in the pod file; it is empty if the field is not set.
func (c *check) deny(field, value, requirement string) {
	c.requests = append(c.requests, request(field, value))
	if value != "" {
		requirement = value + ": " + requirement
	}
	c.refusals = append(c.refusals, lifecycle.Refusal{
		Reason: lifecycle.ReasonPodSecurity, Field: field,
		Message: fmt.Sprintf("%s (violates \"%s:latest\", %s)", requirement, c.level, c.title),
		Hint:    "change the pod, or podSecurity in [policy] of podstead.toml, and restart the daemon",
	})
}

// containers calls do for every container, with its field path and its security context, which is never nil.
func (r *review) containers(do func(at string, container *spec.Container, s *spec.SecurityContext)) {
	for _, list := range []struct {
		name       string
		containers []spec.Container
	}{{"initContainers[", r.pod.InitContainers}, {"containers[", r.pod.Containers}, {ephemeral, r.pod.EphemeralContainers}} {
		for i := range list.containers {
			container := &list.containers[i]
			do(list.name+strconv.Itoa(i)+"].", container, cmp.Or(container.SecurityContext, &spec.SecurityContext{}))
		}
	}
}

// podContext returns the pod's security context, never nil.
func (c *check) podContext() *spec.PodSecurityContext {
	return cmp.Or(c.pod.SecurityContext, &spec.PodSecurityContext{})
}

// userNamespace reports whether the pod has a user namespace of its own, for which the standards are relaxed since 1.35
// (KEP-127).
func (c *check) userNamespace() bool { return c.pod.HostUsers != nil && !*c.pod.HostUsers }

func (c *check) hostNamespaces() {
	for _, n := range []struct {
		field string
		set   bool
	}{{"hostNetwork", c.pod.HostNetwork}, {"hostPID", c.pod.HostPID}, {"hostIPC", c.pod.HostIPC}} {
		if n.set {
			c.deny(n.field, "true", "must be false or unset")
		}
	}
}

func (c *check) privileged() {
	c.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) {
		if isTrue(s.Privileged) {
			c.deny(at+"securityContext.privileged", "true", "must be false or unset")
		}
	})
}

// baselineCapabilities are the default capabilities of a container except NET_RAW.
var baselineCapabilities = []string{
	"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP",
	"SETUID", "SYS_CHROOT",
}

func (c *check) capabilities() { c.addedCapabilities(baselineCapabilities) }

func (c *check) addedCapabilities(allowed []string) {
	c.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) {
		if s.Capabilities == nil {
			return
		}
		for i, name := range s.Capabilities.Add {
			if !slices.Contains(allowed, name) {
				c.deny(fmt.Sprintf("%ssecurityContext.capabilities.add[%d]", at, i), strconv.Quote(name), "must be "+oneOf(allowed))
			}
		}
	})
}

func (c *check) restrictedCapabilities() {
	c.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) {
		if s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") {
			c.deny(at+"securityContext.capabilities.drop", "", `must include "ALL"`)
		}
	})
	c.addedCapabilities([]string{"NET_BIND_SERVICE"})
}

func (c *check) hostPathVolumes() {
	for i := range c.pod.Volumes {
		if v := c.pod.Volumes[i].HostPath; v != nil {
			c.deny(fmt.Sprintf("volumes[%d].hostPath", i), strconv.Quote(v.Path), "hostPath volumes are forbidden")
		}
	}
}

func (c *check) devices() {
	c.containers(func(at string, container *spec.Container, _ *spec.SecurityContext) {
		for i := range container.Devices {
			c.deny(fmt.Sprintf("%sdevices[%d]", at, i), strconv.Quote(container.Devices[i].Name()), "devices are forbidden")
		}
	})
}

func (c *check) hostPorts() {
	c.containers(func(at string, container *spec.Container, _ *spec.SecurityContext) {
		for i := range container.Ports {
			if port := container.Ports[i].HostPort; port != 0 {
				c.deny(fmt.Sprintf("%sports[%d].hostPort", at, i), strconv.Itoa(int(port)), "must be 0 or unset")
			}
		}
	})
}

func (c *check) handlerHosts() {
	c.containers(func(at string, container *spec.Container, _ *spec.SecurityContext) {
		for _, p := range []struct {
			field string
			probe *spec.Probe
		}{
			{"livenessProbe", container.LivenessProbe},
			{"readinessProbe", container.ReadinessProbe},
			{"startupProbe", container.StartupProbe},
		} {
			if p.probe == nil {
				continue
			}
			c.handlerHost(at+p.field, p.probe.HTTPGet)
			if tcp := p.probe.TCPSocket; tcp != nil && tcp.Host != "" {
				c.deny(at+p.field+".tcpSocket.host", strconv.Quote(tcp.Host), "must be empty or unset")
			}
		}
		if container.Lifecycle == nil {
			return
		}
		for _, h := range []struct {
			field   string
			handler *spec.LifecycleHandler
		}{{"lifecycle.postStart", container.Lifecycle.PostStart}, {"lifecycle.preStop", container.Lifecycle.PreStop}} {
			if h.handler != nil {
				c.handlerHost(at+h.field, h.handler.HTTPGet)
			}
		}
	})
}

func (c *check) handlerHost(at string, get *spec.HTTPGetAction) {
	if get != nil && get.Host != "" {
		c.deny(at+".httpGet.host", strconv.Quote(get.Host), "must be empty or unset")
	}
}

const (
	runtimeDefault = "RuntimeDefault"
	localhost      = "Localhost"
	// appArmorAnnotation is the prefix of the annotation that the field appArmorProfile replaced. It has no effect here, but
	// the standards still check it.
	appArmorAnnotation = "container.apparmor.security.beta.kubernetes.io/"
)

func confined(p *spec.SecurityProfile) bool {
	return p != nil && (p.Type == runtimeDefault || p.Type == localhost)
}

// profile denies a profile that is set and does not confine the container.
func (c *check) profile(field string, p *spec.SecurityProfile) {
	if p != nil && !confined(p) {
		c.deny(field+".type", strconv.Quote(p.Type), "must be RuntimeDefault or Localhost")
	}
}

func (c *check) appArmor() {
	c.profile("securityContext.appArmorProfile", c.podContext().AppArmorProfile)
	c.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) {
		c.profile(at+"securityContext.appArmorProfile", s.AppArmorProfile)
	})
	for _, name := range slices.Sorted(maps.Keys(c.pod.Annotations)) {
		value := c.pod.Annotations[name]
		if strings.HasPrefix(name, appArmorAnnotation) && value != "" && value != "runtime/default" &&
			!strings.HasPrefix(value, "localhost/") {
			c.deny("annotations."+name, strconv.Quote(value), "must be runtime/default or localhost/<profile>")
		}
	}
}

func (c *check) baselineProcMount() {
	if !c.userNamespace() {
		c.procMount()
	}
}

func (c *check) procMount() {
	c.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) {
		if s.ProcMount != "" && s.ProcMount != "Default" {
			c.deny(at+"securityContext.procMount", strconv.Quote(s.ProcMount), "must be Default or unset")
		}
	})
}

func (c *check) seccomp() {
	c.profile("securityContext.seccompProfile", c.podContext().SeccompProfile)
	c.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) {
		c.profile(at+"securityContext.seccompProfile", s.SeccompProfile)
	})
}

// restrictedSeccomp requires an explicit profile, although the default of Podstead is RuntimeDefault: the
// standards require the same security of the pod elsewhere.
func (c *check) restrictedSeccomp() {
	c.seccomp()
	if c.podContext().SeccompProfile != nil { // checked above, and inherited by all containers
		return
	}
	c.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) {
		if s.SeccompProfile == nil {
			c.deny(at+"securityContext.seccompProfile", "",
				"must be set in the pod or the container, with type RuntimeDefault or Localhost")
		}
	})
}

// standardSysctls are the sysctls that the standards allow, in this spelling only.
var standardSysctls = []string{
	"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports", "net.ipv4.ip_unprivileged_port_start",
	"net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes",
	"net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_notsent_lowat", "net.ipv4.tcp_rmem", "net.ipv4.tcp_slow_start_after_idle",
	"net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
}

func (c *check) sysctlNames() {
	list := c.podContext().Sysctls
	for i := range list {
		if name := list[i].Name; !slices.Contains(standardSysctls, name) {
			c.deny(fmt.Sprintf("securityContext.sysctls[%d].name", i), strconv.Quote(name), "must be "+oneOf(standardSysctls))
		}
	}
}

func (c *check) escalation() {
	c.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) {
		if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
			c.deny(at+"securityContext.allowPrivilegeEscalation", formatBool(s.AllowPrivilegeEscalation), "must be false")
		}
	})
}

func (c *check) nonRoot() {
	if c.userNamespace() {
		return
	}
	pod := c.podContext().RunAsNonRoot
	if pod != nil && !*pod {
		c.deny("securityContext.runAsNonRoot", "false", "must be true")
	}
	c.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) {
		switch own := s.RunAsNonRoot; {
		case own != nil && !*own:
			c.deny(at+"securityContext.runAsNonRoot", "false", "must be true")
		case own == nil && pod == nil:
			c.deny(at+"securityContext.runAsNonRoot", "", "must be true in the pod or the container")
		}
	})
}

func (c *check) nonRootUser() {
	if c.userNamespace() {
		return
	}
	root := func(field string, user *int64) {
		if user != nil && *user == 0 {
			c.deny(field+".runAsUser", "0", "must not be 0")
		}
	}
	root("securityContext", c.podContext().RunAsUser)
	c.containers(func(at string, _ *spec.Container, s *spec.SecurityContext) { root(at+"securityContext", s.RunAsUser) })
}

func isTrue(b *bool) bool { return b != nil && *b }

func formatBool(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}

func oneOf(values []string) string {
	if len(values) == 1 {
		return strconv.Quote(values[0])
	}
	return "one of " + strings.Join(values, ", ")
}
