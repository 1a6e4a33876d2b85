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

// seccompFile is a seccomp profile as a file holds it: the runtime specification's form, which the kubelet's users write, with
// what Docker's form adds to it. Other keys are comments.
type seccompFile struct {
	specs.LinuxSeccomp
	ArchMap  []seccompArch `json:"archMap"`
	Syscalls []seccompRule `json:"syscalls"`
}

// seccompArch is an architecture with those whose programs it runs too.
type seccompArch struct {
	Architecture     specs.Arch   `json:"architecture"`
	SubArchitectures []specs.Arch `json:"subArchitectures"`
}

// seccompRule is a rule that may hold for some containers and machines only.
type seccompRule struct {
	specs.LinuxSyscall
	Name     string           `json:"name"` // one name, in old files
	Includes seccompCondition `json:"includes"`
	Excludes seccompCondition `json:"excludes"`
}

// seccompCondition is about a container's capabilities, and the machine's architecture (in Go's words) and kernel.
type seccompCondition struct {
	Caps      []string `json:"caps"`
	Arches    []string `json:"arches"`
	MinKernel string   `json:"minKernel"`
}

// parseSeccomp makes a filter of the text of a profile, for a container with these capabilities. Conditions are looked at, as
// Docker does: containerd drops them, so that a rule for a few containers holds for all.
func parseSeccomp(text []byte, caps []string) (*specs.LinuxSeccomp, error) {
	var file seccompFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	if !isSeccompAction(file.DefaultAction) {
		return nil, fmt.Errorf("defaultAction must be one of SCMP_ACT_*, not %q", file.DefaultAction)
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
			return nil, fmt.Errorf("syscalls[%d]: it names no system call", i)
		case !isSeccompAction(rule.Action):
			return nil, fmt.Errorf("syscalls[%d]: action must be one of SCMP_ACT_*, not %q", i, rule.Action)
		}
		holds, err := rule.holds(caps)
		if err != nil {
			return nil, fmt.Errorf("syscalls[%d]: %w", i, err)
		}
		if holds {
			profile.Syscalls = append(profile.Syscalls, rule.LinuxSyscall)
		}
	}
	return &profile, nil
}

func isSeccompAction(a specs.LinuxSeccompAction) bool {
	return strings.HasPrefix(string(a), "SCMP_ACT_")
}

// holds reports whether a rule holds here: all that it includes is so, and nothing that it excludes.
func (r *seccompRule) holds(caps []string) (bool, error) {
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

// sinceKernel reports whether the kernel is of a version, such as "4.8", or later. The empty one any kernel is.
func sinceKernel(version string) (bool, error) {
	if version == "" {
		return true, nil
	}
	var v kernelversion.KernelVersion
	if n, err := fmt.Sscanf(version, "%d.%d", &v.Kernel, &v.Major); n != 2 || err != nil {
		return false, fmt.Errorf("minKernel must be a version such as \"4.8\", not %q", version)
	}
	return kernelversion.GreaterEqualThan(v)
}

// nativeArch is the architecture of this machine in seccomp's words.
func nativeArch() specs.Arch {
	return map[string]specs.Arch{
		"386": specs.ArchX86, "amd64": specs.ArchX86_64, "arm": specs.ArchARM, "arm64": specs.ArchAARCH64,
		"loong64": specs.ArchLOONGARCH64, "ppc64le": specs.ArchPPC64LE, "riscv64": specs.ArchRISCV64, "s390x": specs.ArchS390X,
	}[runtime.GOARCH]
}
