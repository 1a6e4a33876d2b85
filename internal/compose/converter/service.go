package converter

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"tags.cncf.io/container-device-interface/pkg/parser"

	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/spec"
)

// service adds a service to a pod: as a container, or as an init container or a sidecar if others of the pod start after it.
func (c *converter) service(w *pod, name string) {
	s := c.p.Services[name]
	path := []string{"services", name}
	for i := range s.PreStart {
		hook := fmt.Sprintf("%s-pre-start-%d", compose.DNSName(name), i)
		container := c.container(w, append(slices.Clone(path), "pre_start", strconv.Itoa(i)), hook, &s.PreStart[i].ContainerSpec)
		w.InitContainers = append(w.InitContainers, container)
	}
	container := c.container(w, path, compose.DNSName(name), &s.ContainerSpec)
	container.Stdin, container.TTY = s.StdinOpen, s.Tty
	container.ReadinessProbe, container.StartupProbe = c.probes(path, s.HealthCheck)
	container.Ports = c.ports(w, path, &s, container.Name)
	container.Lifecycle = c.lifecycle(w, path, &s)
	restart, limit := c.restartPolicy(name), c.maxRestarts(name)
	c.podFields(w, path, &s)
	if w.KeepID != nil { // the pod has no other service
		container.RunAsKept(*w.KeepID)
		for i := range w.InitContainers {
			w.InitContainers[i].RunAsKept(*w.KeepID)
		}
	}
	first, once, healthy := c.dependedOn(name)
	if (once || first) && limit != nil {
		c.drop(append(path, "restart"), "a container that others of its pod start after has no maximum of restarts")
	}
	switch {
	case once:
		container.ReadinessProbe, container.StartupProbe, container.Lifecycle = nil, nil, nil
		w.InitContainers = append(w.InitContainers, container)
	case first:
		if restart != spec.RestartAlways {
			c.lose(append(path, "restart"), "a container that others of its pod start after is restarted always", "set restart: always")
		}
		container.RestartPolicy = spec.RestartAlways
		if healthy && container.StartupProbe == nil && container.ReadinessProbe != nil {
			probe := *container.ReadinessProbe
			probe.FailureThreshold = math.MaxInt32
			container.StartupProbe = &probe
		}
		w.InitContainers = append(w.InitContainers, container)
	default:
		if w.RestartPolicy == "" {
			w.RestartPolicy = restart
		} else if w.RestartPolicy != restart {
			container.RestartPolicy = restart
		}
		if restart != spec.RestartNever {
			container.MaxRestarts = limit
		}
		w.Containers = append(w.Containers, container)
	}
	if replicas := s.GetScale(); replicas != w.replicas {
		c.lose(append(path, "scale"), fmt.Sprintf("it has as many replicas as %s, whose network it shares", quote(w.leader)), "")
	}
}

// dependedOn reports whether other services of the pod start after a service, after it completed, or after it is healthy.
func (c *converter) dependedOn(name string) (first, once, healthy bool) {
	for other, s := range c.p.Services {
		if !c.inOrder(other, name) {
			continue
		}
		first = true
		once = once || s.DependsOn[name].Condition == types.ServiceConditionCompletedSuccessfully
		healthy = healthy || s.DependsOn[name].Condition == types.ServiceConditionHealthy
	}
	return first, once, healthy
}

// restartPolicy returns when a service is restarted. As in Compose, the default is never.
func (c *converter) restartPolicy(name string) spec.RestartPolicy {
	s := c.p.Services[name]
	word, _, _ := strings.Cut(s.Restart, ":")
	if s.Deploy != nil && s.Deploy.RestartPolicy != nil && word == "" {
		word = cmp.Or(s.Deploy.RestartPolicy.Condition, "any")
	}
	switch word {
	case "", "no", "none":
		return spec.RestartNever
	case "on-failure":
		return spec.RestartOnFailure
	}
	return spec.RestartAlways
}

// maxRestarts returns the maximum of restarts of a service that is restarted on failure; nil: there is none. Compose has 0 for none.
func (c *converter) maxRestarts(name string) *int32 {
	s := c.p.Services[name]
	word, number, _ := strings.Cut(s.Restart, ":")
	limit, _ := strconv.ParseUint(number, 10, 31) // 0: another policy, or none
	if d := s.Deploy; word == "" && d != nil && d.RestartPolicy != nil && d.RestartPolicy.MaxAttempts != nil {
		limit = min(*d.RestartPolicy.MaxAttempts, math.MaxInt32)
	}
	if limit == 0 {
		return nil
	}
	n := int32(limit)
	return &n
}

// devices converts the devices of a container.
func (c *converter) devices(path []string, list []types.DeviceMapping) []spec.Device {
	var devices []spec.Device
	for i, m := range list {
		at := append(slices.Clone(path), strconv.Itoa(i))
		d := spec.Device{Path: m.Source}
		if m.Target != m.Source {
			d.ContainerPath = m.Target
		}
		if m.Permissions != d.Access() {
			d.Permissions = m.Permissions
		}
		name := m.Source
		if m.Target != m.Source && !filepath.IsAbs(m.Target) { // Compose takes a colon in it for a separator
			name += ":" + m.Target
		}
		switch {
		case parser.IsQualifiedName(name):
			devices = append(devices, spec.Device{CDI: name})
		case !filepath.IsAbs(m.Source):
			c.lose(at, noDevices, "write an absolute path, or a CDI device such as nvidia.com/gpu=all")
		case !strings.HasPrefix(d.InContainer(), "/dev/"):
			c.lose(at, "the path of a device in the container is below /dev", "set another target")
		default:
			devices = append(devices, d)
		}
	}
	return devices
}

// requested converts devices that are requested from a driver. Only that of the Container Device Interface names some.
func (c *converter) requested(path []string, list []types.DeviceRequest) []spec.Device {
	var devices []spec.Device
	for i, r := range list {
		at := append(slices.Clone(path), strconv.Itoa(i))
		if r.Driver != "cdi" || len(r.IDs) == 0 {
			c.lose(at, noDevices, "set driver: cdi and device_ids, such as [nvidia.com/gpu=all]")
			continue
		}
		for _, name := range r.IDs {
			if !parser.IsQualifiedName(name) {
				c.refuse(append(at, "device_ids"), strconv.Quote(name)+": must be VENDOR/CLASS=NAME, such as nvidia.com/gpu=all", "")
				continue
			}
			devices = append(devices, spec.Device{CDI: name})
		}
	}
	return devices
}

// container converts what services and their hooks have in common.
func (c *converter) container(w *pod, path []string, name string, s *types.ContainerSpec) spec.Container {
	at := func(key string) []string { return append(slices.Clone(path), key) }
	container := spec.Container{
		Name: name, Image: s.Image, WorkingDir: s.WorkingDir, Command: escaped(s.Entrypoint), Args: escaped(s.Command),
		SecurityContext: c.security(path, s), Resources: c.resources(path, s),
	}
	if s.Entrypoint != nil && len(s.Entrypoint) == 0 {
		c.lose(at("entrypoint"), "the entrypoint of an image cannot be removed", "set it to the program")
	}
	if s.Command != nil && len(s.Command) == 0 && len(s.Entrypoint) == 0 {
		c.lose(at("command"), "the command of an image cannot be removed", "set the entrypoint to the program")
	}
	container.Devices = c.devices(at("devices"), s.Devices)
	if len(path) == 2 { // a service
		all := c.p.Services[path[1]]
		container.Devices = append(container.Devices, c.requested(at("gpus"), all.Gpus)...)
		if d := all.Deploy; d != nil && d.Resources.Reservations != nil {
			container.Devices = append(container.Devices,
				c.requested(append(at("deploy"), "resources", "reservations", "devices"), d.Resources.Reservations.Devices)...)
		}
	}
	for _, key := range sortedKeys(s.Environment) {
		if v := s.Environment[key]; v != nil {
			container.Env = append(container.Env, spec.EnvVar{Name: key, Value: escape(*v)})
		}
	}
	switch policy := s.PullPolicy; policy {
	case "", types.PullPolicyMissing, types.PullPolicyIfNotPresent:
		if policy != "" {
			container.ImagePullPolicy = spec.PullIfNotPresent
		}
	case types.PullPolicyAlways:
		container.ImagePullPolicy = spec.PullAlways
	case types.PullPolicyNever:
		container.ImagePullPolicy = spec.PullNever
	case types.PullPolicyBuild:
		c.refuse(at("pull_policy"), "is not supported: images are not built", "build the image with another tool, and remove pull_policy")
	default:
		c.lose(at("pull_policy"), "images are not pulled at intervals", "set pull_policy: always")
	}
	host := "linux/" + runtime.GOARCH
	if p := s.Platform; p != "" && p != "linux" && p != host && !strings.HasPrefix(p, host+"/") {
		c.lose(at("platform"), "containers have the platform of the host, "+host, "remove platform")
	}
	container.Init = s.Init != nil && *s.Init
	container.Ulimits = c.ulimits(at("ulimits"), s.Ulimits)
	c.mounts(w, path, s, &container)
	return container
}

// ofPod reports whether a path is that of the only service of a pod, so that its limits are those of the pod.
func (w *pod) ofPod(path []string) bool { return len(path) == 2 && len(w.services) == 1 }

// userNamespace sets the user of the host that a pod with one service keeps.
func (c *converter) userNamespace(w *pod, path []string, s *types.ServiceConfig) {
	at := append(slices.Clone(path), "userns_mode")
	switch id, hasGroup, keeps := spec.ParseKeepID(s.UserNSMode); {
	case s.UserNSMode == "" || s.UserNSMode == "host":
	case !keeps:
		c.lose(at, "the mapping of IDs cannot be chosen", "write keep-id:uid=NUMBER,gid=NUMBER, or set hostUsers = false in the pod file")
	case !w.ofPod(path):
		c.lose(at, "the services of a pod have one user namespace", "set keepID in the pod file")
	default:
		w.KeepID = &id
		if !hasGroup {
			c.report(at, fmt.Sprintf("the group in the containers is %d, where Podman takes the number of the group on the host", id),
				"add gid, such as keep-id:uid=1000,gid=1000", true)
		}
	}
}

// runtimeClass sets the runtime class of a pod with one service. Docker's default is that of the host.
func (c *converter) runtimeClass(w *pod, path []string, s *types.ServiceConfig) {
	at := append(slices.Clone(path), "runtime")
	switch {
	case s.Runtime == "" || s.Runtime == "runc":
	case !w.ofPod(path):
		c.lose(at, "the services of a pod have one OCI runtime", "set runtimeClassName in the pod file")
	case len(validation.IsDNS1123Subdomain(s.Runtime)) > 0:
		c.lose(at, "the name of a runtime class consists of lower case letters, digits, - and .", "set runtimeClassName in the pod file")
	default:
		w.RuntimeClassName = s.Runtime
	}
}

// processLimits sets the limits of the processes and of the shared memory of a pod with one service.
func (c *converter) processLimits(w *pod, path []string, s *types.ServiceConfig) {
	if s.ShmSize > 0 && w.ofPod(path) && !w.HostIPC {
		w.ShmSize = new(inBytes(s.ShmSize))
	}
	key, limit := []string{"pids_limit"}, s.PidsLimit
	if d := s.Deploy; d != nil && d.Resources.Limits != nil && d.Resources.Limits.Pids > 0 {
		key, limit = []string{"deploy", "resources", "limits", "pids"}, d.Resources.Limits.Pids
	}
	switch at := slices.Concat(path, key); {
	case limit <= 0:
	case !w.ofPod(path):
		c.lose(at, "the services of a pod have one limit of processes", "set pidsLimit in the pod file")
	default:
		w.PidsLimit = &limit
	}
}

func (c *converter) ulimits(path []string, limits map[string]*types.UlimitsConfig) []spec.Ulimit {
	var list []spec.Ulimit
	for _, name := range sortedKeys(limits) {
		l := limits[name]
		u := spec.Ulimit{Name: name, Soft: new(int64(l.Single))}
		switch {
		case !slices.Contains(spec.UlimitNames, name):
			c.lose(append(slices.Clone(path), name), "there is no such limit", "")
			continue
		case l.Single == 0 && (l.Soft != 0 || l.Hard != 0):
			u.Soft, u.Hard = new(int64(l.Soft)), new(int64(l.Hard))
		}
		list = append(list, u)
	}
	return list
}

// escaped returns words in which nothing is expanded: Compose has replaced variables already.
func escaped(words []string) []string {
	var list []string
	for _, word := range words {
		list = append(list, escape(word))
	}
	return list
}

// escape doubles the dollar signs that the pod would expand: $(NAME) and $$.
func escape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && text[end] == '$' {
			end++
		}
		n := end - i
		if n > 1 || n == 1 && end < len(text) && text[end] == '(' {
			n *= 2
		}
		b.WriteString(strings.Repeat("$", n))
		if end < len(text) {
			b.WriteByte(text[end])
			end++
		}
		i = end
	}
	return b.String()
}

// podFields sets what the pod of a service has. The host name and the DNS settings are those of the service whose network others share.
func (c *converter) podFields(w *pod, path []string, s *types.ServiceConfig) {
	at := func(key string) []string { return append(slices.Clone(path), key) }
	grace := spec.Seconds(10) // the default of Compose
	if s.StopGracePeriod != nil {
		grace = seconds(*s.StopGracePeriod)
	}
	w.TerminationGracePeriodSeconds = max(w.TerminationGracePeriodSeconds, grace)
	for _, key := range sortedKeys(s.Labels) {
		c.label(w, at("labels"), key, s.Labels[key])
	}
	for _, key := range sortedKeys(s.Annotations) {
		c.annotation(w, at("annotations"), key, s.Annotations[key])
	}
	switch mode := s.NetworkMode; {
	case mode == "host":
		w.HostNetwork = true
	case mode == "none":
		c.lose(at("network_mode"), "every pod has a network", "limit it with the firewall of the host")
	case strings.HasPrefix(mode, types.ContainerPrefix):
		c.lose(at("network_mode"), "containers of other projects cannot be joined", "use service:NAME")
	}
	w.HostPID = w.HostPID || s.Pid == "host"
	w.HostIPC = w.HostIPC || s.Ipc == "host"
	c.userNamespace(w, path, s)
	c.processLimits(w, path, s)
	c.runtimeClass(w, path, s)
	c.shared(w, at("pid"), s.Pid, &w.ShareProcessNamespace)
	if ipc := s.Ipc; ipc != "private" && ipc != "shareable" {
		c.shared(w, at("ipc"), ipc, nil)
	}
	if s.Hostname != "" && s.Name == w.leader {
		switch {
		case isLabel(s.Hostname):
			w.Hostname = s.Hostname
		case len(validation.IsDNS1123Subdomain(s.Hostname)) == 0 && len(s.Hostname) <= spec.MaxHostname && !w.HostNetwork:
			w.HostnameOverride = s.Hostname
		default:
			c.lose(at("hostname"), "a host name consists of lower case letters, digits, - and .",
				"set hostname: "+compose.DNSName(s.Hostname))
		}
	}
	c.dns(w, s)
	c.hosts(w, at("extra_hosts"), s.ExtraHosts)
	for _, key := range sortedKeys(s.Sysctls) {
		w.security().Sysctls = append(w.security().Sysctls, spec.Sysctl{Name: key, Value: s.Sysctls[key]})
	}
	for _, group := range s.GroupAdd {
		id, err := strconv.ParseInt(group, 10, 64)
		switch {
		case err != nil:
			c.lose(at("group_add"), fmt.Sprintf("group %s is a name", quote(group)), "write its number")
		case !slices.Contains(w.security().SupplementalGroups, id):
			w.security().SupplementalGroups = append(w.security().SupplementalGroups, id)
		}
	}
	if l := s.Logging; l != nil {
		switch l.Driver {
		case "", "json-file", "local":
		case "journald":
			w.Annotations["podstead.io/log-driver"] = "journald"
		case "none":
			w.Annotations["podstead.io/log-driver"] = "memory"
			c.drop(at("logging"), "the last lines are kept in memory")
		default:
			c.lose(at("logging"), fmt.Sprintf("logs are not sent with the driver %s", quote(l.Driver)), "use the driver journald")
		}
	}
}

// shared reports a namespace that is neither that of the host nor that of the pod.
func (c *converter) shared(w *pod, path []string, mode string, share *bool) {
	other, isService := strings.CutPrefix(mode, types.ServicePrefix)
	switch {
	case mode == "" || mode == "host":
	case isService && c.leaders[other] == w.leader:
		if share != nil {
			*share = true
		}
	case isService:
		c.lose(path, "services of different pods share no namespace", "set also network_mode: "+mode)
	default:
		c.lose(path, fmt.Sprintf("%s is not supported", quote(mode)), "")
	}
}

func (w *pod) security() *spec.PodSecurityContext {
	if w.SecurityContext == nil {
		w.SecurityContext = &spec.PodSecurityContext{}
	}
	return w.SecurityContext
}

// label adds a label of Compose: as a label if the API allows it, else as an annotation.
func (c *converter) label(w *pod, path []string, key, value string) {
	if key != spec.ProjectLabel && len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0 {
		w.Labels[key] = value
		return
	}
	c.annotation(w, path, key, value)
}

func (c *converter) annotation(w *pod, path []string, key, value string) {
	if len(validation.IsQualifiedName(strings.ToLower(key))) > 0 || strings.HasPrefix(key, "podstead.io/") {
		c.drop(path, fmt.Sprintf("the key %s is not allowed", quote(key)))
		return
	}
	w.Annotations[key] = value
}

func (c *converter) dns(w *pod, s *types.ServiceConfig) {
	if len(s.DNS)+len(s.DNSOpts)+len(s.DNSSearch) == 0 {
		return
	}
	if w.DNSConfig == nil {
		w.DNSConfig = &spec.DNSConfig{}
	}
	d := w.DNSConfig
	if len(s.DNS) > 0 {
		w.DNSPolicy = spec.DNSNone
	}
	d.Nameservers = append(d.Nameservers, s.DNS...)
	d.Searches = append(d.Searches, s.DNSSearch...)
	for _, o := range s.DNSOpts {
		name, value, has := strings.Cut(o, ":")
		option := spec.DNSOption{Name: name}
		if has {
			option.Value = &value
		}
		d.Options = append(d.Options, option)
	}
}

func (c *converter) hosts(w *pod, path []string, hosts types.HostsList) {
	for _, host := range sortedKeys(hosts) {
		for _, ip := range hosts[host] {
			address, err := netip.ParseAddr(strings.Trim(ip, "[]"))
			switch {
			case ip == "host-gateway":
				c.lose(path, fmt.Sprintf("the address of the host for %s is not known before the pod starts", quote(host)),
					"write an address of the host")
			case err != nil:
				c.refuse(path, fmt.Sprintf("%s must be an IP address", quote(ip)), "")
			default:
				w.HostAliases = append(w.HostAliases, spec.HostAlias{IP: address.String(), Hostnames: []string{host}})
			}
		}
	}
}

func seconds(d types.Duration) spec.Seconds { return spec.Seconds(time.Duration(d).Seconds()) }

const (
	defaultInterval      = 30 * time.Second
	defaultStartInterval = 5 * time.Second
	defaultRetries       = 3
)

// hasHealthcheck reports whether the file has a healthcheck of a service.
func (c *converter) hasHealthcheck(name string) bool {
	h := c.p.Services[name].HealthCheck
	return h != nil && !h.Disable && len(h.Test) > 0 && h.Test[0] != "NONE"
}

// probes converts a healthcheck. Docker restarts no unhealthy container, so that there is no liveness probe, and the startup probe never
// fails: it only sets the interval until the first success.
func (c *converter) probes(path []string, h *types.HealthCheckConfig) (readiness, startup *spec.Probe) {
	if h == nil || h.Disable {
		return nil, nil
	}
	path = append(slices.Clone(path), "healthcheck")
	var command []string
	switch {
	case len(h.Test) == 0:
		c.lose(path, "the healthcheck of the image is not used", "write its test")
		return nil, nil
	case h.Test[0] == "NONE":
		return nil, nil
	case h.Test[0] == "CMD-SHELL" && len(h.Test) == 2:
		command = []string{"/bin/sh", "-c", h.Test[1]}
	case h.Test[0] == "CMD" && len(h.Test) > 1:
		command = h.Test[1:]
	default:
		c.refuse(append(path, "test"), `must begin with "NONE", "CMD" or "CMD-SHELL" and have a command`, "")
		return nil, nil
	}
	or := func(d *types.Duration, fallback time.Duration) spec.Seconds {
		if d == nil || *d == 0 {
			return spec.Seconds(fallback.Seconds())
		}
		return seconds(*d)
	}
	readiness = &spec.Probe{
		Exec:          &spec.ExecAction{Command: escaped(command)},
		PeriodSeconds: or(h.Interval, defaultInterval), TimeoutSeconds: or(h.Timeout, defaultInterval),
		FailureThreshold: defaultRetries,
	}
	if h.Retries != nil && *h.Retries > 0 {
		readiness.FailureThreshold = int32(min(*h.Retries, math.MaxInt32))
	}
	if h.StartPeriod != nil && *h.StartPeriod > 0 || h.StartInterval != nil && *h.StartInterval > 0 {
		probe := *readiness
		probe.PeriodSeconds, probe.FailureThreshold = or(h.StartInterval, defaultStartInterval), math.MaxInt32
		startup = &probe
	}
	return readiness, startup
}

// ports converts published ports. Others are listed without a host port.
func (c *converter) ports(w *pod, path []string, s *types.ServiceConfig, container string) (ports []spec.ContainerPort) {
	for i := range s.Ports {
		p := &s.Ports[i]
		at := append(slices.Clone(path), "ports", strconv.Itoa(i))
		port := spec.ContainerPort{ContainerPort: int32(min(p.Target, math.MaxUint16+1))}
		if protocol := strings.ToUpper(p.Protocol); protocol != string(spec.ProtocolTCP) {
			port.Protocol = spec.Protocol(protocol)
		}
		if len(validation.IsValidPortName(p.Name)) == 0 {
			port.Name = p.Name
		}
		first, last, isRange := strings.Cut(p.Published, "-")
		number, err := strconv.ParseUint(first, 10, 16)
		switch {
		case p.Published == "" || p.Published == "0":
			c.warn(at, "the port is not published: a port of the host is not chosen")
		case w.HostNetwork || s.NetworkMode == "host":
			if p.Published != strconv.FormatUint(uint64(p.Target), 10) {
				c.drop(at, "the pod has the network of the host, as in Compose")
			}
		case err != nil:
			c.refuse(at, fmt.Sprintf("%s must be a port or a range of ports", quote(p.Published)), "")
		default:
			port.HostPort = int32(number)
			if ip := strings.Trim(p.HostIP, "[]"); ip != "0.0.0.0" && ip != "::" {
				port.HostIP = ip
			}
			end, _ := strconv.ParseUint(last, 10, 16)
			switch {
			case isRange && int(end-number)+1 >= w.replicas && end >= number:
				if w.replicas > 1 {
					w.ranges[container] = append(w.ranges[container], len(ports))
				} else if end > number {
					c.warn(at, fmt.Sprintf("port %d of the range is published", number))
				}
			case w.replicas > 1:
				c.refuse(at, fmt.Sprintf("port %s of the host cannot be that of %d pods", first, w.replicas),
					fmt.Sprintf("publish a range, such as %s-%d:%d", first, int(number)+w.replicas-1, p.Target))
			}
		}
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports
}

// lifecycle converts hooks and the stop signal.
func (c *converter) lifecycle(w *pod, path []string, s *types.ServiceConfig) *spec.Lifecycle {
	var l spec.Lifecycle
	for _, h := range []struct {
		key   string
		hooks []types.ServiceHook
		to    **spec.LifecycleHandler
	}{{"post_start", s.PostStart, &l.PostStart}, {"pre_stop", s.PreStop, &l.PreStop}} {
		if len(h.hooks) == 0 {
			continue
		}
		if len(h.hooks) > 1 {
			c.lose(append(slices.Clone(path), h.key), "a container has one hook of each kind", "write one with the commands of all")
		}
		*h.to = &spec.LifecycleHandler{Exec: &spec.ExecAction{Command: h.hooks[0].Command}}
	}
	if s.StopSignal != "" {
		l.StopSignal = s.StopSignal
		if _, err := strconv.Atoi(s.StopSignal); err != nil {
			l.StopSignal = "SIG" + strings.TrimPrefix(strings.ToUpper(s.StopSignal), "SIG")
		}
		w.OS = &spec.PodOS{Name: spec.Linux}
	}
	if l == (spec.Lifecycle{}) {
		return nil
	}
	return &l
}

// resources converts limits and requests. Those of deploy take precedence; the library rejects values that contradict each other.
func (c *converter) resources(path []string, s *types.ContainerSpec) (r spec.Resources) {
	set := func(list *spec.ResourceList, key string, q resource.Quantity) {
		if q.Sign() > 0 {
			if *list == nil {
				*list = spec.ResourceList{}
			}
			(*list)[key] = q
		}
	}
	cpus := float64(s.CPUS)
	if s.CPUQuota > 0 {
		cpus = float64(s.CPUQuota) / float64(cmp.Or(s.CPUPeriod, 100_000))
	}
	set(&r.Limits, "cpu", cores(cpus))
	set(&r.Limits, "memory", inBytes(s.MemLimit))
	set(&r.Requests, "cpu", cores(float64(s.CPUShares)/1024))
	set(&r.Requests, "memory", inBytes(s.MemReservation))
	if len(path) == 2 {
		if d := c.p.Services[path[1]].Deploy; d != nil {
			if l := d.Resources.Limits; l != nil {
				set(&r.Limits, "cpu", cores(float64(l.NanoCPUs)))
				set(&r.Limits, "memory", inBytes(l.MemoryBytes))
			}
			if l := d.Resources.Reservations; l != nil {
				set(&r.Requests, "cpu", cores(float64(l.NanoCPUs)))
				set(&r.Requests, "memory", inBytes(l.MemoryBytes))
			}
		}
	}
	for key, limit := range r.Limits { // Docker has shares without relation to limits
		if request, ok := r.Requests[key]; ok && request.Cmp(limit) > 0 {
			r.Requests[key] = limit
		}
	}
	return r
}

func cores(n float64) resource.Quantity {
	return *resource.NewMilliQuantity(int64(math.Round(min(n, math.MaxInt32)*1000)), resource.DecimalSI)
}

func inBytes(n types.UnitBytes) resource.Quantity {
	return *resource.NewQuantity(int64(n), resource.BinarySI)
}

// parseBytes parses a size such as 64m, as Compose does; nil: it is none.
func parseBytes(text string) *resource.Quantity {
	var n types.UnitBytes
	if n.DecodeMapstructure(text) != nil || n <= 0 {
		return nil
	}
	return new(inBytes(n))
}
