package quadlet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/spec"
)

// Pod is a pod that units define.
type Pod struct {
	Name string
	// Text is a pod file in TOML that defines it alone.
	Text []byte
}

// Convert reads units and directories of units, and returns their pods, in the order of their names. There are none if one of the problems
// is an error. Host is what specifiers of systemd stand for. Of the options, AllowLoss and Verbose count. With short, pod files have the
// short form of each field.
func Convert(paths []string, h *Host, o spec.Options, short bool) ([]Pod, spec.Problems) {
	l := &loader{}
	l.load(paths)
	c := &converter{
		host: h, o: o, units: l.units, byName: map[string]*unit{}, problems: l.problems, once: map[string]bool{},
		variables: map[*unit]map[string]string{},
	}
	if len(l.problems.Errors()) == 0 {
		c.convert()
	}
	var list []Pod
	for _, p := range c.pods {
		if len(c.problems.Errors()) > 0 {
			break
		}
		if text := c.write(p, short); text != nil {
			list = append(list, Pod{p.Name, text})
		}
	}
	problems := c.problems
	if len(problems.Errors()) > 0 {
		list = nil
	}
	slices.SortStableFunc(problems, func(a, b spec.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	slices.SortFunc(list, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	return list, problems
}

// pod is a pod while its units are read.
type pod struct {
	spec.Pod
	unit    *unit // a .pod, .container or .kube
	members []*member
	kube    []byte           // the manifest of a .kube unit; then Pod has only its name and waitFor
	origin  map[string]entry // by field of the pod
	grace   spec.Seconds
	// names has the names of volumes that several containers may mount, by what they are.
	names map[string]string
	// lastVolumes and lastSecrets have the last number that was added to a name of a volume or a secret, by name.
	lastVolumes, lastSecrets map[string]int
}

// member is a container of a pod.
type member struct {
	spec.Container
	unit   *unit
	pod    *pod
	health health
	once   bool // it runs to its end before what is ordered after it: Type=oneshot
	policy spec.RestartPolicy
	origin map[string]entry // by field of the container
	before []*member        // of the same pod, which it must start after
}

// scope is where a key counts: a container, or all containers of a pod. Then member is nil.
type scope struct {
	*pod
	member *member
	unit   *unit
}

// container returns the container to which ports of the scope are added.
func (x *scope) container() *member {
	if x.member != nil {
		return x.member
	}
	return x.members[0]
}

// containers returns the containers for which the scope counts.
func (x *scope) containers() []*member {
	if x.member != nil {
		return []*member{x.member}
	}
	return x.members
}

type converter struct {
	host     *Host
	o        spec.Options
	units    []*unit
	byName   map[string]*unit
	pods     []*pod
	problems spec.Problems
	once     map[string]bool // what is reported once
	// variables are those of the services, see serviceVariables.
	variables map[*unit]map[string]string
	expanded  int // bytes by which values grew, see grow
	kubeBytes int // size of the Kubernetes files that were read
}

// problem adds an error.
func (c *converter) problem(e entry, message, hint string) {
	c.problems = append(c.problems, spec.Problem{
		File: e.at.file, Line: e.at.line, Column: e.at.column, Path: e.section + "." + e.key, Message: message, Hint: hint,
	})
}

// lose adds an error about what does not behave as with Podman, or a warning if the user accepts that.
func (c *converter) lose(e entry, why, hint string) {
	c.problem(e, "lost: "+why, cmp.Or(hint, "accept it with --allow-loss"))
	if p := &c.problems[len(c.problems)-1]; c.o.AllowLoss {
		p.Warning, p.Hint = true, hint
	}
}

// ignore adds a warning about what has no effect here.
func (c *converter) ignore(e entry, why, hint string) {
	c.problem(e, "ignored: "+why, hint)
	c.problems[len(c.problems)-1].Warning = true
}

// ignoreOnce is ignore for what is the same for all units.
func (c *converter) ignoreOnce(e entry, why, hint string) {
	if !c.once[why] || c.o.Verbose {
		c.ignore(e, why, hint)
	}
	c.once[why] = true
}

// text returns a value without quotes around it, with its specifiers and variables replaced.
func (c *converter) text(u *unit, e entry) string {
	value := e.value
	if e.argument != nil {
		return strings.Join(e.argument, " ")
	}
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' && !strings.Contains(value[1:len(value)-1], `"`) {
		value = value[1 : len(value)-1]
	}
	return c.replace(u, e, value)
}

// list returns the values of assignments that are one value each.
func (c *converter) list(u *unit, entries []entry) []string {
	var list []string
	for _, e := range entries {
		list = append(list, c.text(u, e))
	}
	return list
}

// words returns the words of a value, without quotes and with their specifiers and variables replaced.
func (c *converter) words(u *unit, e entry) []string {
	if e.argument != nil {
		return e.argument
	}
	words, err := splitWords(e.value)
	if err != nil {
		c.problem(e, "invalid value: "+err.Error(), "")
		return nil
	}
	var list []string
	for _, w := range words {
		if name, is := strings.CutPrefix(w, "$"); is && variableName.MatchString(name) {
			if value, set := c.variable(u, name); set {
				if c.grow(e, len(value)-len(w)) {
					list = append(list, strings.Fields(value)...) // systemd splits it
				}
				continue
			}
			c.lose(e, "systemd replaces $"+clip(name)+" by a variable of the service, which is not set", "write $$"+clip(name)+
				" for a variable of the shell in the container")
			continue
		}
		list = append(list, c.replace(u, e, w))
	}
	return list
}

// unitNames returns the names of units in a value. They keep their escapes, which stand for characters of paths.
func (c *converter) unitNames(u *unit, e entry) []string {
	var list []string
	for w := range strings.FieldsSeq(e.value) {
		list = append(list, c.replace(u, e, strings.Trim(w, `"'`)))
	}
	return list
}

var (
	variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	variable     = lazyregexp.New(`\$\$|\$\{[A-Za-z_][A-Za-z0-9_]*\}`)
)

// replace replaces specifiers, and in what becomes a command line of the service its variables.
func (c *converter) replace(u *unit, e entry, value string) string {
	text, err := c.host.specifiers(u, value)
	if err != nil {
		c.problem(e, "invalid value: "+err.Error(), "")
		return ""
	}
	if !c.grow(e, len(text)-len(value)) {
		return ""
	}
	if _, own := Extensions["."+strings.ToLower(e.section)]; !own {
		return text
	}
	return variable.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		name := strings.Trim(found, "${}")
		value, set := c.variable(u, name)
		if !set {
			c.lose(e, "systemd replaces ${"+clip(name)+"} by a variable of the service, which is not set",
				"write $${"+clip(name)+"} for a variable of the shell in the container")
		}
		if !c.grow(e, len(value)-len(found)) {
			return ""
		}
		return value
	})
}

// maxExpanded is the maximum number of bytes that specifiers and variables add to the values of all units.
const maxExpanded = 4 << 20

// grow reports whether a value may grow, and reports the first one that may not.
func (c *converter) grow(e entry, bytes int) bool {
	if c.expanded > maxExpanded {
		return false
	}
	if c.expanded += max(bytes, 0); c.expanded > maxExpanded {
		c.problem(e, fmt.Sprintf("specifiers and variables add more than %d bytes to the values", maxExpanded), "")
		return false
	}
	return true
}

// variable returns a variable of the service.
func (c *converter) variable(u *unit, name string) (value string, set bool) {
	if name == "CREDENTIALS_DIRECTORY" {
		return credentialsDirectory + u.service() + ".service", true
	}
	value, set = c.serviceVariables(u)[name]
	return value, set
}

// serviceVariables returns the variables of Environment=, in which systemd replaces only specifiers. Other sources are not known.
func (c *converter) serviceVariables(u *unit) map[string]string {
	if known := c.variables[u]; known != nil {
		return known
	}
	variables := map[string]string{}
	c.variables[u] = variables
	for _, e := range u.all("Service", "Environment") {
		words, err := splitWords(e.value)
		if err != nil {
			c.problem(e, "invalid value: "+err.Error(), "")
			continue
		}
		for _, w := range words {
			key, text, _ := strings.Cut(c.replace(u, e, w), "=")
			variables[key] = text
		}
	}
	return variables
}

// encrypted returns the file with the encrypted credential of a name; empty: there is none.
func (c *converter) encrypted(u *unit, name string) string {
	for _, credential := range u.all("Service", "LoadCredentialEncrypted") {
		if id, source, _ := strings.Cut(c.text(u, credential), ":"); id == name && filepath.IsAbs(source) {
			return filepath.Clean(source)
		}
	}
	return ""
}

// sealed returns the volume with the encrypted credential that a path in the directory of credentials stands for, and the name of its file
// in it. The pod has a secret with the credential. Volumes of other paths have no name.
func (c *converter) sealed(x *scope, path string) (v spec.Volume, file string) {
	name, is := strings.CutPrefix(path, credentialsDirectory+x.unit.service()+".service/")
	source := ""
	if is {
		source = c.encrypted(x.unit, name)
	}
	if source == "" || podName(name) == "" {
		return spec.Volume{}, ""
	}
	return spec.Volume{Name: name, Secret: &spec.SecretVolume{SecretName: x.sealedSecret(name, source)}}, name
}

// sealedSecret returns the name of the secret with an encrypted credential, which it adds to the pod. Credentials with the same name are
// different ones in units of different containers, and names that differ may be the same for Kubernetes.
func (p *pod) sealedSecret(credential, file string) string {
	for i := range p.Secrets {
		if s := &p.Secrets[i]; s.Credential == credential && s.CredentialFile == file {
			return s.Name
		}
	}
	name := numbered(p.lastSecrets, numberable(podName(credential)), func(name string) bool {
		return slices.ContainsFunc(p.Secrets, func(s spec.Secret) bool { return s.Name == name })
	})
	p.Secrets = append(p.Secrets, spec.Secret{Name: name, Credential: credential, CredentialFile: file})
	return name
}

// path returns an absolute path: a relative one is relative to the unit. A path in the directory of credentials is that of their source.
func (c *converter) path(u *unit, e entry, text string) string {
	if rest, is := strings.CutPrefix(text, credentialsDirectory+u.service()+".service/"); is {
		for _, credential := range u.all("Service", "LoadCredential") {
			id, source, _ := strings.Cut(c.text(u, credential), ":")
			if id == rest && filepath.IsAbs(source) {
				return source
			}
		}
		if c.encrypted(u, rest) != "" {
			c.lose(e, "the credential "+strconv.Quote(clip(rest))+" is decrypted for volumes only", "mount it with Volume=")
			return text
		}
		c.lose(e, "the credential "+strconv.Quote(clip(rest))+" has no file: LoadCredential= with an absolute path is missing", "")
	}
	if filepath.IsAbs(text) {
		return filepath.Clean(text)
	}
	return filepath.Join(u.dir, text)
}

func (c *converter) convert() {
	for _, u := range c.units {
		c.byName[u.name] = u
	}
	for _, u := range c.units {
		c.podmanArgs(u)
		c.report(u)
	}
	c.makePods()
	for _, p := range c.pods {
		if p.kube != nil {
			continue
		}
		for _, m := range p.members {
			c.take(&scope{p, m, m.unit})
		}
		if p.unit.kind == "pod" {
			c.take(&scope{p, nil, p.unit})
		}
		for _, m := range p.members {
			if p.KeepID != nil {
				m.RunAsKept(*p.KeepID)
			}
			c.probes(m)
		}
	}
	c.order()
	for _, p := range c.pods {
		c.finish(p)
	}
	c.distinct()
	if len(c.pods) == 0 && len(c.problems.Errors()) == 0 {
		u := c.units[0]
		c.problems = append(c.problems, spec.Problem{
			File: u.shown, Line: 1, Column: 1, Message: "the units define no pod",
			Hint: "pass the .container, .pod or .kube units that use them too",
		})
	}
}

// makePods creates the pods, with their containers in the order of the units. Containers that share the network of another one are in
// its pod.
func (c *converter) makePods() {
	of := map[*unit]*pod{}
	for _, u := range c.units {
		switch {
		case u.kind == "kube":
			c.kube(u)
		case u.kind == "pod", u.kind == "container" && c.home(u) == nil:
			p := &pod{unit: u, origin: map[string]entry{}, names: map[string]string{}}
			p.lastVolumes, p.lastSecrets = map[string]int{}, map[string]int{}
			p.Name = c.nameOf(u)
			of[u] = p
			c.pods = append(c.pods, p)
		}
	}
	for _, u := range c.units {
		if u.kind != "container" {
			continue
		}
		home := u
		for range maxUnits { // a container can share the network of one that shares it too
			next := c.home(home)
			if next == nil {
				break
			}
			home = next
		}
		p := of[home]
		if p == nil {
			e, _ := u.last("Container", "Network")
			c.problem(e, "the containers share the networks of each other", "")
			continue
		}
		m := &member{unit: u, pod: p, origin: map[string]entry{}, health: newHealth()}
		m.Name = c.nameOf(u)
		if _, has := u.last("Container", "Image"); !has {
			c.problems = append(c.problems, spec.Problem{File: u.shown, Line: 1, Column: 1, Message: "Image= of [Container] is missing"})
		}
		p.members = append(p.members, m)
	}
	for _, p := range c.pods {
		if p.kube == nil && len(p.members) == 0 {
			c.problems = append(c.problems, spec.Problem{
				File: p.unit.shown, Line: 1, Column: 1, Message: "the pod has no containers",
				Hint: "pass the .container units with Pod=" + p.unit.name,
			})
		}
	}
	c.pods = slices.DeleteFunc(c.pods, func(p *pod) bool { return p.kube == nil && len(p.members) == 0 })
}

// home returns the unit whose pod a container joins; nil: it has a pod of its own. A unit that is missing is reported by the key.
func (c *converter) home(u *unit) *unit {
	if e, has := u.last(u.section(), "Pod"); has && u.kind == "container" {
		return c.byName[c.text(u, e)]
	}
	for _, e := range u.all(u.section(), "Network") {
		if name := c.text(u, e); strings.HasSuffix(name, ".container") && u.kind == "container" {
			return c.byName[name]
		}
	}
	return nil
}

// nameOf returns the name of a pod or container: the one that the unit sets, else that of the unit.
func (c *converter) nameOf(u *unit) string {
	name := u.base
	key := map[string]string{"pod": "PodName", "container": "ContainerName"}[u.kind]
	e, has := u.last(u.section(), key)
	if has {
		name = c.text(u, e)
	}
	valid := podName(name)
	switch {
	case valid == "":
		c.problem(e, "invalid value: the name has none of the characters a-z and 0-9", "")
	case has && valid != name && !c.once[u.name+key]:
		c.once[u.name+key] = true
		c.ignore(e, "the name is "+strconv.Quote(valid)+" here: names of Kubernetes have no other characters than a-z, 0-9 and -",
			"use "+valid+" in commands")
	}
	return valid
}

// distinct reports pods with the same name.
func (c *converter) distinct() {
	seen := map[string]*pod{}
	for _, p := range c.pods {
		if other := seen[p.Name]; other != nil {
			c.problems = append(c.problems, spec.Problem{
				File: p.unit.shown, Line: 1, Column: 1,
				Message: "pod " + strconv.Quote(p.Name) + " is already defined by " + other.unit.name,
				Hint:    "set ContainerName= or PodName=",
			})
		}
		seen[p.Name] = p
	}
}

// finish joins what the units of a pod have set.
func (c *converter) finish(p *pod) {
	if p.kube != nil {
		return
	}
	c.arrange(p)
	p.TerminationGracePeriodSeconds = p.grace
	first := p.members[0].policy
	same := !slices.ContainsFunc(p.members, func(m *member) bool { return m.policy != first })
	if same {
		p.RestartPolicy = first
	} else {
		p.RestartPolicy = spec.RestartNever // each container has its own
	}
	for _, m := range p.members {
		for i := range p.InitContainers {
			if container := &p.InitContainers[i]; container.Name == m.Name && !m.once {
				container.RestartPolicy = spec.RestartAlways
			}
		}
		for i := range p.Containers {
			if container := &p.Containers[i]; container.Name == m.Name && m.policy != p.RestartPolicy {
				container.RestartPolicy = m.policy
			}
		}
	}
}

// manifest is a Pod of Kubernetes.
type manifest struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   metadata     `json:"metadata"`
	Spec       manifestSpec `json:"spec"`
}

type metadata struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// manifestSpec has the fields of a pod without those of metadata.
type manifestSpec struct {
	*spec.Pod

	Name        string            `json:"name,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// write returns the pod file. Problems of it are those of the units that it comes from.
func (c *converter) write(p *pod, short bool) []byte {
	file, text := p.Name+".yaml", p.kube
	if text == nil {
		m := manifest{"v1", "Pod", metadata{p.Name, p.Labels, p.Annotations}, manifestSpec{Pod: &p.Pod}}
		var err error
		if text, err = json.Marshal(m); err != nil {
			c.problem(entry{at: place{p.unit.shown, 1, 1}}, "cannot convert: "+err.Error(), "")
			return nil
		}
		file = p.Name + ".json"
	}
	out, problems := c.o.Convert(file, text, short)
	for _, problem := range problems {
		if p.kube != nil && problem.Warning {
			continue // reported at its line of the Kubernetes file
		}
		e := p.originOf(problem.Path)
		problem.File, problem.Line, problem.Column = e.at.file, e.at.line, e.at.column
		if e.key != "" {
			problem.Path = e.section + "." + e.key
		}
		if !slices.Contains(c.problems, problem) {
			c.problems = append(c.problems, problem)
		}
	}
	if p.kube != nil {
		return c.addWaits(p, out)
	}
	return out
}

var fieldPath = lazyregexp.New(`^(?:spec\.|metadata\.)?(?:(initContainers|containers)\[([0-9]+)\]\.?)?([A-Za-z]*)`)

// originOf returns the assignment that a field of the pod file comes from, or the first line of its unit.
func (p *pod) originOf(path string) entry {
	found := entry{at: place{p.unit.shown, 1, 1}}
	match := fieldPath.FindStringSubmatch(path)
	if match == nil {
		return found
	}
	if match[1] == "" {
		if e, has := p.origin[match[3]]; has {
			return e
		}
		return found
	}
	list := p.Containers
	if match[1] == "initContainers" {
		list = p.InitContainers
	}
	i, err := strconv.Atoi(match[2])
	if err != nil || i >= len(list) {
		return found
	}
	for _, m := range p.members {
		if m.Name == list[i].Name {
			found.at.file = m.unit.shown
			if e, has := m.origin[match[3]]; has {
				return e
			}
		}
	}
	return found
}

// report reports the sections and keys of a unit that are not taken.
func (c *converter) report(u *unit) {
	if !slices.ContainsFunc(u.entries, func(e entry) bool { return e.section == u.section() }) && u.kind != "volume" &&
		u.kind != "network" && u.kind != "pod" {
		c.problems = append(c.problems, spec.Problem{
			File: u.shown, Line: 1, Column: 1, Message: "section [" + u.section() + "] is missing",
		})
	}
	for _, e := range u.entries {
		if e.value == "" && e.argument == nil {
			continue
		}
		section := strings.TrimPrefix(e.section, "X-")
		switch {
		case section != e.section:
			continue // systemd ignores these sections
		case isUnitSection(section) && section != u.section():
			c.problem(e, "section ["+clip(section)+"] does not belong into a unit with the extension ."+u.kind, "")
			continue
		}
		r := rowOf(section, e.key)
		if r == nil {
			c.unknown(e)
			continue
		}
		value, isBool := parseBool(e.value)
		if r.harmless != "" && (e.value == r.harmless || isBool && fmt.Sprint(value) == r.harmless) {
			continue
		}
		switch r.verdict {
		case ignored:
			c.ignoreOnce(e, r.text, r.hint)
		case lost:
			c.lose(e, r.text, r.hint)
		case refused:
			c.problem(e, "not supported: "+r.text, r.hint)
		case taken:
		}
	}
}

func isUnitSection(section string) bool {
	for _, s := range Extensions {
		if s == section {
			return true
		}
	}
	return false
}

// unknown reports a key without a row.
func (c *converter) unknown(e entry) {
	switch {
	case e.section == "Service":
		c.lose(e, "it is a setting of the process of Podman, which does not exist here", "")
	case e.section == "Unit":
		c.lose(e, "the pod is no unit of systemd", "")
	case e.section == "Install":
		c.problem(e, "unknown key", "")
	case isUnitSection(e.section) || e.section == "Quadlet":
		c.problem(e, "unknown key: podman-systemd.unit(5) does not have it", nearest(e.section, e.key))
	default:
		c.lose(e, "section ["+clip(e.section)+"] is not read", "")
	}
}

// nearest returns the key that differs only in the case of its letters.
func nearest(section, key string) string {
	for i := range rows {
		if r := &rows[i]; r.section == section && strings.EqualFold(r.key, key) {
			return "did you mean " + strconv.Quote(r.key) + "?"
		}
	}
	return ""
}

// take takes the keys of a scope in the order of the table.
func (c *converter) take(x *scope) {
	for i := range rows {
		r := &rows[i]
		if r.take == nil || isUnitSection(r.section) && r.section != x.unit.section() {
			continue
		}
		list := x.unit.all(r.section, r.key)
		if len(list) == 0 {
			continue
		}
		for field := range strings.SplitSeq(r.text, ", ") {
			field, _, _ = strings.Cut(field, ".")
			x.origin[field] = list[len(list)-1]
			if x.member != nil {
				x.member.origin[field] = list[len(list)-1]
			}
		}
		r.take(c, x, list)
	}
	for _, a := range x.unit.arguments {
		a.take(c, x, a.e, a.value)
	}
	c.service(x)
}
