package oci

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

// nativeSeccomp returns the default profile for processes that have no 32-bit code. The OCI runtime compiles the rules for each
// architecture, which is most of the time that it needs. System calls of an architecture without rules kill the process.
func nativeSeccomp(s *specs.Spec) *specs.LinuxSeccomp {
	profile := seccomp.DefaultProfile(s)
	if native := nativeArch(); slices.Contains(profile.Architectures, native) {
		profile.Architectures = []specs.Arch{native}
	}
	return profile
}

// defaultSeccomp returns the default profile without rules for processes that cannot exist on the host.
func (h Host) defaultSeccomp(s *specs.Spec) *specs.LinuxSeccomp {
	profile := seccomp.DefaultProfile(s)
	profile.Architectures = slices.DeleteFunc(profile.Architectures, func(a specs.Arch) bool { return slices.Contains(h.Unsupported, a) })
	return profile
}

// unsupported returns the architectures that an amd64 host may support besides its own, and does not. If that is not certain, an
// architecture is supported.
func unsupported(ctx context.Context) []specs.Arch {
	if nativeArch() != specs.ArchX86_64 {
		return nil
	}
	var list []specs.Arch
	if errors.Is(run(ctx, exitProgram(elf.EM_X86_64)), unix.ENOEXEC) {
		list = append(list, specs.ArchX32)
	}
	if errors.Is(run(ctx, exitProgram(elf.EM_386)), unix.ENOEXEC) {
		list = append(list, specs.ArchX86)
	}
	return list
}

// runTimeout bounds the run of a program.
const runTimeout = 5 * time.Second

// run runs a program from memory. The error is ENOEXEC if the kernel does not support its format.
func run(ctx context.Context, program []byte) error {
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "program")
	defer f.Close()
	if _, err := f.Write(program); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/fd/3") // the first of its extra files
	cmd.ExtraFiles = []*os.File{f}
	return cmd.Run()
}

// exitProgram returns a program that exits with code 0: for i386, or for x32, which is a 32-bit program with the instructions of x86_64.
func exitProgram(machine elf.Machine) []byte {
	text := []byte{0xb8, 1, 0, 0, 0, 0x31, 0xdb, 0xcd, 0x80} // mov eax, SYS_exit; xor ebx, ebx; int 0x80
	if machine == elf.EM_X86_64 {
		text = []byte{0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05} // mov eax, SYS_exit; xor edi, edi; syscall
	}
	var h elf.Header32
	var p elf.Prog32
	const base = 0x08048000
	start := uint32(binary.Size(h) + binary.Size(p))
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS32), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	h.Type, h.Machine, h.Version, h.Entry = uint16(elf.ET_EXEC), uint16(machine), uint32(elf.EV_CURRENT), base+start
	h.Phoff, h.Ehsize, h.Phentsize, h.Phnum = uint32(binary.Size(h)), uint16(binary.Size(h)), uint16(binary.Size(p)), 1
	size := start + uint32(len(text))
	p = elf.Prog32{
		Type: uint32(elf.PT_LOAD), Vaddr: base, Paddr: base, Filesz: size, Memsz: size, Flags: uint32(elf.PF_R | elf.PF_X), Align: 0x1000,
	}
	var file bytes.Buffer
	for _, part := range []any{h, p, text} {
		if err := binary.Write(&file, binary.LittleEndian, part); err != nil {
			panic(fmt.Sprintf("write to memory: %v", err)) // cannot fail
		}
	}
	return file.Bytes()
}

// hasOtherPrograms reports whether a container can have programs from elsewhere than its image: from a volume that is older than the pod,
// from another container, or from the image of a volume.
func hasOtherPrograms(pod *spec.Pod, c *spec.Container) bool {
	if c.TargetContainerName != "" { // its processes are visible, and through them their files
		return true
	}
	return slices.ContainsFunc(c.VolumeMounts, func(m spec.VolumeMount) bool {
		i := slices.IndexFunc(pod.Volumes, func(v spec.Volume) bool { return v.Name == m.Name })
		if i < 0 {
			return true
		}
		v := &pod.Volumes[i]
		if v.EmptyDir != nil {
			return isShared(pod, c, v.Name)
		}
		return v.ConfigMap == nil && v.Secret == nil && v.Projected == nil && v.DownwardAPI == nil
	})
}

// isShared reports whether a container with another image mounts a volume.
func isShared(pod *spec.Pod, c *spec.Container, volume string) bool {
	for _, list := range [...][]spec.Container{pod.InitContainers, pod.Containers, pod.EphemeralContainers} {
		for i := range list {
			mounts := func(m spec.VolumeMount) bool { return m.Name == volume }
			if list[i].Image != c.Image && slices.ContainsFunc(list[i].VolumeMounts, mounts) {
				return true
			}
		}
	}
	return false
}
