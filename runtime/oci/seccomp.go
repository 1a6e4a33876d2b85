package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/pkg/kernelversion"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// seccompFile is a seccomp profile file: the format of the runtime specification, as the kubelet uses it, with Docker's
// extensions. Other keys are ignored.
type seccompFile struct {
	specs.LinuxSeccomp
	ArchMap  []seccompArch `json:"archMap"`
	Syscalls []seccompRule `json:"syscalls"`
}

// seccompArch is an architecture with the architectures whose programs it can run.
type seccompArch struct {
	Architecture     specs.Arch   `json:"architecture"`
	SubArchitectures []specs.Arch `json:"subArchitectures"`
}

// seccompRule is a rule that may apply only to some containers and hosts.
type seccompRule struct {
	specs.LinuxSyscall
	Name     string           `json:"name"` // a single name, in old files
	Includes seccompCondition `json:"includes"`
	Excludes seccompCondition `json:"excludes"`
}

// seccompCondition is a condition on a container's capabilities, and on the host's architecture (as GOARCH) and kernel.
type seccompCondition struct {
	Caps      []string `json:"caps"`
	Arches    []string `json:"arches"`
	MinKernel string   `json:"minKernel"`
}

// parseSeccomp converts a profile to a filter for a container with these capabilities. It evaluates conditions, as Docker does.
// containerd drops them, so that a conditional rule applies to all containers.
func parseSeccomp(text []byte, caps []string) (*specs.LinuxSeccomp, error) {
	var file seccompFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	if !isSeccompAction(file.DefaultAction) {
		return nil, fmt.Errorf("defaultAction must be one of SCMP_ACT_*, got %q", file.DefaultAction)
	}
	profile := file.LinuxSeccomp
	profile.Syscalls = nil
	if len(file.ArchMap) > 0 {
		if len(profile.Architectures) > 0 {
			return nil, errors.New("architectures cannot be set together with archMap")
		}
		for _, a := range file.ArchMap {
			if a.Architecture == nativeArch() {
				profile.Architectures = append([]specs.Arch{a.Architecture}, a.SubArchitectures...)
			}
		}
	}
	for i := range file.Syscalls {
		rule := &file.Syscalls[i]
		if rule.Name != "" {
			rule.Names = append(rule.Names, rule.Name)
		}
		switch {
		case len(rule.Names) == 0:
			return nil, fmt.Errorf("syscalls[%d]: names is required", i)
		case !isSeccompAction(rule.Action):
			return nil, fmt.Errorf("syscalls[%d]: action must be one of SCMP_ACT_*, got %q", i, rule.Action)
		}
		applies, err := rule.applies(caps)
		if err != nil {
			return nil, fmt.Errorf("syscalls[%d]: %w", i, err)
		}
		if applies {
			profile.Syscalls = append(profile.Syscalls, rule.LinuxSyscall)
		}
	}
	return &profile, nil
}

func isSeccompAction(a specs.LinuxSeccompAction) bool {
	return strings.HasPrefix(string(a), "SCMP_ACT_")
}

// applies reports whether a rule applies: all of its includes are met and none of its excludes.
func (r *seccompRule) applies(caps []string) (bool, error) {
	has := func(c string) bool { return slices.Contains(caps, c) }
	newer, err := sinceKernel(r.Includes.MinKernel)
	if err != nil {
		return false, err
	}
	tooNew, err := sinceKernel(r.Excludes.MinKernel)
	if err != nil {
		return false, err
	}
	switch {
	case slices.ContainsFunc(r.Excludes.Caps, has), slices.Contains(r.Excludes.Arches, runtime.GOARCH),
		r.Excludes.MinKernel != "" && tooNew:
		return false, nil
	case slices.ContainsFunc(r.Includes.Caps, func(c string) bool { return !has(c) }),
		len(r.Includes.Arches) > 0 && !slices.Contains(r.Includes.Arches, runtime.GOARCH), !newer:
		return false, nil
	}
	return true, nil
}

// sinceKernel reports whether the kernel has at least this version, such as "4.8". The empty version matches every kernel.
func sinceKernel(version string) (bool, error) {
	if version == "" {
		return true, nil
	}
	var v kernelversion.KernelVersion
	if n, err := fmt.Sscanf(version, "%d.%d", &v.Kernel, &v.Major); n != 2 || err != nil {
		return false, fmt.Errorf("minKernel must be a version such as \"4.8\", got %q", version)
	}
	return kernelversion.GreaterEqualThan(v)
}

// nativeArch returns the architecture of this host as a seccomp constant.
func nativeArch() specs.Arch {
	return map[string]specs.Arch{
		"386": specs.ArchX86, "amd64": specs.ArchX86_64, "arm": specs.ArchARM, "arm64": specs.ArchAARCH64,
		"loong64": specs.ArchLOONGARCH64, "ppc64le": specs.ArchPPC64LE, "riscv64": specs.ArchRISCV64, "s390x": specs.ArchS390X,
	}[runtime.GOARCH]
}
