//go:build e2e

package shim

import (
	"bytes"
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

	"github.com/podstead/podstead/test/purecgroup"
	"github.com/podstead/podstead/test/verdict"
)

// TestVerdicts compares the filter that crun compiles with the filter that the kernel has loaded for a container with the kept one, for
// every system call by number and architecture, with arguments.
func TestVerdicts(t *testing.T) {
	purecgroup.Run(t, nil, verdicts)
}

func verdicts(t *testing.T) {
	localhost := &specs.LinuxSeccomp{
		DefaultAction: specs.ActAllow, Architectures: seccomp.DefaultProfile(containerSpec(nil)).Architectures,
		Syscalls: []specs.LinuxSyscall{
			{Names: []string{"mkdir"}, Action: specs.ActErrno, ErrnoRet: new(uint(42))},
			{
				Names: []string{"kill"}, Action: specs.ActKillProcess,
				Args: []specs.LinuxSeccompArg{{Index: 1, Value: 1 << 40, Op: specs.OpGreaterThan}},
			},
		},
	}
	for name, profile := range map[string]*specs.LinuxSeccomp{
		"default":            seccomp.DefaultProfile(containerSpec(nil)),
		"default, all":       seccomp.DefaultProfile(containerSpec([]string{"CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_BPF"})),
		"denies two of them": localhost,
	} {
		t.Run(name, func(t *testing.T) {
			store, state := filterStore{Dir: filepath.Join(t.TempDir(), "filters")}, t.TempDir()
			spec := containerSpec(nil)
			spec.Linux.Seccomp = profile
			compiled := start(t, store, state, "compiled", spec)
			kept := start(t, store, state, "kept", spec)
			if annotated(t, state, "compiled") || !annotated(t, state, "kept") {
				t.Fatal("want the annotation in the second specification only")
			}
			if !bytes.Equal(compiled, kept) {
				t.Errorf("the kept filter has %d bytes and differs from the compiled one with %d", len(kept), len(compiled))
			}
			a, err := verdict.New(compiled)
			if err != nil {
				t.Fatal(err)
			}
			b, err := verdict.New(kept)
			if err != nil {
				t.Fatal(err)
			}
			differences, counts, err := verdict.Compare(a, b, all()...)
			if err != nil || len(differences) > 0 || len(counts) < 3 {
				t.Errorf("%v, differences %v, verdicts %v", err, differences, counts)
			}
		})
	}
}

func all() []uint32 {
	var list []uint32
	for _, arch := range verdict.Architectures {
		list = append(list, arch)
	}
	return slices.Sorted(slices.Values(list))
}

func containerSpec(caps []string) *specs.Spec {
	return &specs.Spec{
		Version: "1.0.2", Root: &specs.Root{Path: "rootfs"},
		Mounts: []specs.Mount{{Destination: "/proc", Type: "proc", Source: "proc"}},
		Process: &specs.Process{
			Args: []string{"/busybox", "sleep", "1000"}, Cwd: "/", Capabilities: &specs.LinuxCapabilities{Bounding: caps},
		},
		Linux: &specs.Linux{
			Namespaces:  []specs.LinuxNamespace{{Type: "pid"}, {Type: "mount"}},
			CgroupsPath: "/podstead-filter-test/" + strconv.Itoa(os.Getpid()),
		},
	}
}

// start runs a container until the end of the test, and returns its filter.
func start(t *testing.T, store filterStore, state, id string, spec *specs.Spec) []byte {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	bundle := filepath.Join(state, "bundle-"+id)
	root := filepath.Join(bundle, "rootfs")
	for _, dir := range []string{"proc", "dev"} {
		must(os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	busybox, err := os.ReadFile("/bin/busybox")
	must(err)
	must(os.WriteFile(filepath.Join(root, "busybox"), busybox, 0o755)) // a program
	text, err := json.Marshal(spec)
	must(err)
	must(os.WriteFile(filepath.Join(bundle, "config.json"), text, 0o644)) // as containerd does
	keep, err := store.Use(bundle, "crun")
	must(err)
	crun := func(ctx context.Context, args ...string) error {
		cmd := exec.CommandContext(ctx, "crun", append([]string{"--root", state}, args...)...)
		log := filepath.Join(state, "log") // not a pipe, which the container would keep open
		out, err := os.Create(log)
		must(err)
		defer out.Close()
		cmd.Stdout, cmd.Stderr = out, out
		err = cmd.Run()
		if text, _ := os.ReadFile(log); err != nil {
			t.Logf("crun %q: %s", args, text)
		}
		return err
	}
	pidFile := filepath.Join(bundle, "pid")
	t.Cleanup(func() {
		if err := crun(context.WithoutCancel(t.Context()), "delete", "--force", id); err != nil {
			t.Error(err)
		}
		for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
			parents, _ := filepath.Glob(dir + "/podstead-filter-test")
			for _, parent := range parents {
				_ = os.Remove(parent) // the other container may use it
			}
		}
	})
	must(crun(t.Context(), "run", "--detach", "--bundle", bundle, "--pid-file", pidFile, id))
	if keep != nil {
		must(keep(filepath.Join(state, id, "seccomp.bpf")))
	}
	pid, err := os.ReadFile(pidFile)
	must(err)
	n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	must(err)
	program, err := verdict.Loaded(n, spec.Process.Args[0])
	must(err)
	return program
}

// annotated reports whether the specification of a container has the annotation.
func annotated(t *testing.T, state, id string) bool {
	t.Helper()
	var spec specs.Spec
	text, err := os.ReadFile(filepath.Join(state, "bundle-"+id, "config.json"))
	if err == nil {
		err = json.Unmarshal(text, &spec)
	}
	if err != nil || spec.Linux.Seccomp == nil {
		t.Fatalf("%s: %v", text, err)
	}
	return spec.Annotations[filterAnnotation] != ""
}
