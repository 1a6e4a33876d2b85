package oci

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/spec"
)

// The profile types (v1.SeccompProfileType, v1.AppArmorProfileType).
const (
	profileDefault    = "RuntimeDefault"
	profileUnconfined = "Unconfined"
	profileLocalhost  = "Localhost"
)

// Profile is the text of a seccomp profile and the path of its file.
type Profile struct {
	Path string
	Text []byte
}

// Privileged reports whether a container is privileged (v1.SecurityContext.Privileged).
func Privileged(c *spec.Container) bool { return isTrue(contextOf(c).Privileged) }

// LocalhostSeccomp returns the name of the file with a container's seccomp profile. It is empty if the type is not Localhost or
// the container is privileged.
func LocalhostSeccomp(pod *spec.Pod, c *spec.Container) string {
	p := cmp.Or(contextOf(c).SeccompProfile, podContextOf(pod).SeccompProfile)
	if Privileged(c) || p == nil || p.Type != profileLocalhost || p.LocalhostProfile == nil {
		return ""
	}
	return *p.LocalhostProfile
}

// secure applies a container's security context in the same order as containerd's CRI plug-in: privileged overrides the
// container's capabilities, and the default seccomp profile depends on the resulting capabilities.
func secure(s *specs.Spec, in *Input) error {
	c := contextOf(in.Container)
	s.Process.NoNewPrivileges = c.AllowPrivilegeEscalation != nil && !*c.AllowPrivilegeEscalation
	s.Root.Readonly = isTrue(c.ReadOnlyRootFilesystem)
	if c.ProcMount == "Unmasked" {
		s.Linux.MaskedPaths, s.Linux.ReadonlyPaths = nil, nil
	}
	if Privileged(in.Container) {
		privilege(s, in)
	} else {
		caps, err := capabilities(c.Capabilities, s.Process.Capabilities.Bounding, in.Host.Capabilities)
		if err != nil {
			return err
		}
		grant(s.Process, caps)
	}
	var err error
	if s.Linux.Seccomp, err = seccompOf(s, in); err != nil {
		return err
	}
	s.Process.ApparmorProfile, err = appArmorOf(in)
	return err
}

// privilege gives a container all capabilities of this process and the host's devices.
func privilege(s *specs.Spec, in *Input) {
	grant(s.Process, in.Host.Capabilities)
	s.Linux.MaskedPaths, s.Linux.ReadonlyPaths = nil, nil
	for i := range s.Mounts {
		if m := &s.Mounts[i]; m.Type == "sysfs" || m.Type == "cgroup" {
			m.Options = slices.Clone(m.Options)
			if j := slices.Index(m.Options, "ro"); j >= 0 {
				m.Options[j] = "rw"
			}
		}
	}
	s.Linux.Devices = append(s.Linux.Devices, in.Devices...)
	s.Linux.Resources.Devices = []specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}
}

// grant sets the capabilities of a process. None is ambient or inheritable: which ones a non-root user keeps is not specified
// (kubernetes#56374).
func grant(p *specs.Process, caps []string) {
	p.Capabilities = &specs.LinuxCapabilities{
		Bounding: slices.Clone(caps), Effective: slices.Clone(caps), Permitted: slices.Clone(caps),
	}
}

// capabilities returns those of a container that is not privileged: ALL is added, then ALL is dropped, then the others are added,
// then dropped. A container cannot get capabilities that this process does not have. That is an error if the container adds them
// by name.
func capabilities(c *spec.Capabilities, defaults, host []string) ([]string, error) {
	caps := slices.Clone(defaults)
	if c == nil {
		return caps, nil
	}
	const all = "ALL"
	if slices.Contains(c.Add, all) {
		caps = slices.Clone(host)
	}
	if slices.Contains(c.Drop, all) {
		caps = nil
	}
	for _, name := range c.Add {
		full := "CAP_" + name
		if name == all || slices.Contains(caps, full) {
			continue
		}
		if !slices.Contains(host, full) {
			return nil, fmt.Errorf("capability %s cannot be added: containers on this host cannot have it", name)
		}
		caps = append(caps, full)
	}
	return slices.DeleteFunc(caps, func(full string) bool {
		return slices.ContainsFunc(c.Drop, func(name string) bool { return "CAP_"+name == full })
	}), nil
}

// seccompOf returns the seccomp filter of a container whose capabilities are set. Without a profile it is the default filter, or
// none if the kernel does not support seccomp.
func seccompOf(s *specs.Spec, in *Input) (*specs.LinuxSeccomp, error) {
	p := cmp.Or(contextOf(in.Container).SeccompProfile, podContextOf(in.Pod).SeccompProfile)
	switch {
	case Privileged(in.Container):
		return nil, nil
	case p != nil && p.Type == profileUnconfined:
		return nil, nil
	case !in.Host.Seccomp && p == nil:
		return nil, nil
	case !in.Host.Seccomp:
		return nil, fmt.Errorf("seccomp profile %s: the kernel does not support seccomp", p.Type)
	case p != nil && p.Type == profileLocalhost:
		profile, err := parseSeccomp(in.Seccomp.Text, s.Process.Capabilities.Bounding)
		if err != nil {
			return nil, fmt.Errorf("seccomp profile %s: %w", in.Seccomp.Path, err)
		}
		return profile, nil
	}
	if in.Only64 && !hasOtherPrograms(in.Pod, in.Container) {
		return nativeSeccomp(s), nil
	}
	return in.Host.defaultSeccomp(s), nil
}

// DefaultAppArmor is the name of the AppArmor profile of containers that select no other.
const DefaultAppArmor = "podstead-default"

// appArmorOf returns the name of the AppArmor profile of a container, empty for none. The default is none for privileged
// containers and on a host without AppArmor.
func appArmorOf(in *Input) (string, error) {
	p := cmp.Or(contextOf(in.Container).AppArmorProfile, podContextOf(in.Pod).AppArmorProfile)
	kind := profileDefault
	if p != nil {
		kind = p.Type
	}
	switch {
	case kind == profileUnconfined:
		return "", nil
	case !in.Host.AppArmor && p != nil: // [Host.CheckAppArmor] rejects such pods
		return "", fmt.Errorf("AppArmor profile %s: the host does not support AppArmor", kind)
	case kind != profileLocalhost:
		if !in.Host.AppArmor || Privileged(in.Container) {
			return "", nil
		}
		return DefaultAppArmor, nil
	case p.LocalhostProfile == nil || *p.LocalhostProfile == "":
		return "", errors.New("AppArmor profile Localhost: localhostProfile is required")
	}
	return *p.LocalhostProfile, nil
}

func isTrue(b *bool) bool { return b != nil && *b }
