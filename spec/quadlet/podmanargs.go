package quadlet

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// option is an option of podman run or podman pod create.
type option struct {
	key  string // that means the same; empty: take is set, or the option has no effect here
	flag bool   // it has no value, or one after =
	take func(c *converter, x *scope, e entry, value string)
}

// options are the options that PodmanArgs= takes.
var options = map[string]option{
	"add-host": {key: "AddHost"}, "annotation": {key: "Annotation"}, "cap-add": {key: "AddCapability"}, "cap-drop": {key: "DropCapability"},
	"device": {key: "AddDevice"}, "dns": {key: "DNS"}, "dns-option": {key: "DNSOption"}, "dns-search": {key: "DNSSearch"},
	"entrypoint": {key: "Entrypoint"}, "env": {key: "Environment"}, "env-file": {key: "EnvironmentFile"},
	"env-host": {key: "EnvironmentHost", flag: true}, "expose": {key: "ExposeHostPort"}, "gidmap": {key: "GIDMap"},
	"group-add": {key: "GroupAdd"}, "health-cmd": {key: "HealthCmd"}, "health-interval": {key: "HealthInterval"},
	"health-on-failure": {key: "HealthOnFailure"}, "health-retries": {key: "HealthRetries"},
	"health-start-period": {key: "HealthStartPeriod"},
	"health-timeout":      {key: "HealthTimeout"}, "health-startup-cmd": {key: "HealthStartupCmd"},
	"health-startup-interval": {key: "HealthStartupInterval"}, "health-startup-retries": {key: "HealthStartupRetries"},
	"health-startup-success": {key: "HealthStartupSuccess"}, "health-startup-timeout": {key: "HealthStartupTimeout"},
	"hostname": {key: "HostName"}, "http-proxy": {key: "HttpProxy", flag: true}, "init": {key: "RunInit", flag: true}, "ip": {key: "IP"},
	"ip6": {key: "IP6"}, "label": {key: "Label"}, "log-driver": {key: "LogDriver"}, "log-opt": {key: "LogOpt"}, "memory": {key: "Memory"},
	"mount": {key: "Mount"}, "network": {key: "Network"}, "net": {key: "Network"}, "network-alias": {key: "NetworkAlias"},
	"pids-limit": {key: "PidsLimit"}, "publish": {key: "PublishPort"}, "pull": {key: "Pull"}, "read-only": {key: "ReadOnly", flag: true},
	"read-only-tmpfs": {key: "ReadOnlyTmpfs", flag: true}, "secret": {key: "Secret"}, "shm-size": {key: "ShmSize"},
	"stop-signal": {key: "StopSignal"}, "stop-timeout": {key: "StopTimeout"}, "subgidname": {key: "SubGIDMap"},
	"subuidname": {key: "SubUIDMap"}, "sysctl": {key: "Sysctl"}, "time": {key: "StopTimeout"}, "tmpfs": {key: "Tmpfs"},
	"tz":     {key: "Timezone"},
	"uidmap": {key: "UIDMap"}, "ulimit": {key: "Ulimit"}, "user": {key: "User"}, "userns": {key: "UserNS"}, "volume": {key: "Volume"},
	"workdir": {key: "WorkingDir"},

	"detach": {flag: true}, "replace": {flag: true}, "rm": {flag: true}, "sig-proxy": {flag: true}, "tls-verify": {flag: true},
	"cgroups": {}, "name": {}, "sdnotify": {}, "conmon-pidfile": {}, "cidfile": {}, "pidfile": {}, "quiet": {flag: true},
	"memory-reservation": {take: optionReservation}, "security-opt": {take: optionSecurity},
	"cpus": {take: optionCPUs}, "interactive": {flag: true, take: optionInteractive}, "tty": {flag: true, take: optionTTY},
	"privileged": {flag: true, take: optionPrivileged}, "ipc": {take: optionIPC}, "pid": {take: optionPID},
}

var shortOptions = map[byte]string{
	'd': "detach", 'e': "env", 'h': "hostname", 'i': "interactive", 'l': "label", 'm': "memory", 'p': "publish", 'q': "quiet", 't': "tty",
	'u': "user", 'v': "volume", 'w': "workdir",
}

// argument is an option that has no key.
type argument struct {
	take  func(c *converter, x *scope, e entry, value string)
	e     entry
	value string
}

// podmanArgs adds the options of PodmanArgs= to the unit, as the keys that mean the same.
func (c *converter) podmanArgs(u *unit) {
	if u.kind != "container" && u.kind != "pod" {
		return
	}
	for _, e := range u.all(u.section(), "PodmanArgs") {
		words := c.words(u, e)
		for i := 0; i < len(words); i++ {
			name, value, has := strings.Cut(words[i], "=")
			switch long, isLong := strings.CutPrefix(name, "--"); {
			case isLong:
				name = long
			case len(name) >= 2 && name[0] == '-':
				name, value, has = c.shortOption(u, e, words[i])
			default:
				c.problem(e, "invalid value: "+strconv.Quote(clip(words[i]))+" is no option", "write the command into Exec=")
				continue
			}
			o, known := options[name]
			if !known {
				c.lose(e, "the option --"+clip(name)+" of Podman is not supported", "")
				if !has && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
					i++ // its value
				}
				continue
			}
			switch {
			case has:
			case o.flag:
				value = "true"
			case i+1 < len(words):
				i++
				value = words[i]
			default:
				c.problem(e, "the option --"+name+" has no value", "")
				continue
			}
			c.addOption(u, e, o, value)
		}
	}
}

// shortOption reads an option such as -p80:80, or several flags such as -it.
func (c *converter) shortOption(u *unit, e entry, word string) (name, value string, has bool) {
	for len(word) > 2 {
		o := options[shortOptions[word[1]]]
		if !o.flag {
			return shortOptions[word[1]], strings.TrimPrefix(word[2:], "="), true
		}
		c.addOption(u, e, o, "true")
		word = "-" + word[2:]
	}
	name = shortOptions[word[1]]
	if name == "" {
		name = word[1:]
	}
	return name, "", false
}

// addOption adds the assignment that an option stands for.
func (c *converter) addOption(u *unit, e entry, o option, value string) {
	switch {
	case o.take != nil:
		u.arguments = append(u.arguments, argument{o.take, e, value})
	case o.key == "":
	case rowOf(u.section(), o.key) == nil:
		c.lose(e, "the option for "+o.key+"= counts for containers, not for pods", "write it into the .container units")
	default:
		u.entries = append(u.entries, entry{section: e.section, key: o.key, value: value, argument: []string{value}, at: e.at})
	}
}

// only returns the container of an option; nil: the option is one of a pod, and is reported.
func (c *converter) only(x *scope, e entry, name string) *member {
	if x.member == nil {
		c.lose(e, "the option --"+name+" counts for containers, not for pods", "write it into the .container units")
	}
	return x.member
}

func optionReservation(c *converter, x *scope, e entry, value string) {
	m := c.only(x, e, "memory-reservation")
	q, err := parseSize(value)
	if m == nil {
		return
	}
	if err != nil {
		c.problem(e, "invalid value of --memory-reservation: "+err.Error(), "")
		return
	}
	if m.Resources.Requests == nil {
		m.Resources.Requests = map[string]resource.Quantity{}
	}
	m.Resources.Requests["memory"] = q
}

func optionCPUs(c *converter, x *scope, e entry, value string) {
	cpus, err := strconv.ParseFloat(value, 64)
	if err != nil || !(cpus >= 0.001 && cpus <= 1e4) {
		c.problem(e, "invalid value of --cpus: must be a number of CPUs, such as 1.5", "")
		return
	}
	quota := strconv.FormatFloat(cpus*100, 'f', -1, 64) + "%"
	takeCPUQuota(c, x, []entry{{section: e.section, key: e.key, argument: []string{quota}, at: e.at}})
}

func optionInteractive(c *converter, x *scope, e entry, value string) {
	if m := c.only(x, e, "interactive"); m != nil && value == "true" {
		m.Stdin = true
	}
}

func optionTTY(c *converter, x *scope, e entry, value string) {
	if m := c.only(x, e, "tty"); m != nil && value == "true" {
		m.TTY = true
	}
}

func optionPrivileged(c *converter, x *scope, e entry, value string) {
	if m := c.only(x, e, "privileged"); m != nil && value == "true" {
		m.security().Privileged = new(true)
	}
}

func optionIPC(c *converter, x *scope, e entry, value string) {
	switch value {
	case "host":
		x.HostIPC = true
	case "private", "shareable", "":
	default:
		c.lose(e, "the option --ipc="+clip(value)+" of Podman is not supported", "")
	}
}

func optionPID(c *converter, x *scope, e entry, value string) {
	switch value {
	case "host":
		x.HostPID = true
	case "private", "":
	default:
		c.lose(e, "the option --pid="+clip(value)+" of Podman is not supported", "")
	}
}

func optionSecurity(c *converter, x *scope, e entry, value string) {
	m := c.only(x, e, "security-opt")
	if m == nil {
		return
	}
	name, of, found := strings.Cut(value, "=")
	if !found {
		name, of, _ = strings.Cut(value, ":")
	}
	one := func(key, text string) []entry {
		return []entry{{section: e.section, key: key, value: text, argument: []string{text}, at: e.at}}
	}
	switch name {
	case "no-new-privileges":
		if of != "false" {
			takeNoNewPrivileges(c, x, one("NoNewPrivileges", "true"))
		}
	case "seccomp":
		takeSeccomp(c, x, one("SeccompProfile", of))
	case "apparmor":
		takeAppArmor(c, x, one("AppArmor", of))
	case "label":
		c.ignoreOnce(e, noSELinux, "")
	default:
		c.lose(e, "the option --security-opt="+clip(value)+" of Podman is not supported", "")
	}
}
