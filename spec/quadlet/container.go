package quadlet

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/spec"
)

// security returns the security settings of a container.
func (m *member) security() *spec.SecurityContext {
	if m.SecurityContext == nil {
		m.SecurityContext = &spec.SecurityContext{}
	}
	return m.SecurityContext
}

// podSecurity returns those of a pod.
func (p *pod) podSecurity() *spec.PodSecurityContext {
	if p.SecurityContext == nil {
		p.SecurityContext = &spec.PodSecurityContext{}
	}
	return p.SecurityContext
}

// last returns the assignment that counts of a key with one value, and its text.
func (c *converter) last(x *scope, list []entry) (entry, string) {
	e := list[len(list)-1]
	return e, c.text(x.unit, e)
}

// isSet reports whether the assignment that counts is true.
func (c *converter) isSet(x *scope, list []entry) bool {
	e, text := c.last(x, list)
	value, valid := parseBool(text)
	if !valid {
		c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": must be true or false", "")
	}
	return value
}

// allWords returns the words of all assignments of a key, each with its assignment.
func (c *converter) allWords(x *scope, list []entry, each func(e entry, word string)) {
	for _, e := range list {
		for _, w := range c.words(x.unit, e) {
			each(e, w)
		}
	}
}

func takeImage(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	x.member.Image = c.image(e, text)
	if u := c.byName[text]; u != nil && u.kind == "image" {
		if policy, has := u.last("Image", "Policy"); has {
			x.member.ImagePullPolicy = c.pullPolicy(policy, c.text(u, policy))
		}
	}
	// Podman pulls an image once, whatever its tag is. Kubernetes pulls the tag latest at each start.
	name := x.member.Image[strings.LastIndexByte(x.member.Image, '/')+1:]
	_, tag, tagged := strings.Cut(name, ":")
	if _, has := x.unit.last("Container", "Pull"); !has && x.member.ImagePullPolicy == "" && !strings.Contains(name, "@") &&
		(!tagged || tag == "latest") {
		x.member.ImagePullPolicy = spec.PullIfNotPresent
	}
}

// transports are the prefixes of images that are in no registry.
var transports = []string{
	"containers-storage:", "dir:", "docker-archive:", "docker-daemon:", "oci:", "oci-archive:",
}

// image returns the name of an image, which a unit may have.
func (c *converter) image(e entry, text string) string {
	switch filepath.Ext(text) {
	case ".build":
		c.problem(e, "not supported: "+noBuild, buildHint)
		return ""
	case ".image":
		i := c.byName[text]
		if i == nil {
			c.missing(e, text)
			return ""
		}
		for _, key := range []string{"ImageTag", "Image"} {
			if name, has := i.last("Image", key); has {
				return c.text(i, name)
			}
		}
		c.problem(e, "unit "+clip(text)+" has no Image=", "")
		return ""
	}
	text = strings.TrimPrefix(text, "docker://")
	for _, prefix := range transports {
		if strings.HasPrefix(text, prefix) {
			c.problem(e, "not supported: images of "+prefix+" are not in a registry",
				"write the name of the image, and the archive into imageArchives of the pod file")
			return ""
		}
	}
	if strings.HasPrefix(text, "localhost/") {
		c.ignoreOnce(e, "images in the storage of Podman are not found", "run podman save IMAGE | podstead image import -")
	}
	return text
}

// missing reports a unit that another one needs.
func (c *converter) missing(e entry, name string) {
	c.problem(e, "unit "+strconv.Quote(clip(name))+" is missing", "pass it too, or the directory of the units")
}

func takePull(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	x.member.ImagePullPolicy = c.pullPolicy(e, text)
}

func (c *converter) pullPolicy(e entry, text string) spec.PullPolicy {
	policies := map[string]spec.PullPolicy{
		"always": spec.PullAlways, "newer": spec.PullAlways, "missing": spec.PullIfNotPresent, "never": spec.PullNever,
		"true": spec.PullAlways, "false": spec.PullIfNotPresent,
	}
	policy, known := policies[text]
	if !known {
		c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": must be always, missing, never or newer", "")
	}
	return policy
}

func takeCapabilities(c *converter, x *scope, list []entry) {
	c.allWords(x, list, func(e entry, word string) {
		name := strings.TrimPrefix(strings.ToUpper(word), "CAP_")
		s := x.member.security()
		if s.Capabilities == nil {
			s.Capabilities = &spec.Capabilities{}
		}
		of := &s.Capabilities.Add
		if e.key == "DropCapability" {
			of = &s.Capabilities.Drop
		}
		if !slices.Contains(*of, name) {
			*of = append(*of, name)
		}
	})
}

func takeAnnotations(c *converter, x *scope, list []entry) {
	c.allWords(x, list, func(e entry, word string) {
		key, value, _ := strings.Cut(word, "=")
		c.annotate(x, e, key, value)
	})
}

func (c *converter) annotate(x *scope, e entry, key, value string) {
	if len(validation.IsQualifiedName(strings.ToLower(key))) > 0 {
		c.ignore(e, strconv.Quote(clip(key))+" is no name of an annotation in Kubernetes", "")
		return
	}
	if x.Annotations == nil {
		x.Annotations = map[string]string{}
	}
	x.Annotations[key] = value
}

// takeLabels takes labels as such if Kubernetes has such labels, else as annotations: values of Podman have no rules.
func takeLabels(c *converter, x *scope, list []entry) {
	c.allWords(x, list, func(e entry, word string) {
		key, value, _ := strings.Cut(word, "=")
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			c.annotate(x, e, key, value)
			return
		}
		if x.Labels == nil {
			x.Labels = map[string]string{}
		}
		x.Labels[key] = value
	})
}

func takeAppArmor(c *converter, x *scope, list []entry) {
	_, text := c.last(x, list)
	p := &spec.SecurityProfile{Type: "Localhost", LocalhostProfile: &text}
	if text == "unconfined" {
		p = &spec.SecurityProfile{Type: "Unconfined"}
	}
	x.member.security().AppArmorProfile = p
}

func takeEntrypoint(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	command := []string{text}
	if strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &command) != nil {
		c.problem(e, "invalid value: must be a path, or an array of strings in JSON", "")
	}
	for _, word := range command {
		x.member.Command = append(x.member.Command, verbatim(word))
	}
}

func takeExec(c *converter, x *scope, list []entry) {
	for _, word := range c.words(x.unit, list[len(list)-1]) {
		x.member.Args = append(x.member.Args, verbatim(word))
	}
}

func takeEnvironment(c *converter, x *scope, list []entry) {
	c.allWords(x, list, func(e entry, word string) {
		name, value, found := strings.Cut(word, "=")
		if !found {
			c.lose(e, "containers do not get the variable "+clip(name)+" of the host", "write its value")
			return
		}
		x.member.setEnv(spec.EnvVar{Name: name, Value: verbatim(value)})
	})
}

// setEnv adds a variable, or replaces the one of the same name.
func (m *member) setEnv(v spec.EnvVar) {
	if i := slices.IndexFunc(m.Env, func(other spec.EnvVar) bool { return other.Name == v.Name }); i >= 0 {
		m.Env[i] = v
		return
	}
	m.Env = append(m.Env, v)
}

// takeEnvironmentFile adds an inline config map for each file. The daemon reads it when the pod is applied.
func takeEnvironmentFile(c *converter, x *scope, list []entry) {
	for i, e := range list {
		text := c.text(x.unit, e)
		optional := strings.HasPrefix(text, "-")
		path := c.path(x.unit, e, strings.TrimPrefix(text, "-"))
		if optional {
			c.lose(e, "the file must exist when the pod is applied", "")
		}
		name := fmt.Sprintf("%s-env-%d", x.member.Name, i+1)
		x.ConfigMaps = append(x.ConfigMaps, spec.ConfigMap{Name: name, EnvFile: path})
		x.member.EnvFrom = append(x.member.EnvFrom, spec.EnvFrom{ConfigMapRef: &spec.EnvReference{Name: name}})
	}
}

func takeExpose(c *converter, x *scope, list []entry) {
	for _, e := range list {
		c.ports(x, e, c.text(x.unit, e))
	}
}

func takePublish(c *converter, x *scope, list []entry) {
	for _, e := range list {
		text := c.text(x.unit, e)
		for _, p := range c.ports(x, e, text) {
			if p.HostPort == 0 {
				c.lose(e, "the port of the host is not chosen", "write it: PublishPort=PORT:"+clip(text))
				break
			}
		}
	}
}

// maxPorts is the maximum number of ports of a container.
const maxPorts = 1024

// ports adds the ports of an assignment.
func (c *converter) ports(x *scope, e entry, text string) []spec.ContainerPort {
	ports, err := parsePorts(text)
	if err != nil {
		c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": "+err.Error(), "")
		return nil
	}
	m := x.container()
	for _, p := range ports {
		if len(m.Ports) >= maxPorts {
			c.problem(e, fmt.Sprintf("the container has more than %d ports", maxPorts), "")
			return nil
		}
		same := func(o spec.ContainerPort) bool {
			return o.ContainerPort == p.ContainerPort && o.Protocol == p.Protocol &&
				(o.HostPort == p.HostPort && o.HostIP == p.HostIP || p.HostPort == 0)
		}
		if !slices.ContainsFunc(m.Ports, same) {
			m.Ports = append(m.Ports, p)
		}
	}
	return ports
}

// id reads the number of a user or group, or root.
func id(text string) (*int64, bool) {
	if text == "root" {
		text = "0"
	}
	n, err := strconv.ParseUint(text, 10, 31)
	number := int64(n)
	return &number, err == nil
}

func takeUser(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	user, group, both := strings.Cut(text, ":")
	number, valid := id(user)
	if !valid {
		c.lose(e, "the user "+strconv.Quote(clip(user))+" is not looked up in the image", "write its UID")
		return
	}
	x.member.security().RunAsUser = number
	if both {
		c.group(x, e, group)
	}
}

func takeGroup(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	c.group(x, e, text)
}

func (c *converter) group(x *scope, e entry, text string) {
	number, valid := id(text)
	if !valid {
		c.lose(e, "the group "+strconv.Quote(clip(text))+" is not looked up in the image", "write its GID")
		return
	}
	x.member.security().RunAsGroup = number
}

func takeGroupAdd(c *converter, x *scope, list []entry) {
	for _, e := range list {
		text := c.text(x.unit, e)
		number, valid := id(text)
		switch {
		case text == "keep-groups":
			c.lose(e, "containers do not keep the groups of the caller", "write the GIDs")
		case !valid:
			c.lose(e, "the group "+strconv.Quote(clip(text))+" is not looked up in the image", "write its GID")
		case len(x.members) > 1:
			c.lose(e, "all containers of the pod would have the group", "set supplementalGroups in the pod file, or write a pod of its own")
		default:
			s := x.podSecurity()
			s.SupplementalGroups = append(s.SupplementalGroups, *number)
		}
	}
}

func takeLogDriver(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	drivers := map[string]string{"journald": "journald", "k8s-file": "file", "json-file": "file"}
	driver := drivers[text]
	switch {
	case driver == "":
		c.ignore(e, "logs are kept in files, in memory or in the journal", "")
	case len(x.members) > 1:
		c.ignore(e, "the host configures where the logs of this pod go", "set the annotation podstead.io/log-driver in the pod file")
	default:
		c.annotate(x, e, "podstead.io/log-driver", driver)
	}
}

// limit sets a limit of the container, or of the pod.
func (x *scope) limit(name string, q spec.Quantity) {
	of := &x.Resources
	if x.member != nil {
		of = &x.member.Resources
	}
	if of.Limits == nil {
		of.Limits = spec.ResourceList{}
	}
	of.Limits[name] = q
}

func takeMemory(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	if text == "infinity" || text == "0" {
		return
	}
	q, err := parseSize(text)
	if err != nil {
		c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": "+err.Error(), "")
		return
	}
	x.limit("memory", q)
}

// literal returns a value in which systemd replaces no specifiers: a percentage is one.
func literal(e entry) string {
	if e.argument != nil {
		return e.argument[0]
	}
	return e.value
}

func takeCPUQuota(c *converter, x *scope, list []entry) {
	e := list[len(list)-1]
	text := literal(e)
	percent, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || percent < 0.1 || percent > 1e6 || !strings.HasSuffix(text, "%") {
		c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": must be a percentage, such as 50%", "")
		return
	}
	q := *resource.NewMilliQuantity(int64(percent*10), resource.DecimalSI)
	x.limit("cpu", q)
}

func takeNoNewPrivileges(c *converter, x *scope, list []entry) {
	if c.isSet(x, list) {
		x.member.security().AllowPrivilegeEscalation = new(false)
	}
}

func takePod(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	if u := c.byName[text]; u == nil || u.kind != "pod" {
		c.missing(e, text)
	}
}

// takeReadOnly also mounts the directories in memory that Podman mounts unless ReadOnlyTmpfs is false.
func takeReadOnly(c *converter, x *scope, list []entry) {
	if !c.isSet(x, list) {
		return
	}
	x.member.security().ReadOnlyRootFilesystem = new(true)
	if e, has := x.unit.last("Container", "ReadOnlyTmpfs"); has && !c.isSet(x, []entry{e}) {
		return
	}
	for _, path := range []string{"/run", "/tmp", "/var/tmp"} {
		x.member.inMemory(x.pod, path)
	}
}

func takeVolatileTmp(c *converter, x *scope, list []entry) {
	if c.isSet(x, list) {
		x.member.inMemory(x.pod, "/tmp")
	}
}

// takeRunInit adds an init process, as podman run --init does.
func takeRunInit(c *converter, x *scope, list []entry) { x.member.Init = c.isSet(x, list) }

func takePidsLimit(c *converter, x *scope, list []entry) {
	e := list[len(list)-1]
	text := literal(e)
	if text == "-1" || text == "0" || text == "infinity" {
		return
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	switch {
	case strings.HasSuffix(text, "%"):
		c.lose(e, "a limit of processes is a number", "set pidsLimit in the pod file")
	case err != nil || limit < 1:
		c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": must be a number of processes", "")
	case x.member != nil && len(x.members) > 1:
		c.lose(e, "the containers of a pod have one limit of processes", "set pidsLimit in the pod file")
	default:
		x.PidsLimit = &limit
	}
}

func takeUlimit(c *converter, x *scope, list []entry) {
	for _, e := range list {
		text := c.text(x.unit, e)
		if text == "host" {
			c.lose(e, "the limits of a container are not those of the host", "write each limit, such as Ulimit=nofile=1024:65536")
			continue
		}
		u, err := spec.ParseUlimit(text)
		if err != nil {
			c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": "+err.Error(), "")
			continue
		}
		x.member.Ulimits = append(x.member.Ulimits, u)
	}
}

func takeSeccomp(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	if text != "unconfined" {
		c.lose(e, "profiles are in a directory of the host",
			"copy the file to /etc/podstead/seccomp, and set seccompProfile in the pod file")
		return
	}
	x.member.security().SeccompProfile = &spec.SecurityProfile{Type: "Unconfined"}
}

var signalNumber = map[string]string{
	"1": "HUP", "2": "INT", "3": "QUIT", "6": "ABRT", "9": "KILL", "10": "USR1", "12": "USR2", "15": "TERM", "28": "WINCH", "37": "RTMIN+3",
}

func takeStopSignal(c *converter, x *scope, list []entry) {
	_, text := c.last(x, list)
	name := strings.TrimPrefix(strings.ToUpper(text), "SIG")
	if named := signalNumber[name]; named != "" {
		name = named
	}
	if x.member.Lifecycle == nil {
		x.member.Lifecycle = &spec.Lifecycle{}
	}
	x.member.Lifecycle.StopSignal = "SIG" + name
	x.OS = &spec.PodOS{Name: spec.Linux}
}

func takeSysctl(c *converter, x *scope, list []entry) {
	c.allWords(x, list, func(_ entry, word string) {
		name, value, _ := strings.Cut(word, "=")
		s := x.podSecurity()
		same := func(o spec.Sysctl) bool { return o.Name == name }
		s.Sysctls = append(slices.DeleteFunc(s.Sysctls, same), spec.Sysctl{Name: name, Value: value})
	})
}

var zone = lazyregexp.New(`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}$`)

// takeTimezone mounts the file of the zone, as Podman does.
func takeTimezone(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	path := "/etc/localtime"
	if text != "local" {
		if !zone.MatchString(text) {
			c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": must be a time zone, such as Europe/Rome, or local", "")
			return
		}
		path = "/usr/share/zoneinfo/" + text
	}
	v := spec.Volume{Name: "timezone", HostPath: &spec.HostPathVolume{Path: path}}
	x.member.mount(x.pod, v, spec.VolumeMount{MountPath: "/etc/localtime", ReadOnly: true})
}

func takeWorkingDir(c *converter, x *scope, list []entry) {
	_, x.member.WorkingDir = c.last(x, list)
}

// takeStopTimeout keeps the longest time that any unit of the pod sets, of each the shorter of its two times.
func takeStopTimeout(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	seconds, err := parseTime(text)
	if err != nil {
		c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": "+err.Error(), "")
	}
	if seconds == forever {
		c.lose(e, "a pod does not stop without a limit", "write a long time")
	}
}

// grace returns the time to stop that a unit sets: that of Podman, but at most that of the service.
func (c *converter) grace(u *unit) (spec.Seconds, bool) {
	var grace spec.Seconds
	found := false
	for _, at := range [][2]string{{u.section(), "StopTimeout"}, {"Service", "TimeoutStopSec"}, {"Service", "TimeoutSec"}} {
		e, has := u.last(at[0], at[1])
		if !has {
			continue
		}
		if seconds, err := parseTime(c.text(u, e)); err == nil && seconds != forever && (!found || seconds < grace) {
			grace, found = seconds, true
		}
	}
	return grace, found
}
