package quadlet

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podstead/podstead/spec"
)

func takeAddHost(c *converter, x *scope, list []entry) {
	for _, e := range list {
		text := c.text(x.unit, e)
		names, address, found := strings.Cut(text, ":")
		switch _, err := netip.ParseAddr(strings.Trim(address, "[]")); {
		case address == "host-gateway":
			c.lose(e, "the address of the host is not known before the pod starts", "write an address of the host")
		case !found || err != nil:
			c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": must be NAME:IP", "")
		default:
			x.HostAliases = append(x.HostAliases, spec.HostAlias{IP: strings.Trim(address, "[]"), Hostnames: strings.Split(names, ";")})
		}
	}
}

func (x *scope) dns() *spec.DNSConfig {
	if x.DNSConfig == nil {
		x.DNSConfig = &spec.DNSConfig{}
	}
	return x.DNSConfig
}

func takeDNS(c *converter, x *scope, list []entry) {
	for _, e := range list {
		if text := c.text(x.unit, e); text == "none" {
			c.lose(e, "pods have a resolv.conf", "")
		} else if !slices.Contains(x.dns().Nameservers, text) {
			x.dns().Nameservers = append(x.dns().Nameservers, text)
			x.DNSPolicy = spec.DNSNone
		}
	}
}

func takeDNSOption(c *converter, x *scope, list []entry) {
	for _, text := range c.list(x.unit, list) {
		name, value, has := strings.Cut(text, ":")
		o := spec.DNSOption{Name: name}
		if has {
			o.Value = &value
		}
		x.dns().Options = append(x.dns().Options, o)
	}
}

func takeDNSSearch(c *converter, x *scope, list []entry) {
	for _, text := range c.list(x.unit, list) {
		if text != "." && !slices.Contains(x.dns().Searches, text) { // "." removes the domains of the host, which pods do not have
			x.dns().Searches = append(x.dns().Searches, text)
		}
	}
}

func takeHostName(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	text = strings.ToLower(text)
	name, domain, hasDomain := strings.Cut(text, ".")
	switch {
	case hasDomain && len(validation.IsDNS1123Subdomain(text)) == 0 && len(text) <= spec.MaxHostname && !inHostNetwork(c, x):
		x.HostnameOverride = text
	case hasDomain:
		c.ignore(e, "the hostname is "+strconv.Quote(clip(name))+" here: it has no domain "+strconv.Quote(clip(domain)), "")
	}
	x.Hostname = name // by which other pods reach the pod
}

// inHostNetwork reports whether a unit is in the network of the host.
func inHostNetwork(c *converter, x *scope) bool {
	return slices.ContainsFunc(x.unit.all(x.unit.section(), "Network"), func(e entry) bool { return c.text(x.unit, e) == "host" })
}

func takeAlias(c *converter, x *scope, list []entry) {
	for _, e := range list {
		text := c.text(x.unit, e)
		_, named := x.unit.last(x.unit.section(), "HostName")
		switch {
		case text == x.Name || text == x.Hostname:
		case !spec.IsAlias(text):
			c.lose(e, "other pods do not reach it by this name, which has a dot or is reserved", "use "+clip(x.Name)+" in the other units")
		case len(validation.IsDNS1123Label(text)) > 0, named, x.Hostname != "" && x.Hostname != c.defaultName(x.unit):
			x.addAlias(text)
		default:
			x.Hostname = text
		}
	}
}

// addAlias adds a name by which other pods reach the pod.
func (x *scope) addAlias(name string) {
	if x.Annotations == nil {
		x.Annotations = map[string]string{}
	}
	if list := x.Aliases(); !slices.Contains(list, name) {
		x.Annotations[spec.AliasesAnnotation] = strings.Join(append(list, name), ",")
	}
}

// defaultName is the name by which Podman lets other containers reach the one of a unit.
func (c *converter) defaultName(u *unit) string {
	key := map[string]string{"pod": "PodName", "container": "ContainerName"}[u.kind]
	if e, has := u.last(u.section(), key); has {
		return c.text(u, e)
	}
	return "systemd-" + u.base
}

// takeNetwork takes the network of the host, and the names that containers of a network have for each other.
func takeNetwork(c *converter, x *scope, list []entry) {
	for _, e := range list {
		text := c.text(x.unit, e)
		name, options, _ := strings.Cut(text, ":")
		switch {
		case name == "host":
			x.HostNetwork = true
		case name == "none":
			c.lose(e, "the pod has a network", "set mode = \"none\" of [network] in podstead.toml, for all pods")
		case name == "bridge" || name == "private" || name == "podman" || name == "slirp4netns" || name == "pasta":
			if options != "" && name != "bridge" && name != "podman" {
				c.ignoreOnce(e, "pods are connected by a bridge of the host", "")
				continue
			}
		case name == "ns" || name == "container":
			c.lose(e, "a pod does not join a network namespace", "write the containers into one pod: Pod=NAME.pod")
		case strings.HasSuffix(name, ".container"):
			if u := c.byName[name]; u == nil || u.kind != "container" {
				c.missing(e, name)
			}
		default:
			c.ignoreOnce(e, oneNetwork+", so others reach this one too", networkHint)
			own := c.defaultName(x.unit)
			switch {
			case x.member == nil || len(x.members) != 1 || own == x.Name:
			case x.Hostname == "" && len(validation.IsDNS1123Label(own)) == 0:
				x.Hostname = own
			case spec.IsAlias(own) && own != x.Hostname:
				x.addAlias(own)
			}
		}
		for option := range strings.SplitSeq(options, ",") {
			key, value, _ := strings.Cut(option, "=")
			switch key {
			case "ip", "ip6", "mac":
				c.lose(e, noLinks, "")
			case "alias":
				takeAlias(c, x, []entry{{section: e.section, key: e.key, value: value, argument: []string{value}, at: e.at}})
			}
		}
	}
}

func takeUserNS(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	switch mode, options, _ := strings.Cut(text, ":"); {
	case mode == "host" || mode == "":
	case x.member != nil && len(x.members) > 1:
		c.lose(e, "the containers of a pod have one user namespace", "set UserNS= in the unit of the pod, or keepID in the pod file")
	case mode == "auto" && options == "":
		x.HostUsers = new(false)
	default:
		id, hasGroup, ok := spec.ParseKeepID(text)
		if !ok {
			c.lose(e, noUserNS, userNSHint)
			return
		}
		x.KeepID = &id
		if !hasGroup {
			c.problem(e, fmt.Sprintf("the group in the containers is %d, where Podman takes the number of the group on the host", id),
				"add gid, such as UserNS=keep-id:uid=1000,gid=1000")
			c.problems[len(c.problems)-1].Warning = true
		}
	}
}
