package spec

import (
	"errors"
	"io/fs"
	"maps"
	"os"
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

// collect indexes the objects that other fields refer to.
func (v *validator) collect() {
	p := v.pod
	v.sources = make(map[string]*Volume, len(p.Volumes))
	for i := range p.Volumes {
		v.sources[p.Volumes[i].Name] = &p.Volumes[i]
	}
	v.configMaps = make(map[string][]string, len(p.ConfigMaps))
	for _, c := range p.ConfigMaps {
		if c.EnvFile == "" || v.hasEnvFiles {
			v.configMaps[c.Name] = slices.Sorted(maps.Keys(c.Data))
		}
	}
	v.secrets = make(map[string][]string, len(p.Secrets))
	for i, s := range p.Secrets {
		switch n := v.at[&v.pod.Secrets[i].Data]; {
		case n != nil && n.failed:
		case s.CredentialName() != "":
			v.secrets[s.Name] = []string{s.CredentialName()}
		case s.EnvFile == "" || v.hasEnvFiles:
			v.secrets[s.Name] = slices.Sorted(maps.Keys(s.Data))
		}
	}
}

func (v *validator) metadata() {
	p := v.pod
	if v.root.child("name") == nil {
		v.defaultName()
	} else {
		v.requiredName(p, "name", &p.Name, dnsSubdomain)
		v.reserved(&p.Name)
	}
	v.profileAnnotations()
	v.logAnnotations()
	v.aliases()
	for key, value := range p.Labels {
		at := entry{&p.Labels, key}
		if reasons := validation.IsQualifiedName(key); len(reasons) > 0 {
			v.invalid(at, key, withoutExample(reasons[0]))
		} else if reasons := validation.IsValidLabelValue(value); len(reasons) > 0 {
			v.invalid(at, value, withoutExample(reasons[0]))
		}
	}
	total := 0
	for key, value := range p.Annotations {
		total += len(key) + len(value)
		if reasons := validation.IsQualifiedName(strings.ToLower(key)); len(reasons) > 0 {
			v.invalid(entry{&p.Annotations, key}, key, withoutExample(reasons[0]))
		}
	}
	if total > maxAnnotationBytes {
		v.bad(&p.Annotations, "Too long: may not be more than %d bytes in total", maxAnnotationBytes)
	}
}

// defaultName checks the name that the pod has from its file.
func (v *validator) defaultName() {
	reasons := dnsSubdomain(v.pod.Name)
	if isReserved(v.pod.Name) {
		reasons = []string{reservedName}
	}
	if len(reasons) == 0 {
		return
	}
	p := Problem{Line: v.root.at.line, Column: v.root.at.column, Path: "name", Hint: "set name at the top of the file"}
	if v.format != formatTOML {
		p.Path, p.Hint = "metadata.name", "set metadata.name"
	}
	if p.Message = "Required value"; v.pod.Name != "" {
		p.Message = "Invalid value: " + quote(v.pod.Name) + " (from the file name): " + withoutExample(reasons[0])
	}
	v.problems = append(v.problems, p)
}

func (v *validator) operatingSystem() {
	if v.pod.OS == nil {
		return
	}
	const windows = "windows"
	name := &v.pod.OS.Name
	v.required(v.pod.OS, "name", *name == "")
	if *name == windows {
		v.bad(name, "not supported: containers run on Linux")
	} else {
		oneOf(v, name, Linux, windows)
	}
}

// archives reports image archives that do not exist.
func (v *validator) archives() {
	for i := range v.pod.ImageArchives {
		archive := &v.pod.ImageArchives[i]
		if *archive == "" {
			continue
		}
		f, err := OpenFile(*archive)
		if err == nil {
			_ = f.Close()
			continue
		}
		info, statErr := os.Stat(*archive)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			v.bad(archive, "Not found: file %s", quote(*archive))
		case statErr == nil && info.IsDir():
			v.bad(archive, "must be a file, found directory %s", quote(*archive))
		default:
			v.bad(archive, "%s", printable(err.Error()))
		}
	}
}

func (v *validator) podFields() {
	p := v.pod
	v.restartPolicy(&p.RestartPolicy)
	v.positive(p.ActiveDeadlineSeconds)
	v.backoff(p.RestartBackoff)
	for i := range p.ReadinessGates {
		gate := &p.ReadinessGates[i]
		v.requiredName(gate, "conditionType", &gate.ConditionType, qualifiedName)
	}
	for i := range p.ImagePullSecrets {
		ref := &p.ImagePullSecrets[i]
		v.requiredName(ref, "name", &ref.Name, dnsSubdomain)
	}
	v.serviceAccount()
	v.operatingSystem()
	v.name(&p.RuntimeClassName, dnsSubdomain)
	seen := unique{}
	for i := range p.ImageArchives {
		archive := &p.ImageArchives[i]
		switch {
		case *archive == "":
			v.bad(archive, "must not be empty")
		case seen.seen(filepath.Clean(*archive)):
			v.duplicate(archive, *archive)
		}
	}
	v.waitFor()
	v.update(p.Update)
	v.systemd(p.Systemd)
	v.job()
	v.schedule(p.Schedule)
	v.unhealthy()
	v.processLimits()
}

func qualifiedName(s string) []string { return validation.IsQualifiedName(s) }

// positive checks an optional number of seconds that must not be 0.
func (v *validator) positive(s *Seconds) {
	if s != nil && *s == 0 {
		v.bad(s, "must be greater than 0")
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
		v.bad(&b.Factor, "must be greater than or equal to 1")
	}
}

func (v *validator) hostAndDNS() {
	p := v.pod
	v.name(&p.Hostname, dnsLabel)
	v.reserved(&p.Hostname)
	v.unpublished()
	v.name(&p.Subdomain, dnsLabel)
	v.kernelName()
	if p.HostPID && p.ShareProcessNamespace {
		v.bad(&p.ShareProcessNamespace, "Forbidden: shareProcessNamespace and hostPID cannot both be enabled")
	}
	if p.KeepID != nil && (*p.KeepID < 1 || *p.KeepID > MaxKeepID) {
		v.bad(p.KeepID, "%s", inRange(1, MaxKeepID))
	}
	if p.KeepID != nil && p.HostUsers != nil && !*p.HostUsers {
		v.bad(p.KeepID, "Forbidden: the pod has the IDs that hostUsers = false gives it")
	}
	if p.HostUsers != nil && !*p.HostUsers && (p.HostNetwork || p.HostPID || p.HostIPC) {
		v.bad(p.HostUsers, "Forbidden: hostNetwork, hostPID and hostIPC cannot be used when hostUsers is false")
	}
	for i := range p.HostAliases {
		alias := &p.HostAliases[i]
		v.required(alias, "ip", alias.IP == "")
		v.ip(&alias.IP)
		for j := range alias.Hostnames {
			v.host(&alias.Hostnames[j])
		}
	}
	if p.DNSPolicy != DNSDefault && p.DNSPolicy != DNSNone {
		allowed := []string{"Default", "None", "ClusterFirst"}
		v.unsupportedValue(&p.DNSPolicy, string(p.DNSPolicy), allowed)
	}
	if p.DNSPolicy == DNSNone && (p.DNSConfig == nil || len(p.DNSConfig.Nameservers) == 0) {
		v.bad(&p.DNSPolicy, "must provide at least one DNS nameserver in dnsConfig.nameservers when dnsPolicy is None")
	}
	if p.DNSConfig != nil {
		v.dnsConfig(p.DNSConfig)
	}
}

// MaxHostname is the maximum number of characters of a host name in the kernel (__NEW_UTS_LEN).
const MaxHostname = 64

// kernelName checks the fields that choose the host name in the pod only.
func (v *validator) kernelName() {
	p := v.pod
	v.host(&p.HostnameOverride)
	if len(p.HostnameOverride) > MaxHostname {
		v.bad(&p.HostnameOverride, "Too long: may not be more than %d bytes", MaxHostname)
	}
	switch {
	case p.HostnameOverride != "" && p.HostNetwork:
		v.bad(&p.HostnameOverride, "Forbidden: may not be set when hostNetwork is true")
	case p.HostnameOverride != "" && p.SetHostnameAsFQDN:
		v.bad(&p.HostnameOverride, "Forbidden: may not be set when setHostnameAsFQDN is true")
	case !p.SetHostnameAsFQDN:
	case p.HostNetwork:
		v.warn(&p.SetHostnameAsFQDN, "has no effect: a pod with hostNetwork has the host name of the host")
	case p.Subdomain == "":
		v.warnHint(&p.SetHostnameAsFQDN, "set subdomain", "has no effect: a pod without subdomain has no full name")
	default:
		if name := p.FullName(); len(name) > MaxHostname {
			v.warnHint(&p.SetHostnameAsFQDN, "choose a shorter hostname or subdomain",
				"the pod cannot start: the full name %s has %d characters, at most %d are possible", quote(name), len(name), MaxHostname)
		}
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
		v.bad(&c.Nameservers, "must not have more than %d nameservers", maxNameservers)
	}
	for i := range c.Nameservers {
		v.ip(&c.Nameservers[i])
	}
	if length := len(strings.Join(c.Searches, " ")); len(c.Searches) > maxSearches || length > maxSearchBytes {
		v.bad(&c.Searches, "must not have more than %d search paths or %d characters (including spaces)", maxSearches, maxSearchBytes)
	}
	for i := range c.Searches {
		search := strings.TrimSuffix(c.Searches[i], ".")
		// "." is the root of the DNS.
		if reasons := validation.IsDNS1123SubdomainWithUnderscore(search); len(reasons) > 0 && c.Searches[i] != "." {
			v.invalid(&c.Searches[i], c.Searches[i], withoutExample(reasons[0]))
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
		for _, field := range []*string{&s.Credential, &s.CredentialFile} {
			if *field != "" && (len(s.Data) > 0 || s.EnvFile != "") {
				v.bad(field, "Forbidden: may not be specified when data or envFile is set")
			}
		}
		// A credential is a file in $CREDENTIALS_DIRECTORY, see systemd.exec(5).
		v.name(&s.Credential, validation.IsConfigMapKey)
		if reasons := validation.IsConfigMapKey(s.CredentialName()); s.Credential == "" && s.CredentialFile != "" && len(reasons) > 0 {
			v.badHint(&s.CredentialFile, "set credential", "Invalid value: %s: its base name is the key: %s",
				quote(s.CredentialFile), withoutExample(reasons[0]))
		}
	}
}

func (v *validator) inlineObject(table any, name *string, names unique) {
	v.requiredName(table, "name", name, dnsSubdomain)
	if *name != "" && names.seen(*name) {
		v.duplicate(name, *name)
	}
}

func dataKeys[M ~map[string]V, V any](v *validator, data *M) {
	for key := range *data {
		if reasons := validation.IsConfigMapKey(key); len(reasons) > 0 {
			v.invalid(entry{data, key}, key, withoutExample(reasons[0]))
		}
	}
}
