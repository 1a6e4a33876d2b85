package spec

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/distribution/reference"
)

// kubeletBackoff is the restart back-off of the kubelet (MaxContainerBackOff).
var kubeletBackoff = Backoff{InitialSeconds: 10, MaxSeconds: 300, Factor: 2, ResetAfterSeconds: 600}

// IsSidecar reports whether an init container is a sidecar: it keeps running
// beside the app containers (KEP-753). Call it for init containers only.
func (c *Container) IsSidecar() bool { return c.RestartPolicy == RestartAlways }

// BackoffOf returns the restart back-off of a container of this pod. Each number
// is that of the container, else of the pod, else of the kubelet. InitialSeconds
// is at most MaxSeconds.
func (p *Pod) BackoffOf(c *Container) Backoff {
	b := kubeletBackoff
	for _, over := range []*Backoff{p.RestartBackoff, c.RestartBackoff} {
		if over == nil {
			continue
		}
		if over.InitialSeconds != 0 {
			b.InitialSeconds = over.InitialSeconds
		}
		if over.MaxSeconds != 0 {
			b.MaxSeconds = over.MaxSeconds
		}
		if over.Factor != 0 {
			b.Factor = over.Factor
		}
		if over.ResetAfterSeconds != 0 {
			b.ResetAfterSeconds = over.ResetAfterSeconds
		}
	}
	b.InitialSeconds = min(b.InitialSeconds, b.MaxSeconds)
	return b
}

// DefaultPullPolicy returns the pull policy of a container or a volume that does
// not set one: that of Kubernetes, except for an image from an archive
// (deviation 24).
func DefaultPullPolicy(image string, archived bool) PullPolicy {
	named, err := reference.ParseDockerRef(image)
	tagged, hasTag := named.(reference.Tagged)
	if err == nil && hasTag && tagged.Tag() == "latest" && !archived {
		return PullAlways
	}
	return PullIfNotPresent
}

// defaulter sets the defaults before validation, as the Kubernetes API server
// does. A zero counts as unset where it does in Kubernetes.
type defaulter struct {
	pod  *Pod
	root *node
}

func (d *defaulter) run(fileName string) {
	p := d.pod
	if d.root.child("name") == nil {
		p.Name = fileName
	}
	if d.root.child("terminationGracePeriodSeconds") == nil {
		p.TerminationGracePeriodSeconds = defaultGraceSeconds
	}
	setDefault(&p.RestartPolicy, RestartAlways)
	d.job()
	if slices.Contains(clusterDNS, p.DNSPolicy) {
		p.DNSPolicy = DNSDefault
	}
	for c := range p.EveryContainer() {
		d.container(c)
	}
	if p.Update != nil {
		d.update()
	}
	p.defaultPodRequests()
	for i := range p.Volumes {
		p.Volumes[i].setDefaults()
	}
}

// clusterDNS are the policies that become Default, since there is no cluster DNS.
var clusterDNS = []DNSPolicy{"", "ClusterFirst", "ClusterFirstWithHostNet"}

func (d *defaulter) container(c *Container) {
	setDefault(&c.TerminationMessagePath, defaultTerminationMessagePath)
	setDefault(&c.TerminationMessagePolicy, TerminationMessageFile)
	c.Resources.setDefaults()
	if s := c.SecurityContext; s != nil && s.Capabilities != nil {
		for _, list := range [][]string{s.Capabilities.Add, s.Capabilities.Drop} {
			for i := range list {
				list[i] = strings.ToUpper(list[i]) // as containerd's CRI does
			}
		}
	}
	for i := range c.Ports {
		port := &c.Ports[i]
		setDefault(&port.Protocol, ProtocolTCP)
		if d.pod.HostNetwork && port.HostPort == 0 {
			port.HostPort = port.ContainerPort
		}
	}
	for _, probe := range []*Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe == nil {
			continue
		}
		setDefault(&probe.PeriodSeconds, 10)
		setDefault(&probe.TimeoutSeconds, 1)
		setDefault(&probe.SuccessThreshold, 1)
		setDefault(&probe.FailureThreshold, 3)
		probe.HTTPGet.setDefaults()
	}
	if c.Lifecycle != nil {
		for _, hook := range []*LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if hook != nil {
				hook.HTTPGet.setDefaults()
			}
		}
	}
}

func (h *HTTPGetAction) setDefaults() {
	if h != nil {
		setDefault(&h.Path, "/")
		setDefault(&h.Scheme, "HTTP")
	}
}

// setDefaults sets each missing request to the limit.
func (r *Resources) setDefaults() {
	if len(r.Limits) == 0 {
		return
	}
	requests := maps.Clone(r.Limits)
	maps.Copy(requests, r.Requests)
	r.Requests = requests
}

func (v *Volume) setDefaults() {
	if *v == (Volume{Name: v.Name}) {
		v.EmptyDir = &EmptyDirVolume{}
	}
	if v.ConfigMap != nil {
		setMode(&v.ConfigMap.DefaultMode)
	}
	if v.Secret != nil {
		setMode(&v.Secret.DefaultMode)
	}
	if v.Projected != nil {
		setMode(&v.Projected.DefaultMode)
	}
	if v.DownwardAPI != nil {
		setMode(&v.DownwardAPI.DefaultMode)
	}
}

func setMode(mode **int32) {
	if *mode == nil {
		m := defaultConfigFileMode
		*mode = &m
	}
}

func setDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// resolve makes relative paths absolute. The hash contains the absolute paths:
// the same text in another directory has another hash.
func (d *decoder) resolve(p *Pod, edits *[]edit) {
	absolute := func(field *string) {
		n := d.at[field]
		if n == nil || *field == "" || filepath.IsAbs(*field) {
			return
		}
		*field = filepath.Join(p.Dir, *field)
		n.canonical = strconv.Quote(*field)
		if edits != nil {
			for _, written := range append([]*node{n}, n.twins...) {
				*edits = append(*edits, edit{node: written, value: *field})
			}
		}
	}
	for i := range p.ImageArchives {
		absolute(&p.ImageArchives[i])
	}
	for i := range p.Volumes {
		if h := p.Volumes[i].HostPath; h != nil {
			absolute(&h.Path)
		}
	}
	for i := range p.ConfigMaps {
		absolute(&p.ConfigMaps[i].EnvFile)
	}
	for i := range p.Secrets {
		absolute(&p.Secrets[i].EnvFile)
		absolute(&p.Secrets[i].CredentialFile)
	}
}

// ReadFiles returns the absolute paths of the files of this host that define the
// pod besides its own: image archives, env files and encrypted credentials. A
// pod whose file is accepted again after one of them has changed can have another
// hash.
func (p *Pod) ReadFiles() []string {
	files := slices.Clone(p.ImageArchives)
	for i := range p.ConfigMaps {
		files = append(files, p.ConfigMaps[i].EnvFile)
	}
	for i := range p.Secrets {
		files = append(files, p.Secrets[i].EnvFile, p.Secrets[i].CredentialFile)
	}
	return slices.DeleteFunc(files, func(path string) bool { return path == "" })
}
