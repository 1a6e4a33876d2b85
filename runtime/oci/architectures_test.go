package oci

import (
	"debug/elf"
	"errors"
	"slices"
	"testing"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

func TestArchitecturesOfDefaultProfile(t *testing.T) {
	all := seccomp.DefaultProfile(&specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{}}}).Architectures
	if !slices.Contains(all, nativeArch()) {
		t.Skipf("the profile has no rules for %s", nativeArch())
	}
	one := []specs.Arch{nativeArch()}
	mounting := func(image string) spec.Container {
		return spec.Container{Name: "other", Image: image, VolumeMounts: []spec.VolumeMount{{Name: "v"}}}
	}
	for name, test := range map[string]struct {
		change func(in *Input)
		want   []specs.Arch
	}{
		"unknown programs":    {func(in *Input) { in.Only64 = false }, all},
		"no 32-bit programs":  {func(*Input) {}, one},
		"type RuntimeDefault": {func(in *Input) { in.Container.SecurityContext = seccompType("RuntimeDefault") }, one},
		"emptyDir":            {withVolume(spec.Volume{EmptyDir: &spec.EmptyDirVolume{}}), one},
		"config map":          {withVolume(spec.Volume{ConfigMap: &spec.ConfigMapVolume{}}), one},
		"secret":              {withVolume(spec.Volume{Secret: &spec.SecretVolume{}}), one},
		"projected":           {withVolume(spec.Volume{Projected: &spec.ProjectedVolume{}}), one},
		"downward API":        {withVolume(spec.Volume{DownwardAPI: &spec.DownwardAPIVolume{}}), one},
		"host path":           {withVolume(spec.Volume{HostPath: &spec.HostPathVolume{}}), all},
		"persistent volume":   {withVolume(spec.Volume{PersistentVolumeClaim: &spec.ClaimVolume{}}), all},
		"image volume":        {withVolume(spec.Volume{Image: &spec.ImageVolume{}}), all},
		"volume that is not mounted": {
			func(in *Input) { in.Pod.Volumes = []spec.Volume{{Name: "v", HostPath: &spec.HostPathVolume{}}} }, one,
		},
		"mount of no volume":             {func(in *Input) { in.Container.VolumeMounts = []spec.VolumeMount{{Name: "v"}} }, all},
		"processes of another container": {func(in *Input) { in.Container.TargetContainerName = "app" }, all},
		"emptyDir shared with another image": {func(in *Input) {
			withVolume(spec.Volume{EmptyDir: &spec.EmptyDirVolume{}})(in)
			in.Pod.InitContainers = []spec.Container{mounting("another")}
		}, all},
		"emptyDir shared with the same image": {func(in *Input) {
			withVolume(spec.Volume{EmptyDir: &spec.EmptyDirVolume{}})(in)
			in.Pod.InitContainers = []spec.Container{mounting(in.Container.Image)}
		}, one},
	} {
		t.Run(name, func(t *testing.T) {
			in := input()
			in.Only64, in.Host.Seccomp = true, true
			test.change(&in)
			if got := build(t, in).Linux.Seccomp.Architectures; !slices.Equal(got, test.want) {
				t.Errorf("architectures %q, want %q", got, test.want)
			}
		})
	}
}

// The architectures of a profile file are not changed.
func TestArchitecturesOfLocalhostProfile(t *testing.T) {
	in := input()
	in.Only64, in.Host.Seccomp = true, true
	in.Container.SecurityContext = seccompType(profileLocalhost)
	in.Seccomp = Profile{Path: "p", Text: []byte(`{"defaultAction":"SCMP_ACT_ALLOW","architectures":["SCMP_ARCH_X86","SCMP_ARCH_X32"]}`)}
	got := build(t, in).Linux.Seccomp.Architectures
	if want := []specs.Arch{specs.ArchX86, specs.ArchX32}; !slices.Equal(got, want) {
		t.Errorf("architectures %q, want %q", got, want)
	}
}

func seccompType(name string) *spec.SecurityContext {
	return &spec.SecurityContext{SeccompProfile: &spec.SecurityProfile{Type: name}}
}

// withVolume mounts a volume.
func withVolume(v spec.Volume) func(in *Input) {
	return func(in *Input) {
		v.Name = "v"
		in.Pod.Volumes = []spec.Volume{v}
		in.Container.VolumeMounts = []spec.VolumeMount{{Name: "v", MountPath: "/v"}}
	}
}

func TestUnsupportedArchitectures(t *testing.T) {
	in := input()
	in.Host.Seccomp, in.Host.Unsupported = true, []specs.Arch{specs.ArchX32}
	got := build(t, in).Linux.Seccomp.Architectures
	if nativeArch() == specs.ArchX86_64 && !slices.Equal(got, []specs.Arch{specs.ArchX86_64, specs.ArchX86}) {
		t.Errorf("architectures %q, want all but x32", got)
	}
	if slices.Contains(unsupported(t.Context()), nativeArch()) {
		t.Error("the architecture of the host is not supported")
	}
}

// TestRun runs a program of each kind. The host may support them or not, but it does not support one for another machine.
func TestRun(t *testing.T) {
	if nativeArch() != specs.ArchX86_64 {
		t.Skip("the programs are for amd64")
	}
	for machine, arch := range map[elf.Machine]specs.Arch{elf.EM_386: specs.ArchX86, elf.EM_X86_64: specs.ArchX32} {
		err := run(t.Context(), exitProgram(machine))
		if supported := !slices.Contains(unsupported(t.Context()), arch); (err == nil) != supported ||
			err != nil && !errors.Is(err, unix.ENOEXEC) {
			t.Errorf("%v: %v, supported: %v", machine, err, supported)
		}
	}
	if err := run(t.Context(), exitProgram(elf.EM_68K)); !errors.Is(err, unix.ENOEXEC) {
		t.Errorf("program for another machine: %v, want ENOEXEC", err)
	}
}
