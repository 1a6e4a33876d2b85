package converter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/spec"
)

// converter converts one project.
type converter struct {
	q        *compose.Request
	p        *types.Project
	disabled types.Services // of profiles that are not selected
	// environment has the variables for interpolation; nil: they could not be read.
	environment types.Mapping
	sources     []source
	problems    spec.Problems
	// leaders has the service in whose pod a service is.
	leaders map[string]string
	// pods are those of the leaders.
	pods map[string]*pod
}

// pod is a pod with what its services need.
type pod struct {
	spec.Pod
	leader   string
	services []string // in the order of their dependencies
	secrets  []secret
	replicas int
	// published are the ports by container that have a range of host ports, from which each replica takes one.
	ranges  map[string][]int
	waits   map[string]string // pod to state
	aliases []string          // other names for other pods
	// objects are the sources of inline secrets and config maps, by kind and name.
	objects map[string]map[string]string
}

// secret is an inline secret. The type of package spec hides its values in JSON.
type secret struct {
	Name string            `json:"name"`
	Data map[string]string `json:"data"`
}

// Convert converts a project. It reads the files that the project names.
func Convert(ctx context.Context, q *compose.Request) *compose.Result {
	c := &converter{q: q, leaders: map[string]string{}, pods: map[string]*pod{}}
	p, err := c.load(ctx)
	if err != nil {
		c.fail(err)
		return &compose.Result{Problems: c.problems, Files: c.readFiles()}
	}
	c.p = p
	r := &compose.Result{Project: p.Name, Files: c.readFiles()}
	c.keys()
	c.networks()
	pods := c.allPods()
	if len(pods) == 0 && len(c.problems.Errors()) == 0 {
		c.refuse([]string{"services"}, "the project has no services", profilesHint(c.disabled))
	}
	r.Claims, r.Named = c.ownClaims()
	for _, w := range pods {
		r.Pods = append(r.Pods, w.names()...)
	}
	r.Triggers = c.triggers(pods)
	if r.Problems = c.problems; len(r.Problems.Errors()) > 0 {
		return r
	}
	var list struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []any  `json:"items"`
	}
	list.APIVersion, list.Kind = "v1", "List"
	for _, w := range pods {
		for _, instance := range w.instances() {
			list.Items = append(list.Items, instance.manifest())
		}
	}
	if r.Manifest, err = json.Marshal(list); err != nil {
		c.fail(err)
		r.Problems = c.problems
	}
	c.check(r, pods)
	return r
}

// profilesHint tells which profiles have services.
func profilesHint(disabled types.Services) string {
	profiles := map[string]bool{}
	for _, s := range disabled {
		for _, profile := range s.Profiles {
			profiles[profile] = true
		}
	}
	if len(profiles) == 0 {
		return ""
	}
	return "select a profile with --profile: " + strings.Join(sortedKeys(profiles), ", ")
}

var ofItem = lazyregexp.New(`^items\[\d+\](\.spec|\.metadata)?\.?`)

// check adds the problems that pods have as pod files. They are at the lines of their services.
func (c *converter) check(r *compose.Result, pods []*pod) {
	parts, problems := spec.Options{AllowLoss: c.q.AllowLoss}.ParseParts("compose.json", r.Manifest)
	add := func(path []string, p *spec.Problem) {
		field := ofItem.ReplaceAllString(p.Path, "")
		c.report(path, strings.TrimPrefix(field+": "+p.Message, ": "), p.Hint, p.Warning)
	}
	found := 0
	for i := range parts {
		path := []string{"services"}
		for _, w := range pods {
			if name := parts[i].Name; name == w.Name || strings.HasPrefix(name, w.Name+"-") && w.replicas > 1 {
				path = []string{"services", w.leader}
			}
		}
		for j := range parts[i].Problems {
			found++
			add(path, &parts[i].Problems[j])
		}
	}
	if found == 0 {
		for i := range problems {
			add([]string{"services"}, &problems[i])
		}
	}
	if r.Problems = c.problems; len(r.Problems.Errors()) > 0 {
		r.Manifest = nil
	}
}

// allPods converts all services. Pods that others wait for come first.
func (c *converter) allPods() []*pod {
	for _, name := range sortedKeys(c.p.Services) {
		c.leaders[name] = c.leader(name)
	}
	var order []*pod
	state := map[string]int{} // 1: being visited, 2: done
	var visit func(leader string)
	visit = func(leader string) {
		switch state[leader] {
		case 1:
			c.refuse([]string{"services", leader}, "pods wait for each other", "remove one of the dependencies from depends_on")
			return
		case 2:
			return
		}
		state[leader] = 1
		for _, s := range sortedKeys(c.p.Services) {
			if c.leaders[s] != leader {
				continue
			}
			for _, other := range sortedKeys(c.p.Services[s].DependsOn) {
				if l, ok := c.leaders[other]; ok && l != leader {
					visit(l)
				}
			}
		}
		state[leader] = 2
		if w := c.newPod(leader); w != nil {
			order = append(order, w)
		}
	}
	for _, name := range sortedKeys(c.p.Services) {
		visit(c.leaders[name])
	}
	names := map[string]string{}
	for _, w := range order {
		if other := names[w.Name]; other != "" {
			c.refuse([]string{"services", w.leader}, fmt.Sprintf("services %s and %s have the same pod name %s", other, w.leader, w.Name),
				"rename one of them")
		}
		names[w.Name] = w.leader
	}
	c.aliases(order)
	for _, w := range order {
		c.waitFor(w)
	}
	return order
}

// leader returns the service in whose network a service is.
func (c *converter) leader(name string) string {
	at := name
	for range len(c.p.Services) {
		other, shared := strings.CutPrefix(c.p.Services[at].NetworkMode, types.ServicePrefix)
		if !shared {
			return at
		}
		if _, ok := c.p.Services[other]; !ok {
			c.refuse([]string{"services", at, "network_mode"}, "there is no service "+quote(other), "")
			return at
		}
		at = other
	}
	c.refuse([]string{"services", name, "network_mode"}, "services share the network of each other", "")
	return name
}

// newPod converts the services of a pod; nil: it has no replica.
func (c *converter) newPod(leader string) *pod {
	s := c.p.Services[leader]
	w := &pod{
		leader: leader, replicas: s.GetScale(), ranges: map[string][]int{}, waits: map[string]string{},
		objects: map[string]map[string]string{},
	}
	c.pods[leader] = w
	w.Name = compose.DNSName(leader)
	if w.Name != leader {
		c.warn([]string{"services", leader}, "the name of the pod is "+w.Name)
	}
	w.Labels = map[string]string{spec.ProjectLabel: c.p.Name}
	w.Annotations = map[string]string{}
	w.services = c.members(leader)
	for _, name := range w.services {
		c.service(w, name)
	}
	if w.replicas == 0 {
		c.warn([]string{"services", leader}, "it has no replicas, so that it is not started")
		return nil
	}
	return w
}

// members returns the services of a pod, those that others depend on first.
func (c *converter) members(leader string) []string {
	var list []string
	var add func(name string)
	add = func(name string) {
		if c.leaders[name] != leader || slices.Contains(list, name) {
			return
		}
		for _, other := range sortedKeys(c.p.Services[name].DependsOn) {
			if c.inOrder(name, other) {
				add(other)
			}
		}
		list = append(list, name)
	}
	add(leader)
	for _, name := range sortedKeys(c.p.Services) {
		add(name)
	}
	return list
}

// inOrder reports whether a service of a pod starts after another one. The dependency that the library adds to a service in the network of
// another one is no order: the containers of a pod share it anyway.
func (c *converter) inOrder(name, other string) bool {
	d, ok := c.p.Services[name].DependsOn[other]
	if !ok || c.leaders[name] != c.leaders[other] || name == other {
		return false
	}
	shared := strings.TrimPrefix(c.p.Services[name].NetworkMode, types.ServicePrefix)
	return d.Condition != types.ServiceConditionStarted || !d.Restart || shared != other
}

// waitFor sets what a pod waits for.
func (c *converter) waitFor(w *pod) {
	for _, name := range w.services {
		for _, other := range sortedKeys(c.p.Services[name].DependsOn) {
			d := c.p.Services[name].DependsOn[other]
			path := []string{"services", name, "depends_on", other}
			to := c.pods[c.leaders[other]]
			if to == nil || to == w || to.replicas == 0 {
				if to == nil && d.Required {
					c.refuse(path, "there is no service "+quote(other), "")
				}
				continue
			}
			state := spec.WaitReady
			switch d.Condition {
			case types.ServiceConditionCompletedSuccessfully:
				state = spec.WaitSucceeded
				if restart := c.restartPolicy(other); restart == spec.RestartAlways {
					c.refuse(path, fmt.Sprintf("service %s is restarted always, so that it does not complete", quote(other)),
						`set its restart to "no" or "on-failure"`)
				}
			case types.ServiceConditionHealthy:
				if !c.hasHealthcheck(other) {
					c.warn(path, fmt.Sprintf(
						"service %s is ready when it runs: it has no healthcheck here, and that of the image is not used", quote(other)))
				}
			default:
				if c.completes(other) {
					c.drop(path, "the service is not waited for, because it completes")
					continue
				}
				if c.hasHealthcheck(other) {
					c.warn(path, fmt.Sprintf("the pod also waits until service %s is healthy", quote(other)))
				}
			}
			for _, instance := range to.names() {
				if w.waits[instance] != spec.WaitSucceeded {
					w.waits[instance] = state
				}
			}
		}
	}
	for _, other := range sortedKeys(w.waits) {
		w.WaitFor = append(w.WaitFor, spec.WaitPod+":"+other+":"+w.waits[other])
	}
}

// completes reports whether a service waits for the completion of another one.
func (c *converter) completes(name string) bool {
	for _, s := range c.p.Services {
		if s.DependsOn[name].Condition == types.ServiceConditionCompletedSuccessfully {
			return true
		}
	}
	return false
}

// aliases gives pods the other names by which services reach them.
func (c *converter) aliases(pods []*pod) {
	names := map[string]string{} // services by the names of their pods
	for _, w := range pods {
		names[w.Name], w.aliases = w.leader, w.Aliases()
	}
	add := func(service, alias string, path ...string) {
		leader, ok := c.leaders[service]
		w := c.pods[leader]
		if !ok || w == nil || alias == w.Name || alias == w.Hostname || slices.Contains(w.aliases, alias) {
			return
		}
		other := names[strings.ToLower(alias)]
		switch {
		case other != "" && other != leader:
			c.lose(path, fmt.Sprintf("other pods do not reach it as %s, which is the name of another service", quote(alias)),
				"rename the alias")
		case !spec.IsAlias(alias):
			c.lose(path, fmt.Sprintf("other pods do not reach it as %s: a name has at most 63 letters, digits, - and _", quote(alias)),
				"use the name "+quote(cmp.Or(w.Hostname, w.Name)))
		default:
			w.aliases = append(w.aliases, alias)
		}
	}
	for _, w := range pods {
		if len(c.p.Services) > 1 {
			add(w.leader, w.leader, "services", w.leader)
		}
	}
	for _, name := range sortedKeys(c.p.Services) {
		s := c.p.Services[name]
		for _, link := range s.Links {
			if service, alias, ok := strings.Cut(link, ":"); ok {
				add(service, alias, "services", name, "links")
			}
		}
		for _, network := range sortedKeys(s.Networks) {
			if n := s.Networks[network]; n != nil {
				for _, alias := range n.Aliases {
					add(name, alias, "services", name, "networks", network, "aliases")
				}
			}
		}
	}
	for _, w := range pods {
		container := c.p.Services[w.leader].ContainerName
		switch {
		case container == "":
		case w.Hostname == "" && isLabel(container) && container != w.Name && !w.HostNetwork:
			w.Hostname = container
		case !spec.IsAlias(container):
			c.warn([]string{"services", w.leader, "container_name"}, "other pods do not reach it as "+quote(container))
		default:
			add(w.leader, container, "services", w.leader, "container_name")
		}
		if len(w.aliases) > 0 {
			w.Annotations[spec.AliasesAnnotation] = strings.Join(w.aliases, ",")
		}
	}
}

// networks warns if services are separated by networks.
func (c *converter) networks() {
	names := sortedKeys(c.p.Services)
	for i, a := range names {
		for _, b := range names[i+1:] {
			x, y := c.p.Services[a].Networks, c.p.Services[b].Networks
			if len(x) == 0 || len(y) == 0 {
				continue
			}
			if !slices.ContainsFunc(sortedKeys(x), func(n string) bool { _, ok := y[n]; return ok }) {
				c.warn([]string{"networks"}, fmt.Sprintf("pods of different networks reach each other, such as %s and %s", a, b))
				return
			}
		}
	}
}

// names returns the names of the instances of a pod.
func (w *pod) names() []string {
	if w.replicas <= 1 {
		return []string{w.Name}
	}
	var names []string
	for i := range w.replicas {
		names = append(names, fmt.Sprintf("%s-%d", w.Name, i))
	}
	return names
}

// instances returns the replicas of a pod. The first has the name of the service as its host name.
func (w *pod) instances() []*pod {
	if w.replicas == 1 {
		return []*pod{w}
	}
	var list []*pod
	for i, name := range w.names() {
		instance := *w
		instance.Name = name
		if i == 0 && w.Hostname == "" {
			instance.Hostname = w.Name
		} else if i > 0 {
			instance.Hostname = ""
			instance.Annotations = maps.Clone(w.Annotations)
			delete(instance.Annotations, spec.AliasesAnnotation)
		}
		instance.CloneContainers()
		for c := range instance.OwnContainers() {
			c.Ports = slices.Clone(c.Ports)
			for _, k := range w.ranges[c.Name] {
				c.Ports[k].HostPort += int32(i)
			}
		}
		list = append(list, &instance)
	}
	return list
}

// manifest returns the pod in the form of the Pod API.
func (w *pod) manifest() any {
	type metadata struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	type fields struct {
		Grace spec.Seconds `json:"terminationGracePeriodSeconds"`
		spec.Pod
		// They hide fields of the pod, which are in metadata or cannot be written.
		Name        *string           `json:"name,omitempty"`
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
		Secrets     []secret          `json:"secrets,omitempty"`
	}
	return struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Metadata   metadata `json:"metadata"`
		Spec       fields   `json:"spec"`
	}{
		"v1", "Pod",
		metadata{w.Name, w.Labels, w.Annotations},
		fields{Grace: w.TerminationGracePeriodSeconds, Pod: w.Pod, Secrets: w.secrets},
	}
}

func isLabel(name string) bool { return name != "" && compose.DNSName(name) == name }

func quote(s string) string { return fmt.Sprintf("%q", compose.OneLine(s)) }

// ownClaims returns the names of the persistent volumes of the project that pods mount, and those of them that the files name.
func (c *converter) ownClaims() (all, named []string) {
	claims := map[string]bool{}
	for _, w := range c.pods {
		for i := range w.Volumes {
			if claim := w.Volumes[i].PersistentVolumeClaim; claim != nil {
				claims[claim.ClaimName] = true
			}
		}
	}
	explicit := map[string]bool{}
	for key := range c.p.Volumes {
		v := c.p.Volumes[key]
		switch name := claimName(&v); {
		case bool(v.External):
			delete(claims, name)
		case claims[name] && v.Name != c.p.Name+"_"+key:
			explicit[name] = true
		}
	}
	return slices.Sorted(maps.Keys(claims)), slices.Sorted(maps.Keys(explicit))
}
