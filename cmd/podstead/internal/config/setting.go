package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/runtime/network"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/admission"
)

// Setting is one thing that can be set.
type Setting struct {
	Key     string // in the file, as section.key
	Flag    string // without the dashes
	Env     string
	Default string
	Help    string
	// Global says that the clients need it too.
	Global bool

	field func(*Config) any // pointer to it: *string, *[]string, *Duration, *int64 or *spec.Quantity
	check func(value any) error
	// built is false for what is refused; only is the one value that is built.
	built bool
	only  string
}

// Settings are all of them, in the order of the documentation. Those that are not built yet are left out.
func Settings() []Setting {
	return slices.DeleteFunc(settings(), func(s Setting) bool { return !s.built || s.only != "" })
}

// settings are all of them.
func settings() []Setting {
	yes := func(key, value, help string, check func(any) error, field func(*Config) any) Setting {
		return Setting{Key: key, Default: value, Help: help, check: check, field: field, built: true}
	}
	global := func(s Setting) Setting { s.Global = true; return s }
	not := func(key string, field func(*Config) any) Setting {
		return Setting{Key: key, field: field}
	}
	list := []Setting{
		global(yes("socket", "", "socket of the daemon's API (default podstead.sock in the run-time folder)", socketPath,
			func(c *Config) any { return &c.Socket })),
		global(yes("stateDir", "/var/lib/podstead", "folder of what lasts: images, volumes, state", absolute,
			func(c *Config) any { return &c.StateDir })),
		global(yes("runDir", "/run/podstead", "folder of what is void after a boot", absolute,
			func(c *Config) any { return &c.RunDir })),
		global(yes("logDir", "/var/log/podstead", "folder of the containers' logs", absolute,
			func(c *Config) any { return &c.LogDir })),
		global(yes("configDir", "/etc/podstead", "folder of the folders configmaps and secrets", absolute,
			func(c *Config) any { return &c.ConfigDir })),

		yes("engine.idleTimeout", "60s", "how long a daemon that was started on demand lives without clients and pods", duration,
			func(c *Config) any { return &c.Engine.IdleTimeout }),
		yes("engine.runtime", "runc", "OCI runtime: runc, crun, or an absolute path", runtime,
			func(c *Config) any { return &c.Engine.Runtime }),
		yes("engine.cgroupDriver", "auto", "who makes cgroups: auto, cgroupfs, systemd", oneOf("auto", "cgroupfs", "systemd"),
			func(c *Config) any { return &c.Engine.CgroupDriver }),
		not("engine.address", func(c *Config) any { return &c.Engine.Address }),

		yes("network.mode", "bridge", "what pods have: bridge, an address and host ports; none, a loopback", oneOf("bridge", "none"),
			func(c *Config) any { return &c.Network.Mode }),
		yes("network.subnets", "auto", "the pods' addresses: auto, or one subnet of IPv4 and one of IPv6, with a comma between", subnets,
			func(c *Config) any { return &c.Network.Subnets }),

		yes("images.maxParallelPulls", "2", "how many images are pulled at once", between(1, 64),
			func(c *Config) any { return &c.Images.MaxParallelPulls }),
		yes("images.certsDir", "/etc/podstead/certs.d", "folder of the registries' hosts.toml", absolute,
			func(c *Config) any { return &c.Images.CertsDir }),
		not("images.gcHighPercent", func(c *Config) any { return &c.Images.GCHighPercent }),
		not("images.gcLowPercent", func(c *Config) any { return &c.Images.GCLowPercent }),

		yes("containerLog.maxSize", "10Mi", "size at which a container's log is rotated", size(4<<10),
			func(c *Config) any { return &c.ContainerLog.MaxSize }),
		yes("containerLog.maxFiles", "5", "how many files of a container's log are kept", between(2, 1000),
			func(c *Config) any { return &c.ContainerLog.MaxFiles }),
		{Key: "containerLog.driver", built: true, only: "file", Default: "file", field: func(c *Config) any { return &c.ContainerLog.Driver }},
		not("containerLog.totalMaxSize", func(c *Config) any { return &c.ContainerLog.TotalMaxSize }),

		yes("pods.maxParallelStarts", "0", "how many containers start at once; 0: as many as there are cores", between(0, 1024),
			func(c *Config) any { return &c.Pods.MaxParallelStarts }),
		yes("pods.pidsLimit", "2048", "how many processes and threads a pod may have; 0: any number", between(0, 1<<22),
			func(c *Config) any { return &c.Pods.PidsLimit }),
		not("pods.dir", func(c *Config) any { return &c.Pods.Dir }),
		not("pods.finishedPodTTL", func(c *Config) any { return &c.Pods.FinishedPodTTL }),
		not("pods.maxFinishedPods", func(c *Config) any { return &c.Pods.MaxFinishedPods }),

		yes("policy.podSecurity", "privileged", "Pod Security Standards that pods must meet: "+strings.Join(admission.Levels(), ", "), oneOf(admission.Levels()...),
			func(c *Config) any { return &c.Policy.PodSecurity }),
		yes("policy.hostPaths", "/", "folders below which hostPath volumes may lie, with commas between; empty: none may be", each(folder),
			func(c *Config) any { return &c.Policy.HostPaths }),
		yes("policy.allowedUnsafeSysctls", "", "kernel parameters that pods may set beside the safe ones, such as net.core.*, with commas between",
			each(admission.CheckSysctlPattern), func(c *Config) any { return &c.Policy.AllowedUnsafeSysctls }),
		not("metrics.address", func(c *Config) any { return &c.Metrics.Address }),
	}
	for i := range list {
		list[i].Flag = words(list[i].Key, "-")
		list[i].Env = "PODSTEAD_" + strings.ToUpper(words(list[i].Key, "_"))
	}
	return list
}

// words divides a key into lower-case words.
func words(key, by string) string {
	var b strings.Builder
	before := rune(0)
	for _, r := range key {
		switch {
		case r == '.':
			b.WriteString(by)
		case unicode.IsUpper(r):
			if unicode.IsLower(before) {
				b.WriteString(by)
			}
			b.WriteRune(unicode.ToLower(r))
		default:
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}

// set gives the setting the value of a text, as a flag or a variable has it.
func (s *Setting) set(c *Config, text string) error {
	switch p := s.field(c).(type) {
	case *string:
		*p = text
	case *[]string:
		*p = []string{}
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				*p = append(*p, part)
			}
		}
	case *Duration:
		*p = Duration(text)
	case *int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return errors.New("want an integer")
		}
		*p = n
	case *spec.Quantity:
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return errors.New(`want a quantity such as "64Mi"`)
		}
		*p = q
	}
	return nil
}

// refused says why the value that was set cannot be used; nil: it can.
func (s *Setting) refused(c *Config) error {
	switch {
	case !s.built && isEmptyString(s.field(c)) && s.Key == "engine.address":
		return nil
	case !s.built:
		return errNotSupported
	case s.only != "":
		if p, ok := s.field(c).(*string); ok && *p != s.only {
			return fmt.Errorf("%w: only %q is", errNotSupported, s.only)
		}
		return nil
	case s.check == nil:
		return nil
	}
	return s.check(s.field(c))
}

func isEmptyString(field any) bool {
	p, ok := field.(*string)
	return ok && *p == ""
}

var errNotSupported = errors.New("not supported yet")

func absolute(v any) error {
	if p, ok := v.(*string); ok && !filepath.IsAbs(*p) {
		return errors.New("want an absolute path")
	}
	return nil
}

func socketPath(v any) error {
	if isEmptyString(v) {
		return nil
	}
	return absolute(v)
}

func subnets(v any) error {
	p, ok := v.(*string)
	if !ok {
		return nil
	}
	_, err := network.ParseSubnets(*p)
	return err
}

func runtime(v any) error {
	p, ok := v.(*string)
	if ok && (*p == "" || strings.Contains(*p, "/") && !filepath.IsAbs(*p)) {
		return errors.New("want the name of a program or its absolute path")
	}
	return nil
}

func duration(v any) error {
	if p, ok := v.(*Duration); ok && p.Duration() <= 0 {
		return errors.New(`want a duration above zero, such as "60s" or "5m"`)
	}
	return nil
}

func oneOf(values ...string) func(any) error {
	return func(v any) error {
		if p, ok := v.(*string); ok && !slices.Contains(values, *p) {
			return fmt.Errorf("want one of %s", strings.Join(values, ", "))
		}
		return nil
	}
}

// each checks every value of a list.
func each(check func(string) error) func(any) error {
	return func(v any) error {
		p, ok := v.(*[]string)
		if !ok {
			return nil
		}
		var errs []error
		for _, value := range *p {
			errs = append(errs, check(value))
		}
		return errors.Join(errs...)
	}
}

func folder(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%q: want an absolute path", path)
	}
	return nil
}

func between(low, high int64) func(any) error {
	return func(v any) error {
		if p, ok := v.(*int64); ok && (*p < low || *p > high) {
			return fmt.Errorf("want %d to %d", low, high)
		}
		return nil
	}
}

func size(least int64) func(any) error {
	return func(v any) error {
		if p, ok := v.(*spec.Quantity); ok && p.Value() < least {
			return fmt.Errorf("want at least %d bytes", least)
		}
		return nil
	}
}
