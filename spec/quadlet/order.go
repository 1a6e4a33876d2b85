package quadlet

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/spec"
)

// booted are units that are active before the daemon starts pods, or that only matter to Podman.
var booted = []string{
	"basic.target", "default.target", "graphical.target", "local-fs.target", "multi-user.target", "network-pre.target", "network.target",
	"nss-lookup.target", "paths.target", "podman-auto-update.service", "podman.service", "podman.socket", "sockets.target",
	"sysinit.target",
	"systemd-networkd.service", "systemd-resolved.service", "timers.target", "NetworkManager.service", "firewalld.service",
	"nftables.service",
	"dbus.service", "dbus.socket", "-.mount", "tmp.mount",
}

// standard are units for which pod files have a condition.
var standard = map[string]string{
	"network-online.target": "network-online", "NetworkManager-wait-online.service": "network-online",
	"systemd-networkd-wait-online.service": "network-online", "podman-user-wait-network-online.service": "network-online",
	"time-sync.target": "time-synced", "chrony-wait.service": "time-synced", "systemd-time-wait-sync.service": "time-synced",
}

// dependencies are the keys that order units, and whether the unit fails without the other one.
var dependencies = []struct {
	key      string
	required bool
}{
	{"After", false},
	{"Wants", false},
	{"Requires", true},
	{"Requisite", true},
	{"BindsTo", true},
	{"PartOf", false},
	{"Upholds", false},
	{"Before", false},
}

// order makes pods and containers wait for those that their units are ordered after.
func (c *converter) order() {
	names := map[string]*unit{}
	for _, u := range c.units {
		names[u.name], names[u.service()+".service"] = u, u
	}
	pods := map[*unit]*pod{}
	members := map[*unit]*member{}
	for _, p := range c.pods {
		pods[p.unit] = p
		for _, m := range p.members {
			members[m.unit], pods[m.unit] = m, p
		}
	}
	for _, u := range c.units {
		p := pods[u]
		if p == nil {
			continue
		}
		for _, d := range dependencies {
			for _, e := range u.all("Unit", d.key) {
				for _, name := range c.unitNames(u, e) {
					other, given := names[name]
					if !given {
						c.outside(p, e, name, d.required)
						continue
					}
					c.between(e, u, other, pods, members)
				}
			}
		}
		for _, key := range []string{"RequiresMountsFor", "WantsMountsFor"} {
			for _, e := range u.all("Unit", key) {
				for _, path := range c.words(u, e) {
					p.wait(e, "path:"+filepath.Clean(path))
				}
			}
		}
	}
	c.cycles()
}

// between orders two units that are converted. Units of volumes, networks and images need no order: a pod has what it uses.
func (c *converter) between(e entry, u, other *unit, pods map[*unit]*pod, members map[*unit]*member) {
	first, last := other, u
	if e.key == "Before" {
		first, last = u, other
	}
	p, q := pods[last], pods[first]
	switch {
	case p == nil || q == nil || first == last:
	case p != q:
		state := spec.WaitReady
		if m := members[first]; m != nil && m.once && len(q.members) == 1 {
			state = spec.WaitSucceeded
		}
		for _, part := range c.pods { // a .kube unit can have several pods
			if part.unit == first || part == q {
				p.wait(e, spec.WaitPod+":"+part.Name+":"+state)
			}
		}
	case members[last] != nil && members[first] != nil:
		m := members[last]
		if !slices.Contains(m.before, members[first]) {
			m.before = append(m.before, members[first])
			m.origin["order"] = e
		}
	}
	if e.key == "BindsTo" || e.key == "PartOf" {
		c.ignoreOnce(e, "a pod does not stop because another one does", "")
	}
}

// outside makes a pod wait for a unit that is not converted, if there is a condition for it.
func (c *converter) outside(p *pod, e entry, name string, required bool) {
	before := e.key == "Before"
	extension := filepath.Ext(name)
	switch condition := standard[name]; {
	case condition != "" && !before:
		p.wait(e, condition)
	case slices.Contains(booted, name) || before && extension == ".target" || name == "podstead.service":
	case extension == ".mount" && !before:
		p.wait(e, "mount:/"+strings.TrimPrefix(unescapeName(strings.TrimSuffix(name, extension)), "/"))
	case extension == ".device" && !before:
		p.wait(e, "path:/"+strings.TrimPrefix(unescapeName(strings.TrimSuffix(name, extension)), "/"))
	case Extensions[extension] != "":
		c.missing(e, name)
	case required && extension == ".service" && podName(strings.TrimSuffix(name, extension)) != "" && !strings.Contains(name, "@"):
		// With systemd the unit fails without the other one. A pod waits, also if the other one is converted later.
		other := podName(strings.TrimSuffix(name, extension))
		c.ignore(e, "unit "+strconv.Quote(clip(name))+" is not among those that are converted: the pod waits for a pod "+
			strconv.Quote(other),
			"convert "+clip(name)+" too, or remove waitFor from the pod file")
		if other != p.Name {
			p.wait(e, spec.WaitPod+":"+other+":"+spec.WaitReady)
		}
	case required:
		c.lose(e, "unit "+strconv.Quote(clip(name))+" is not among those that are converted, and a pod does not wait for units of systemd",
			"order it before podstead.service")
	default:
		c.ignore(e, "unit "+strconv.Quote(clip(name))+
			" is not among those that are converted, and a pod does not wait for units of systemd",
			"pass it too if it is of Quadlet, or order it before podstead.service")
	}
}

// cycles reports pods that wait for each other.
func (c *converter) cycles() {
	byName := map[string]*pod{}
	for _, p := range c.pods {
		byName[p.Name] = p
	}
	const visiting, done = 1, 2
	state := map[*pod]int{}
	var visit func(p *pod)
	visit = func(p *pod) {
		state[p] = visiting
		for _, name := range p.WaitsForPods() {
			switch q := byName[name]; {
			case q == nil:
			case state[q] == visiting:
				c.problem(p.origin["waitFor"], "pods "+strconv.Quote(p.Name)+" and "+strconv.Quote(q.Name)+" wait for each other",
					"remove one of After= or Requires=")
			case state[q] != done:
				visit(q)
			}
		}
		state[p] = done
	}
	for _, p := range c.pods {
		if state[p] == 0 {
			visit(p)
		}
	}
}

// arrange puts the containers of a pod into their lists. One that others are ordered after is an init container: a sidecar, or one that
// runs to its end. Init containers start one after the other, each when the one before has started.
func (c *converter) arrange(p *pod) {
	needed := map[*member]bool{}
	for _, m := range p.members {
		for _, b := range m.before {
			needed[b] = true
		}
	}
	placed := map[*member]bool{}
	rest := slices.Clone(p.members)
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(m *member) bool {
			return !slices.ContainsFunc(m.before, func(b *member) bool { return !placed[b] })
		})
		if i < 0 {
			c.problem(rest[0].origin["order"], "the containers of the pod are ordered after each other",
				"remove one of After= or Requires=")
			return
		}
		m := rest[i]
		rest = slices.Delete(rest, i, i+1)
		placed[m] = true
		switch {
		case !needed[m]:
			p.Containers = append(p.Containers, m.Container)
			continue
		case !m.once && m.policy == spec.RestartNever:
			c.lose(m.orderedBy(p), "container "+strconv.Quote(m.Name)+" restarts, since others start after it", "write Restart=always")
		}
		if m.once {
			m.ReadinessProbe, m.LivenessProbe, m.StartupProbe, m.Lifecycle = nil, nil, nil, nil
		}
		p.InitContainers = append(p.InitContainers, m.Container)
	}
}

// orderedBy returns the assignment by which another container starts after this one.
func (m *member) orderedBy(p *pod) entry {
	for _, other := range p.members {
		if slices.Contains(other.before, m) {
			return other.origin["order"]
		}
	}
	return entry{}
}
