package spec

import (
	"fmt"
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
		v.bad(field, "a pod has at most %d containers, not %d", maxContainers, count)
		return // what else is wrong with so many is not worth a screen each
	}
	v.required(p, "containers", len(p.Containers) == 0)
	names := unique{}
	var hostPorts []ContainerPort // of the containers before
	for c := range p.everyContainer() {
		v.required(c, "name", c.Name == "")
		v.name(&c.Name, dnsLabel)
		if c.Name != "" && names.seen(c.Name) {
			v.bad(&c.Name, "the name %s is taken by an earlier container", quote(c.Name))
		}
		v.container(c, &hostPorts)
	}
	for i := range p.InitContainers {
		v.initContainer(&p.InitContainers[i])
	}
}

func (v *validator) container(c *Container, hostPorts *[]ContainerPort) {
	v.required(c, "image", c.Image == "")
	v.image(&c.Image)
	oneOf(v, &c.ImagePullPolicy, PullAlways, PullIfNotPresent, PullNever)
	if c.WorkingDir != "" && !path.IsAbs(c.WorkingDir) {
		v.bad(&c.WorkingDir, "must be an absolute path, not %s", quote(c.WorkingDir))
	}
	v.environment(c)
	v.ports(c, hostPorts)
	v.resources(&c.Resources, resourceNames)
	v.mounts(c)
	v.probes(c)
	v.lifecycle(c)
	v.restart(c)
	v.security(c)
	if !path.IsAbs(c.TerminationMessagePath) {
		v.bad(&c.TerminationMessagePath, "must be an absolute path, not %s", quote(c.TerminationMessagePath))
	}
	oneOf(v, &c.TerminationMessagePolicy, TerminationMessageFile, TerminationMessageFallbackToLogs)
}

// initContainer checks what only a container that keeps running may have.
func (v *validator) initContainer(c *Container) {
	if c.IsSidecar() {
		return
	}
	const hint = `restartPolicy = "Always" makes it a sidecar, which may have one`
	for _, probe := range []**Probe{&c.LivenessProbe, &c.ReadinessProbe, &c.StartupProbe} {
		if *probe != nil {
			v.badHint(probe, hint, "an init container cannot have a probe")
		}
	}
	if c.Lifecycle == nil {
		return
	}
	for _, hook := range []**LifecycleHandler{&c.Lifecycle.PostStart, &c.Lifecycle.PreStop} {
		if *hook != nil {
			v.badHint(hook, hint, "an init container cannot have a hook")
		}
	}
	if c.Lifecycle.StopSignal != "" {
		v.badHint(&c.Lifecycle.StopSignal, hint, "an init container cannot have a stop signal of its own")
	}
}

func (v *validator) restart(c *Container) {
	oneOf(v, &c.RestartPolicy, RestartAlways, RestartOnFailure, RestartNever)
	v.backoff(c.RestartBackoff)
	rules := c.RestartPolicyRules
	if len(rules) > maxRestartRules {
		v.bad(&c.RestartPolicyRules, "must have at most %d entries, not %d", maxRestartRules, len(rules))
	}
	if len(rules) > 0 && c.RestartPolicy == "" {
		v.bad(&c.RestartPolicyRules, "needs restartPolicy of the same container")
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
		v.required(codes, "values", len(codes.Values) == 0)
		if len(codes.Values) > maxExitCodes {
			v.bad(&codes.Values, "must have at most %d entries, not %d", maxExitCodes, len(codes.Values))
		}
		seen := unique{}
		for j := range codes.Values {
			if seen.seen(fmt.Sprint(codes.Values[j])) {
				v.bad(&codes.Values[j], "%d is listed twice", codes.Values[j])
			}
		}
	}
}

func (v *validator) environment(c *Container) {
	names := unique{}
	for i := range c.Env {
		e := &c.Env[i]
		v.required(e, "name", e.Name == "")
		v.name(&e.Name, validation.IsRelaxedEnvVarName)
		if e.Name != "" && names.seen(e.Name) {
			v.warn(&e.Name, "%s is set twice; the last one wins", quote(e.Name))
		}
		if e.ValueFrom == nil {
			continue
		}
		if e.Value != "" {
			v.bad(&e.Value, "cannot be set together with valueFrom")
		}
		v.valueFrom(e.ValueFrom)
	}
	for i := range c.EnvFrom {
		from := &c.EnvFrom[i]
		v.exactlyOne(from, "configMapRef", "secretRef")
		v.name(&from.Prefix, validation.IsRelaxedEnvVarName)
		for _, ref := range []*EnvReference{from.ConfigMapRef, from.SecretRef} {
			if ref != nil {
				v.required(ref, "name", ref.Name == "")
				v.name(&ref.Name, dnsSubdomain)
			}
		}
	}
}

func (v *validator) valueFrom(s *EnvVarSource) {
	v.exactlyOne(s, "fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef")
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
}

func (v *validator) keyRef(ref *KeyRef, inline map[string][]string) {
	v.required(ref, "name", ref.Name == "")
	v.name(&ref.Name, dnsSubdomain)
	v.required(ref, "key", ref.Key == "")
	v.name(&ref.Key, validation.IsConfigMapKey)
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
		v.bad(&ref.APIVersion, `must be "v1"`)
	}
	v.required(ref, "fieldPath", ref.FieldPath == "")
	if ref.FieldPath == "" || slices.Contains(fields, ref.FieldPath) {
		return
	}
	if m, ok := subscript(ref.FieldPath); ok {
		if told := validation.IsQualifiedName(strings.ToLower(m)); len(told) > 0 {
			v.bad(&ref.FieldPath, "%s: %s", quote(m), sentence(told[0]))
		}
		return
	}
	allowed := slices.Concat(fields, []string{"metadata.labels['KEY']", "metadata.annotations['KEY']"})
	v.badHint(&ref.FieldPath, didYouMean(ref.FieldPath, allowed), "must be %s, not %s", either(allowed), quote(ref.FieldPath))
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
	oneOf(v, &ref.Resource, allowed...)
	if ref.ContainerName == "" {
		return
	}
	var known []string
	for c := range v.pod.everyContainer() {
		known = append(known, c.Name)
	}
	if !slices.Contains(known, ref.ContainerName) {
		v.unknownName(&ref.ContainerName, "container", ref.ContainerName, known)
	}
}

func (v *validator) ports(c *Container, hostPorts *[]ContainerPort) {
	names, numbers := unique{}, unique{}
	for i := range c.Ports {
		p := &c.Ports[i]
		v.required(p, "containerPort", p.ContainerPort == 0)
		v.portNumber(&p.ContainerPort)
		v.portNumber(&p.HostPort)
		oneOf(v, &p.Protocol, ProtocolTCP, ProtocolUDP, ProtocolSCTP)
		if p.HostIP != "" {
			v.ip(&p.HostIP)
		}
		v.name(&p.Name, validation.IsValidPortName)
		if p.Name != "" && names.seen(p.Name) {
			v.bad(&p.Name, "the name %s is taken by an earlier port", quote(p.Name))
		}
		if numbers.seen(fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol)) {
			v.warn(&p.ContainerPort, "%d/%s is listed twice", p.ContainerPort, p.Protocol)
		}
		if p.HostPort == 0 {
			continue
		}
		if v.pod.HostNetwork && p.HostPort != p.ContainerPort {
			v.bad(&p.HostPort, "must be the same as containerPort with hostNetwork")
		}
		if slices.ContainsFunc(*hostPorts, p.Overlaps) {
			field := &p.HostPort
			if v.at[field] == nil {
				field = &p.ContainerPort
			}
			v.bad(field, "the port %d/%s of the host is taken by an earlier port", p.HostPort, p.Protocol)
		}
		*hostPorts = append(*hostPorts, *p)
	}
}

func (v *validator) portNumber(field *int32) {
	if *field < 0 || *field > 65535 || *field == 0 && v.at[field] != nil {
		v.bad(field, "must be a port from 1 to 65535")
	}
}
