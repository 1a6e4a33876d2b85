package oci

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/google/go-cmp/cmp"
	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/spec"
)

func input() Input {
	pod := &spec.Pod{Name: "web", Containers: []spec.Container{{Name: "app"}}}
	return Input{
		ID: "id", Pod: pod, Container: &pod.Containers[0], Image: imagespec.ImageConfig{Cmd: []string{"true"}, WorkingDir: "/srv"},
		Hostname: "web", Namespaces: Namespaces{Network: "/ns/net", IPC: "/ns/ipc", UTS: "/ns/uts"},
		Files:       []File{{Path: "/dev/shm", Source: "/ns/shm"}, {Path: "/etc/hosts", Source: "/ns/hosts"}},
		CgroupsPath: "/pods/web/id",
		Host:        Host{Seccomp: true, Resource: true, NrOpen: 1 << 30},
	}
}

func build(t *testing.T, in Input) *specs.Spec {
	t.Helper()
	s, err := Spec(namespaces.WithNamespace(t.Context(), "test"), in)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSpec(t *testing.T) {
	s := build(t, input())
	if s.Version != "1.0.2" || s.Process.Cwd != "/srv" || s.Process.NoNewPrivileges || s.Linux.CgroupsPath != "/pods/web/id" {
		t.Errorf("version %s, working directory %s, no new privileges %v, cgroup %s", s.Version, s.Process.Cwd, s.Process.NoNewPrivileges,
			s.Linux.CgroupsPath)
	}
	want := []specs.LinuxNamespace{
		{Type: "pid"}, {Type: "mount"}, {Type: "network", Path: "/ns/net"}, {Type: "ipc", Path: "/ns/ipc"}, {Type: "uts", Path: "/ns/uts"},
	}
	if diff := cmp.Diff(want, s.Linux.Namespaces); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	if s.Linux.Seccomp == nil || len(s.Linux.MaskedPaths) == 0 || len(s.Linux.ReadonlyPaths) == 0 ||
		len(s.Process.Capabilities.Ambient) > 0 {
		t.Errorf("seccomp %v, masked %v, read-only %v, capabilities %+v",
			s.Linux.Seccomp, s.Linux.MaskedPaths, s.Linux.ReadonlyPaths, s.Process.Capabilities)
	}
}

func TestSpecDependsOnHost(t *testing.T) {
	for _, test := range []struct {
		name  string
		host  Host
		files uint64
		score int
	}{
		{"all", Host{Resource: true, NrOpen: 1 << 30, HardLimits: map[string]uint64{"nofile": 1024}, OOMScoreAdj: -500}, 1 << 20, 1000},
		{"the kernel's limit", Host{Resource: true, NrOpen: 4096, HardLimits: map[string]uint64{"nofile": 1024}}, 4096, 1000},
		{"without CAP_SYS_RESOURCE", Host{NrOpen: 1 << 30, HardLimits: map[string]uint64{"nofile": 20000}}, 20000, 1000},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := input()
			in.Host = test.host
			s := build(t, in)
			if l := s.Process.Rlimits; len(l) != 1 || l[0].Soft != test.files || l[0].Hard != test.files {
				t.Errorf("limits %+v, want %d open files", l, test.files)
			}
			if *s.Process.OOMScoreAdj != test.score {
				t.Errorf("OOM score %d, want %d", *s.Process.OOMScoreAdj, test.score)
			}
			if s.Linux.Seccomp != nil {
				t.Error("got a seccomp filter on a kernel without seccomp")
			}
		})
	}
	in := input()
	in.Host.UnifiedCgroups, in.Network, in.UTS = true, "", ""
	want := []specs.LinuxNamespace{{Type: "pid"}, {Type: "mount"}, {Type: "ipc", Path: "/ns/ipc"}, {Type: "cgroup"}}
	if diff := cmp.Diff(want, build(t, in).Linux.Namespaces); diff != "" {
		t.Errorf("namespaces in the host network, with cgroup v2 (-want +got):\n%s", diff)
	}
	if m := (Host{OOMScoreAdj: 200}); m.oomScore(-500) != 200 || m.oomScore(300) != 300 {
		t.Error("the score was lowered without CAP_SYS_RESOURCE")
	}
}

// The limit of processes is explicitly unlimited if the host has the controller and it would have another default.
func TestPidsAreUnlimited(t *testing.T) {
	in := input()
	in.Host.Controllers.Names = []string{cgroup.Pids}
	for _, test := range []struct {
		unified bool
		path    string
		want    int64
	}{{true, "/pods/id", -1}, {true, "pods.slice:podstead:id", -1}, {false, "pods.slice:podstead:id", 1 << 22}} {
		in.Host.UnifiedCgroups, in.CgroupsPath = test.unified, test.path
		if pids := build(t, in).Linux.Resources.Pids; pids == nil || pids.Limit == nil || *pids.Limit != test.want {
			t.Errorf("limit of processes %+v, want %d", pids, test.want)
		}
	}
	in.CgroupsPath = "/pods/id"
	if pids := build(t, in).Linux.Resources.Pids; pids != nil {
		t.Errorf("limit of processes %+v in a cgroup of v1 whose default is no limit", pids)
	}
	in.Host.Controllers.Names = []string{cgroup.CPU}
	if pids := build(t, in).Linux.Resources.Pids; pids != nil {
		t.Errorf("limit of processes %+v without the controller", pids)
	}
}

func TestNoCommand(t *testing.T) {
	in := input()
	in.Image = imagespec.ImageConfig{}
	if _, err := Spec(namespaces.WithNamespace(t.Context(), "test"), in); !errors.Is(err, ErrNoCommand) {
		t.Errorf("got %v, want %v", err, ErrNoCommand)
	}
}

// at returns the mounts at a path, last to first.
func at(s *specs.Spec, path string) []string {
	var sources []string
	for _, m := range s.Mounts {
		if m.Destination == path {
			sources = append(sources, m.Source+" "+strings.Join(m.Options, ","))
		}
	}
	return sources
}

func volume(at, source string) specs.Mount {
	return specs.Mount{Destination: at, Type: "bind", Source: source, Options: []string{"rbind", "rprivate", "rw"}}
}

func TestMounts(t *testing.T) {
	in := input()
	in.Mounts = []specs.Mount{volume("/a/b/c", "/data"), volume("/a", "/host"), volume("/etc/hosts", "/data")}
	s := build(t, in)
	for path, want := range map[string][]string{
		"/run":       nil,
		"/dev/shm":   {"/ns/shm rbind,rprivate,rw"},
		"/a":         {"/host rbind,rprivate,rw"},
		"/a/b/c":     {"/data rbind,rprivate,rw"},
		"/etc/hosts": {"/data rbind,rprivate,rw"},
	} {
		if diff := cmp.Diff(want, at(s, path)); diff != "" {
			t.Errorf("mounted at %s (-want +got):\n%s", path, diff)
		}
	}
	index := func(path string) int {
		return slices.IndexFunc(s.Mounts, func(m specs.Mount) bool { return m.Destination == path })
	}
	if index("/a") > index("/a/b/c") {
		t.Error("/a is mounted over /a/b/c")
	}
	in.Mounts = []specs.Mount{volume("/dev/shm/a", "/data"), volume("/x", "/host")} // in the image, /x may be a link to /dev or /proc
	s = build(t, in)
	for _, path := range []string{"/proc", "/dev", "/dev/pts", "/dev/mqueue", "/sys", "/sys/fs/cgroup"} {
		if index("/x") > index(path) || index("/etc/hosts") > index(path) || index("/dev/shm/a") < index(path) {
			t.Errorf("order of mounts around %s: %v", path, s.Mounts)
		}
	}
	in.Mounts, in.Propagation = []specs.Mount{volume("/dev", "/host")}, "rshared"
	s = build(t, in)
	if got := append(at(s, "/dev/shm"), at(s, "/dev/pts")...); len(got) > 0 || s.Linux.RootfsPropagation != "rshared" {
		t.Errorf("below a volume at /dev: %v; propagation %q", got, s.Linux.RootfsPropagation)
	}
	in.Mounts = []specs.Mount{volume("/etc/hosts/d", "/data"), volume("/etc", "/host")}
	if s = build(t, in); index("/etc") > index("/etc/hosts") || index("/etc/hosts") > index("/etc/hosts/d") {
		t.Errorf("a volume at /etc hides the files of the pod: %v", s.Mounts)
	}
}

func TestDetectHost(t *testing.T) {
	h, err := DetectHost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if h.NrOpen == 0 || len(h.HardLimits) != len(spec.UlimitNames) {
		t.Errorf("host %+v has no limits", h)
	}
}

// TestAnnotations expects that annotations of a pod and labels of its image do not reach the OCI runtime, which would follow them.
func TestAnnotations(t *testing.T) {
	planted := map[string]string{
		"run.oci.seccomp_bpf_data": "BgAAAAAA/38=", "run.oci.hooks.stdout": "/tmp/x", "run.oci.handler": "krun",
		"run.oci.keep_original_groups": "1",
		"run.oci.seccomp.plugins":      "/tmp/x.so", "org.criu.config": "/tmp/x", "podstead.io/process": "/etc/shadow",
		"podstead.io/pid-namespace": "/etc/passwd",
	}
	in := input()
	in.Pod.Annotations, in.Image.Labels = planted, planted
	if s := build(t, in); len(s.Annotations) > 0 {
		t.Errorf("annotations of the specification: %v", s.Annotations)
	}
	in.CgroupsPath = "podstead-web.slice:podstead:id"
	if s := build(t, in); !maps.Equal(s.Annotations, map[string]string{"run.oci.systemd.subgroup": ""}) {
		t.Errorf("annotations of the specification of a container in a scope: %v", s.Annotations)
	}
}
