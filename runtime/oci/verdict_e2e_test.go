//go:build e2e

package oci

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/test/verdict"
)

// TestNativeVerdicts compares the filter that the kernel has loaded for a container without rules for 32-bit processes with that of the
// complete profile: each system call of the host's architecture, by number and with arguments, and that all others are killed.
func TestNativeVerdicts(t *testing.T) {
	arch := map[specs.Arch]uint32{specs.ArchX86_64: unix.AUDIT_ARCH_X86_64, specs.ArchAARCH64: unix.AUDIT_ARCH_AARCH64}[nativeArch()]
	if arch == 0 {
		t.Fatalf("the test needs a host with amd64 or arm64, not %s", nativeArch())
	}
	var architectures []uint32
	for _, a := range verdict.Architectures {
		architectures = append(architectures, a)
	}
	for name, caps := range map[string][]string{
		"default": {"CAP_CHOWN", "CAP_NET_RAW", "CAP_SYS_CHROOT"},
		"none":    nil,
		"many":    {"CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_BPF", "CAP_SYS_TIME"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := verdictSpec(caps)
			spec.Linux.Seccomp = seccomp.DefaultProfile(spec)
			plain := loaded(t, spec)
			spec.Linux.Seccomp = nativeSeccomp(spec)
			if want := []specs.Arch{nativeArch()}; !slices.Equal(spec.Linux.Seccomp.Architectures, want) {
				t.Fatalf("architectures %q, want %q", spec.Linux.Seccomp.Architectures, want)
			}
			native := loaded(t, spec)
			differences, same, killed, err := verdict.CompareReduced(plain, native, []uint32{arch}, architectures...)
			if err != nil || len(differences) > 0 || same == 0 || killed == 0 {
				t.Errorf("%v, %d calls have the same verdict, %d are killed, differences %v", err, same, killed, differences)
			}
			if arch == unix.AUDIT_ARCH_X86_64 {
				spec.Linux.Seccomp = Host{Unsupported: []specs.Arch{specs.ArchX32}}.defaultSeccomp(spec)
				kept := []uint32{arch, unix.AUDIT_ARCH_I386}
				differences, _, _, err := verdict.CompareReduced(plain, loaded(t, spec), kept, architectures...)
				if err != nil || len(differences) > 0 {
					t.Errorf("without x32: %v, differences %v", err, differences)
				}
			}
			_, verdicts, err := verdict.Compare(native, native, arch)
			if err != nil || len(verdicts) < 3 { // allowed, EPERM, ENOSYS
				t.Errorf("%v, verdicts %v", err, verdicts)
			}
		})
	}
}

func verdictSpec(caps []string) *specs.Spec {
	return &specs.Spec{
		Version: version, Root: &specs.Root{},
		Mounts: []specs.Mount{{Destination: "/proc", Type: "proc", Source: "proc"}},
		Process: &specs.Process{
			Args: []string{"/busybox", "sleep", "1000"}, Cwd: "/", Capabilities: &specs.LinuxCapabilities{Bounding: caps},
		},
		Linux: &specs.Linux{
			Namespaces:  []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}},
			CgroupsPath: "/podstead-verdict-test/" + strconv.Itoa(os.Getpid()),
		},
	}
}

// loaded runs a container, and returns its filter.
func loaded(t *testing.T, spec *specs.Spec) *verdict.Filter {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	bundle := t.TempDir()
	spec.Root.Path = filepath.Join(bundle, "rootfs")
	must(os.MkdirAll(filepath.Join(spec.Root.Path, "proc"), 0o755))
	busybox, err := os.ReadFile("/bin/busybox")
	must(err)
	must(os.WriteFile(filepath.Join(spec.Root.Path, "busybox"), busybox, 0o755)) // a program
	text, err := json.Marshal(spec)
	must(err)
	must(os.WriteFile(filepath.Join(bundle, "config.json"), text, 0o600))
	id := "verdict-" + filepath.Base(filepath.Dir(bundle)) + "-" + filepath.Base(bundle)
	runc := func(ctx context.Context, args ...string) error {
		cmd := exec.CommandContext(ctx, "runc", append([]string{"--root", filepath.Join(bundle, "state")}, args...)...)
		out, err := os.Create(filepath.Join(bundle, "log")) // not a pipe, which the container would keep open
		must(err)
		defer out.Close()
		cmd.Stdout, cmd.Stderr = out, out
		err = cmd.Run()
		if text, _ := os.ReadFile(out.Name()); err != nil {
			t.Logf("runc %q: %s", args, text)
		}
		return err
	}
	defer func() {
		if err := runc(context.WithoutCancel(t.Context()), "delete", "--force", id); err != nil {
			t.Error(err)
		}
		parents, _ := filepath.Glob("/sys/fs/cgroup/*/podstead-verdict-test")
		for _, dir := range append(parents, "/sys/fs/cgroup/podstead-verdict-test") {
			_ = os.Remove(dir) // another test may use it
		}
	}()
	pidFile := filepath.Join(bundle, "pid")
	must(runc(t.Context(), "run", "--detach", "--bundle", bundle, "--pid-file", pidFile, id))
	text, err = os.ReadFile(pidFile)
	must(err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must(err)
	program, err := verdict.Loaded(pid, spec.Process.Args[0])
	must(err)
	filter, err := verdict.New(program)
	must(err)
	return filter
}
