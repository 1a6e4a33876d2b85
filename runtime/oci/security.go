package oci

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/spec"
)

// The types of profiles (v1.SeccompProfileType, v1.AppArmorProfileType).
const (
	profileDefault    = "RuntimeDefault"
	profileUnconfined = "Unconfined"
	profileLocalhost  = "Localhost"
)

// Profile is the text of a seccomp profile and where it is from.
type Profile struct {
	Path string
	Text []byte
}

// Privileged says whether a container has everything that this process has (v1.SecurityContext.Privileged).
func Privileged(c *spec.Container) bool { return isTrue(contextOf(c).Privileged) }

// LocalhostSeccomp is the name of the file that a container's seccomp profile is to be read from, "" where it is not of the
// type Localhost, or the container is privileged and has none.
func LocalhostSeccomp(pod *spec.Pod, c *spec.Container) string {
	p := cmp.Or(contextOf(c).SeccompProfile, podContextOf(pod).SeccompProfile)
	if Privileged(c) || p == nil || p.Type != profileLocalhost || p.LocalhostProfile == nil {
		return ""
	}
	return *p.LocalhostProfile
}

// secure gives a container the privileges that its security context says, in the order in which containerd's CRI plug-in does:
// what is privileged beats its own capabilities, and the default seccomp profile is made for the capabilities that come out.
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

// privilege gives a container all that this process can do, and the machine's devices.
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
	if s.Linux.Resources == nil {
		s.Linux.Resources = &specs.LinuxResources{}
	}
	s.Linux.Resources.Devices = []specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}
}

// grant gives a process capabilities. None is ambient or inheritable: what a user who is not root is to keep of them is not
// defined (kubernetes #56374).
func grant(p *specs.Process, caps []string) {
	p.Capabilities = &specs.LinuxCapabilities{
		Bounding: slices.Clone(caps), Effective: slices.Clone(caps), Permitted: slices.Clone(caps),
	}
}

// capabilities are those of a container that is not privileged: ALL is added, then ALL is dropped, then the others are added,
// then dropped. What this process does not have it cannot give away; that is an error where a container asks for it by name.
func capabilities(c *spec.Capabilities, defaults, machine []string) ([]string, error) {
	caps := slices.Clone(defaults)
	if c == nil {
		return caps, nil
	}
	const all = "ALL"
	if slices.Contains(c.Add, all) {
		caps = slices.Clone(machine)
	}
	if slices.Contains(c.Drop, all) {
		caps = nil
	}
	for _, name := range c.Add {
		full := "CAP_" + name
		if name == all || slices.Contains(caps, full) {
			continue
		}
		if !slices.Contains(machine, full) {
			return nil, fmt.Errorf("capability %s cannot be added: this machine's containers cannot have it", name)
		}
		caps = append(caps, full)
	}
	return slices.DeleteFunc(caps, func(full string) bool {
		return slices.ContainsFunc(c.Drop, func(name string) bool { return "CAP_"+name == full })
	}), nil
}

// seccompOf is the filter of system calls of a container whose capabilities are known. Where nobody asks for one it is the
// default, but on a kernel that has none.
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
		return nil, fmt.Errorf("seccomp profile %s: the kernel has no seccomp", p.Type)
	case p != nil && p.Type == profileLocalhost:
		profile, err := parseSeccomp(in.Seccomp.Text, s.Process.Capabilities.Bounding)
		if err != nil {
			return nil, fmt.Errorf("seccomp profile %s: %w", in.Seccomp.Path, err)
		}
		return profile, nil
	}
	return seccomp.DefaultProfile(s), nil
}

// DefaultAppArmor is the name of the AppArmor profile of containers that ask for no other.
const DefaultAppArmor = "podstead-default"

// appArmorOf is the name of the AppArmor profile of a container, "" for none. The default is none where the machine has no
// AppArmor, and for privileged containers.
func appArmorOf(in *Input) (string, error) {
	p := cmp.Or(contextOf(in.Container).AppArmorProfile, podContextOf(in.Pod).AppArmorProfile)
	kind := profileDefault
	if p != nil {
		kind = p.Type
	}
	switch {
	case kind == profileUnconfined:
		return "", nil
	case kind != profileLocalhost:
		if !in.Host.AppArmor || Privileged(in.Container) {
			return "", nil
		}
		return DefaultAppArmor, nil
	case !in.Host.AppArmor:
		return "", errors.New("AppArmor profile Localhost: the machine has no AppArmor")
	case p.LocalhostProfile == nil || *p.LocalhostProfile == "":
		return "", errors.New("AppArmor profile Localhost: it has no name")
	}
	return *p.LocalhostProfile, nil
}

func isTrue(b *bool) bool { return b != nil && *b }
