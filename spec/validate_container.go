package spec

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	maxRestartRules = 20
	maxExitCodes    = 255
)

func (v *validator) containers() {
	p := v.pod
	if count := len(p.InitContainers) + len(p.Containers); count > maxContainers {
		field := any(&p.Containers)
		if len(p.InitContainers) > maxContainers {
			field = &p.InitContainers
		}
		v.bad(field, "Too many: %d: must have at most %d containers, including init containers", count, maxContainers)
		return // do not report the problems of every one of them
	}
	v.required(p, "containers", len(p.Containers) == 0)
	names := unique{}
	var hostPorts []ContainerPort // of the preceding containers that run at the same time
	for c := range p.EveryContainer() {
		v.requiredName(c, "name", &c.Name, dnsLabel)
		if c.Name != "" && names.seen(c.Name) {
			v.duplicate(&c.Name, c.Name)
		}
		if p.runsAlone(c) {
			v.container(c, &[]ContainerPort{})
		} else {
			v.container(c, &hostPorts)
		}
	}
	for i := range p.InitContainers {
		v.initContainer(&p.InitContainers[i])
	}
}

func (v *validator) container(c *Container, hostPorts *[]ContainerPort) {
	v.required(c, "image", c.Image == "")
	v.image(&c.Image)
	oneOf(v, &c.ImagePullPolicy, PullAlways, PullIfNotPresent, PullNever)
	v.absolutePath(&c.WorkingDir)
	v.environment(c)
	v.processSize(c)
	v.words(&c.Command)
	v.ports(c, hostPorts)
	v.resources(&c.Resources, resourceNames)
	v.resizePolicy(c)
	v.ulimits(c)
	v.init(c)
	v.mounts(c)
	v.devices(c)
	v.deviceMounts(c)
	v.probes(c)
	v.lifecycle(c)
	v.restart(c)
	v.security(c)
	if p := c.TerminationMessagePath; !path.IsAbs(p) {
		v.warn(&c.TerminationMessagePath, "is relative, used as %s", path.Join("/", p))
	}
	if !privileged(c) {
		v.outsideKernel(&c.TerminationMessagePath)
	}
	oneOf(v, &c.TerminationMessagePolicy, TerminationMessageFile, TerminationMessageFallbackToLogs)
}

// initContainer checks the fields that only app containers and sidecars can have.
func (v *validator) initContainer(c *Container) {
	if c.IsSidecar() {
		return
	}
	const forbidden = "Forbidden: may not be set for init containers without restartPolicy=Always"
	hint := "set " + v.format.word("restartPolicy", "Always") + " to make it a sidecar"
	for i := range c.ResizePolicy {
		if field := &c.ResizePolicy[i].RestartPolicy; *field == ResizeRestartContainer {
			v.badHint(field, hint, "must not be set to 'RestartContainer' for non-sidecar initContainers")
		}
	}
	for _, probe := range []**Probe{&c.LivenessProbe, &c.ReadinessProbe, &c.StartupProbe} {
		if *probe != nil {
			v.badHint(probe, hint, forbidden)
		}
	}
	if c.Lifecycle != nil {
		v.badHint(&c.Lifecycle, hint, forbidden)
	}
}

func (v *validator) restartPolicy(field *RestartPolicy) {
	meant := composeRestart(string(*field))
	if meant == "" {
		oneOf(v, field, RestartAlways, RestartOnFailure, RestartNever)
		return
	}
	supported := quotedList([]string{string(RestartAlways), string(RestartOnFailure), string(RestartNever)})
	hint := "write " + v.format.word("restartPolicy", string(meant))
	v.badHint(field, hint, "Unsupported value: %s: supported values: %s", quote(string(*field)), supported)
}

// maxRestarts checks the maximum of restarts of a container. One of a sidecar, which runs as long as the pod, or of an init container, for
// which the pod waits, would leave the pod in a state that no restart policy has.
func (v *validator) maxRestarts(c *Container) {
	switch limit := c.MaxRestarts; {
	case limit == nil:
	case *limit < 1:
		v.badHint(limit, "set "+v.format.word("restartPolicy", "Never")+" for no restart", "must be greater than or equal to 1")
	case slices.ContainsFunc(v.pod.InitContainers, func(o Container) bool { return o.Name == c.Name }):
		v.bad(limit, "Forbidden: may not be set for init containers")
	case v.pod.BackoffLimit != nil:
		v.bad(limit, "Forbidden: may not be set when backoffLimit is set")
	case cmp.Or(c.RestartPolicy, v.pod.RestartPolicy) == RestartNever && len(c.RestartPolicyRules) == 0:
		v.bad(limit, "Forbidden: may not be set when restartPolicy is Never")
	}
}

func (v *validator) restart(c *Container) {
	v.restartPolicy(&c.RestartPolicy)
	v.maxRestarts(c)
	chosen(v, &c.RestartPolicy, RestartAlways, RestartOnFailure, RestartNever)
	v.backoff(c.RestartBackoff)
	rules := c.RestartPolicyRules
	v.tooMany(&c.RestartPolicyRules, len(rules), maxRestartRules)
	if len(rules) > 0 && c.RestartPolicy == "" {
		v.bad(&c.RestartPolicyRules, "must specify restartPolicy when restart rules are used")
	}
	for i := range rules {
		rule := &rules[i]
		v.required(rule, "action", rule.Action == "")
		oneOf(v, &rule.Action, "Restart", "RestartAllContainers")
		codes := rule.ExitCodes
		if v.required(rule, "exitCodes", codes == nil); codes == nil {
			continue
		}
		v.required(codes, "operator", codes.Operator == "")
		oneOf(v, &codes.Operator, "In", "NotIn")
		v.tooMany(&codes.Values, len(codes.Values), maxExitCodes)
	}
}

func (v *validator) environment(c *Container) {
	names := unique{}
	for i := range c.Env {
		e := &c.Env[i]
		v.requiredName(e, "name", &e.Name, validation.IsRelaxedEnvVarName)
		if e.Name != "" && names.seen(e.Name) {
			v.warn(&e.Name, "hides previous definition of %s", quote(e.Name))
		}
		if e.ValueFrom == nil {
			continue
		}
		if e.Value != "" {
			v.bad(&e.Value, "Forbidden: may not be specified when valueFrom is set")
		}
		v.valueFrom(e.ValueFrom)
	}
	for i := range c.EnvFrom {
		from := &c.EnvFrom[i]
		v.exactlyOne(from, "configMapRef", "secretRef")
		v.name(&from.Prefix, validation.IsRelaxedEnvVarName)
		for _, ref := range []*EnvReference{from.ConfigMapRef, from.SecretRef} {
			if ref != nil {
				v.requiredName(ref, "name", &ref.Name, dnsSubdomain)
			}
		}
	}
}

func (v *validator) valueFrom(s *EnvVarSource) {
	v.exactlyOne(s, "fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
	if s.FieldRef != nil {
		v.fieldRef(s.FieldRef, envFields)
	}
	if s.ResourceFieldRef != nil {
		v.resourceFieldRef(s.ResourceFieldRef)
	}
	if s.ConfigMapKeyRef != nil {
		v.keyRef(s.ConfigMapKeyRef, v.configMaps)
	}
	if s.SecretKeyRef != nil {
		v.keyRef(s.SecretKeyRef, v.secrets)
	}
	if s.FileKeyRef != nil {
		v.fileKeyRef(s.FileKeyRef)
	}
}

// fileKeyRef checks a key of a file as the API server does (validateFileKeySelector, validateFileKeyRefVolumes). A path that begins with
// a slash is one in the volume.
func (v *validator) fileKeyRef(ref *FileKeyRef) {
	v.requiredName(ref, "volumeName", &ref.VolumeName, dnsLabel)
	v.required(ref, "path", ref.Path == "")
	if slices.Contains(strings.Split(ref.Path, "/"), "..") {
		v.invalid(&ref.Path, ref.Path, noBackstep)
	}
	v.requiredName(ref, "key", &ref.Key, validation.IsRelaxedEnvVarName)
	switch vol, known := v.sources[ref.VolumeName]; {
	case ref.VolumeName == "":
	case !known:
		v.notFound(&ref.VolumeName, "volume", ref.VolumeName, slices.Sorted(maps.Keys(v.sources)))
	case vol.EmptyDir == nil:
		v.invalid(&ref.VolumeName, ref.VolumeName, "referenced volume must be of type emptyDir")
	}
}

func (v *validator) keyRef(ref *KeyRef, inline map[string][]string) {
	v.requiredName(ref, "name", &ref.Name, dnsSubdomain)
	v.requiredName(ref, "key", &ref.Key, validation.IsConfigMapKey)
	v.key(&ref.Key, v.keysOf(inline, ref.Name, ref.Optional))
}

var (
	commonFields = []string{"metadata.name", "metadata.namespace", "metadata.uid"}
	envFields    = slices.Concat(commonFields, []string{
		"spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
	})
	volumeFields = slices.Concat(commonFields, []string{"metadata.labels", "metadata.annotations"})
)

func (v *validator) fieldRef(ref *FieldRef, fields []string) {
	if ref.APIVersion != "" && ref.APIVersion != "v1" {
		v.unsupportedValue(&ref.APIVersion, ref.APIVersion, []string{"v1"})
	}
	v.required(ref, "fieldPath", ref.FieldPath == "")
	if ref.FieldPath == "" || slices.Contains(fields, ref.FieldPath) {
		return
	}
	if m, ok := subscript(ref.FieldPath); ok {
		if reasons := validation.IsQualifiedName(strings.ToLower(m)); len(reasons) > 0 {
			v.invalid(&ref.FieldPath, m, withoutExample(reasons[0]))
		}
		return
	}
	allowed := slices.Concat(fields, []string{"metadata.labels['KEY']", "metadata.annotations['KEY']"})
	v.unsupportedValue(&ref.FieldPath, ref.FieldPath, allowed)
}

// subscript is KEY of metadata.labels['KEY'] or metadata.annotations['KEY'].
func subscript(path string) (string, bool) {
	for _, prefix := range []string{"metadata.labels['", "metadata.annotations['"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			return strings.CutSuffix(rest, "']")
		}
	}
	return "", false
}

func (v *validator) resourceFieldRef(ref *ResourceFieldRef) {
	var allowed []string
	for _, kind := range []string{"limits.", "requests."} {
		for _, name := range resourceNames {
			allowed = append(allowed, kind+name)
		}
	}
	v.required(ref, "resource", ref.Resource == "")
	if kind, name, _ := strings.Cut(ref.Resource, "."); !IsHugePages(name) || kind != "limits" && kind != "requests" {
		oneOf(v, &ref.Resource, allowed...)
	}
	v.divisor(ref)
	if ref.ContainerName == "" {
		return
	}
	var known []string
	for c := range v.pod.EveryContainer() {
		known = append(known, c.Name)
	}
	if !slices.Contains(known, ref.ContainerName) {
		v.notFound(&ref.ContainerName, "container", ref.ContainerName, known)
	}
}

// divisors are the values of a divisor that the Pod API allows, besides 0, which is the default.
var (
	cpuDivisors    = []string{"1m", "1"}
	memoryDivisors = []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
)

func (v *validator) divisor(ref *ResourceFieldRef) {
	_, name, _ := strings.Cut(ref.Resource, ".")
	if ref.Divisor == nil || ref.Divisor.IsZero() || !slices.Contains(resourceNames, name) && !IsHugePages(name) {
		return
	}
	allowed := memoryDivisors
	if name == ResourceCPU {
		allowed = cpuDivisors
	}
	// As in the Pod API: 1024Ki is 1Mi, but 1024 is not 1Ki.
	if text := ref.Divisor.String(); !slices.Contains(allowed, text) {
		v.unsupportedValue(ref.Divisor, text, allowed)
	}
}

func (v *validator) ports(c *Container, hostPorts *[]ContainerPort) {
	names, numbers := unique{}, unique{}
	for i := range c.Ports {
		p := &c.Ports[i]
		v.required(p, "containerPort", p.ContainerPort == 0)
		v.portNumber(&p.ContainerPort)
		if p.HostPort != 0 { // 0 is none
			v.portNumber(&p.HostPort)
		}
		oneOf(v, &p.Protocol, ProtocolTCP, ProtocolUDP, ProtocolSCTP)
		if p.HostIP != "" {
			v.ip(&p.HostIP)
		}
		if ip, err := netip.ParseAddr(p.HostIP); err == nil && ip.Is6() && ip.IsLoopback() && !v.pod.HostNetwork {
			v.badHint(&p.HostIP, "use 127.0.0.1", "Invalid value: %q: connections to it cannot be forwarded to a pod", p.HostIP)
		}
		v.name(&p.Name, validation.IsValidPortName)
		if p.Name != "" && names.seen(p.Name) {
			v.duplicate(&p.Name, p.Name)
		}
		if numbers.seen(fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol)) {
			v.warn(&p.ContainerPort, "duplicate port definition %d/%s", p.ContainerPort, p.Protocol)
		}
		if p.HostPort == 0 {
			continue
		}
		if v.pod.HostNetwork && p.HostPort != p.ContainerPort {
			v.bad(&p.HostPort, "must match containerPort when hostNetwork is true")
		}
		if slices.ContainsFunc(*hostPorts, p.Overlaps) {
			field := &p.HostPort
			if v.at[field] == nil {
				field = &p.ContainerPort
			}
			v.bad(field, "Duplicate value: host port %d/%s", p.HostPort, p.Protocol)
		}
		*hostPorts = append(*hostPorts, *p)
	}
}

func (v *validator) portNumber(field *int32) {
	if *field < 0 || *field > 65535 || *field == 0 && v.at[field] != nil {
		v.bad(field, "%s", inRange(1, 65535))
	}
}
