package spec

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	maxContainers      = 64
	maxAnnotationBytes = 256 << 10
	maxNameservers     = 3
	maxSearches        = 32
	maxSearchBytes     = 2048
)

// collect finds what other fields refer to.
func (v *validator) collect() {
	p := v.pod
	v.sources = make(map[string]*Volume, len(p.Volumes))
	for i := range p.Volumes {
		v.sources[p.Volumes[i].Name] = &p.Volumes[i]
	}
	v.configMaps = make(map[string][]string, len(p.ConfigMaps))
	for _, c := range p.ConfigMaps {
		if c.EnvFile == "" || v.whole {
			v.configMaps[c.Name] = slices.Sorted(maps.Keys(c.Data))
		}
	}
	v.secrets = make(map[string][]string, len(p.Secrets))
	for _, s := range p.Secrets {
		switch {
		case s.Credential != "":
			v.secrets[s.Name] = []string{s.Credential}
		case s.EnvFile == "" || v.whole:
			v.secrets[s.Name] = slices.Sorted(maps.Keys(s.Data))
		}
	}
}

func (v *validator) metadata() {
	p := v.pod
	if v.root.child("name") == nil {
		if told := dnsLabel(p.Name); len(told) > 0 {
			v.problems = append(v.problems, Problem{
				Line: v.root.at.line, Column: v.root.at.column, Path: "name",
				Message: "the file's name " + quote(p.Name) + " cannot be the pod's: " + sentence(told[0]),
				Hint:    `write name = "..." at the top of the file`,
			})
		}
	} else {
		v.required(p, "name", p.Name == "")
		v.name(&p.Name, dnsLabel)
	}
	for key, value := range p.Labels {
		at := entry{&p.Labels, key}
		if told := validation.IsQualifiedName(key); len(told) > 0 {
			v.bad(at, "the key: %s", sentence(told[0]))
		} else if told := validation.IsValidLabelValue(value); len(told) > 0 {
			v.bad(at, "%s: %s", quote(value), sentence(told[0]))
		}
	}
	total := 0
	for key, value := range p.Annotations {
		total += len(key) + len(value)
		if told := validation.IsQualifiedName(strings.ToLower(key)); len(told) > 0 {
			v.bad(entry{&p.Annotations, key}, "the key: %s", sentence(told[0]))
		}
	}
	if total > maxAnnotationBytes {
		v.bad(&p.Annotations, "must hold at most %d bytes together, not %d", maxAnnotationBytes, total)
	}
}

func (v *validator) podPolicies() {
	p := v.pod
	oneOf(v, &p.RestartPolicy, RestartAlways, RestartOnFailure, RestartNever)
	v.positive(p.ActiveDeadlineSeconds)
	v.backoff(p.RestartBackoff)
	for i := range p.ReadinessGates {
		gate := &p.ReadinessGates[i]
		v.required(gate, "conditionType", gate.ConditionType == "")
		v.name(&gate.ConditionType, qualifiedName)
	}
	for i := range p.ImagePullSecrets {
		ref := &p.ImagePullSecrets[i]
		v.required(ref, "name", ref.Name == "")
		v.name(&ref.Name, dnsSubdomain)
	}
	v.name(&p.RuntimeClassName, dnsSubdomain)
	seen := unique{}
	for i := range p.ImageArchives {
		archive := &p.ImageArchives[i]
		switch {
		case *archive == "":
			v.bad(archive, "must not be empty")
		case seen.seen(filepath.Clean(*archive)):
			v.bad(archive, "is listed twice")
		}
	}
	for i := range p.WaitFor {
		v.waitFor(&p.WaitFor[i])
	}
}

func qualifiedName(s string) []string { return validation.IsQualifiedName(s) }

// positive checks an optional number of seconds for which zero makes no sense.
func (v *validator) positive(s *Seconds) {
	if s != nil && *s == 0 {
		v.bad(s, "must be greater than zero")
	}
}

func (v *validator) backoff(b *Backoff) {
	if b == nil {
		return
	}
	for _, s := range []*Seconds{&b.InitialSeconds, &b.MaxSeconds, &b.ResetAfterSeconds} {
		v.positive(s)
	}
	if b.Factor < 1 {
		v.bad(&b.Factor, "must be 1 or more")
	}
}

func (v *validator) waitFor(field *string) {
	kinds := []string{"pod", "path", "mount", "dns", "network-online", "time-synced"}
	kind, object, hasObject := strings.Cut(*field, ":")
	switch kind {
	case "network-online", "time-synced":
		if hasObject {
			v.bad(field, "%s takes no object", quote(kind))
		}
	case "pod":
		name, state, _ := strings.Cut(object, ":")
		if told := dnsLabel(name); len(told) > 0 || state != "ready" && state != "succeeded" {
			v.bad(field, `must be "pod:NAME:ready" or "pod:NAME:succeeded", not %s`, quote(*field))
		} else if name == v.pod.Name {
			v.bad(field, "the pod would wait for itself")
		}
	case "path", "mount":
		if !filepath.IsAbs(object) {
			v.bad(field, `must be "%s:" and an absolute path, not %s`, kind, quote(*field))
		}
	case "dns":
		if len(dnsSubdomain(object)) > 0 {
			v.bad(field, `must be "dns:" and a host name, not %s`, quote(*field))
		}
	default:
		v.badHint(field, didYouMean(kind, kinds), "must begin with %s, not %s", either(kinds), quote(kind))
	}
}

func (v *validator) hostAndDNS() {
	p := v.pod
	v.name(&p.Hostname, dnsLabel)
	v.name(&p.Subdomain, dnsLabel)
	if p.HostPID && p.ShareProcessNamespace {
		v.bad(&p.ShareProcessNamespace, "cannot be true together with hostPID")
	}
	if p.HostUsers != nil && !*p.HostUsers && (p.HostNetwork || p.HostPID || p.HostIPC) {
		v.bad(p.HostUsers, "cannot be false together with hostNetwork, hostPID or hostIPC")
	}
	for i := range p.HostAliases {
		alias := &p.HostAliases[i]
		v.required(alias, "ip", alias.IP == "")
		v.required(alias, "hostnames", len(alias.Hostnames) == 0)
		v.ip(&alias.IP)
		for j := range alias.Hostnames {
			v.host(&alias.Hostnames[j])
		}
	}
	if p.DNSPolicy != DNSDefault && p.DNSPolicy != DNSNone {
		allowed := []string{"Default", "None", "ClusterFirst"}
		v.badHint(&p.DNSPolicy, didYouMean(string(p.DNSPolicy), allowed), "must be %s, not %s", either(allowed), quote(string(p.DNSPolicy)))
	}
	if p.DNSPolicy == DNSNone && (p.DNSConfig == nil || len(p.DNSConfig.Nameservers) == 0) {
		v.bad(&p.DNSPolicy, "needs dnsConfig.nameservers")
	}
	if p.DNSConfig != nil {
		v.dnsConfig(p.DNSConfig)
	}
}

func (v *validator) host(field *string) {
	if *field == "" {
		v.bad(field, "must not be empty")
	}
	v.name(field, dnsSubdomain)
}

func (v *validator) dnsConfig(c *DNSConfig) {
	if len(c.Nameservers) > maxNameservers {
		v.bad(&c.Nameservers, "must have at most %d entries, not %d", maxNameservers, len(c.Nameservers))
	}
	for i := range c.Nameservers {
		v.ip(&c.Nameservers[i])
	}
	if length := len(strings.Join(c.Searches, " ")); len(c.Searches) > maxSearches || length > maxSearchBytes {
		v.bad(&c.Searches, "must have at most %d entries and %d characters", maxSearches, maxSearchBytes)
	}
	for i := range c.Searches {
		search := strings.TrimSuffix(c.Searches[i], ".")
		// "." alone is the root.
		if told := validation.IsDNS1123SubdomainWithUnderscore(search); len(told) > 0 && c.Searches[i] != "." {
			v.bad(&c.Searches[i], "%s: %s", quote(c.Searches[i]), sentence(told[0]))
		}
	}
	for i := range c.Options {
		option := &c.Options[i]
		v.required(option, "name", option.Name == "")
		if strings.ContainsAny(option.Name, " \t\r\n:") {
			v.bad(&option.Name, "must not contain spaces or colons")
		}
		if option.Value != nil && strings.ContainsAny(*option.Value, " \t\r\n") {
			v.bad(option.Value, "must not contain spaces")
		}
	}
}

func (v *validator) inlineObjects() {
	names := unique{}
	for i := range v.pod.ConfigMaps {
		c := &v.pod.ConfigMaps[i]
		v.inlineObject(c, &c.Name, names)
		dataKeys(v, &c.Data)
	}
	names = unique{}
	for i := range v.pod.Secrets {
		s := &v.pod.Secrets[i]
		v.inlineObject(s, &s.Name, names)
		dataKeys(v, &s.Data)
		if s.Credential != "" && (len(s.Data) > 0 || s.EnvFile != "") {
			v.bad(&s.Credential, "cannot be set together with data or envFile")
		}
		// A credential is a file of $CREDENTIALS_DIRECTORY.
		v.name(&s.Credential, validation.IsConfigMapKey)
	}
}

func (v *validator) inlineObject(table any, name *string, names unique) {
	v.required(table, "name", *name == "")
	v.name(name, dnsSubdomain)
	if *name != "" && names.seen(*name) {
		v.bad(name, "the name %s is taken by an earlier one", quote(*name))
	}
}

func dataKeys[M ~map[string]V, V any](v *validator, data *M) {
	for key := range *data {
		if told := validation.IsConfigMapKey(key); len(told) > 0 {
			v.bad(entry{data, key}, "the key: %s", sentence(told[0]))
		}
	}
}
