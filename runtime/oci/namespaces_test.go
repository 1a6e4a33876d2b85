package oci

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/spec"
)

func TestNamespaces(t *testing.T) {
	all := Namespaces{Network: "/ns/net", IPC: "/ns/ipc", UTS: "/ns/uts"}
	shared := all
	shared.PID = "/ns/pid"
	mount, own := specs.LinuxNamespace{Type: "mount"}, specs.LinuxNamespace{Type: "pid"}
	network := specs.LinuxNamespace{Type: "network", Path: "/ns/net"}
	ipc := specs.LinuxNamespace{Type: "ipc", Path: "/ns/ipc"}
	uts := specs.LinuxNamespace{Type: "uts", Path: "/ns/uts"}
	for _, test := range []struct {
		name    string
		pod     spec.Pod
		paths   Namespaces
		unified bool
		want    []specs.LinuxNamespace
	}{
		{name: "default", paths: all, want: []specs.LinuxNamespace{own, mount, network, ipc, uts}},
		{name: "cgroup v2", paths: all, unified: true, want: []specs.LinuxNamespace{own, mount, network, ipc, uts, {Type: "cgroup"}}},
		{name: "hostPID", pod: spec.Pod{HostPID: true}, paths: all, want: []specs.LinuxNamespace{mount, network, ipc, uts}},
		{
			name: "hostIPC", pod: spec.Pod{HostIPC: true}, paths: Namespaces{Network: "/ns/net", UTS: "/ns/uts"},
			want: []specs.LinuxNamespace{own, mount, network, uts},
		},
		{
			name: "shareProcessNamespace", pod: spec.Pod{ShareProcessNamespace: true}, paths: shared,
			want: []specs.LinuxNamespace{mount, {Type: "pid", Path: "/ns/pid"}, network, ipc, uts},
		},
		{name: "all of the host", pod: spec.Pod{HostPID: true, HostIPC: true, HostNetwork: true}, want: []specs.LinuxNamespace{mount}},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := input()
			in.Pod, in.Namespaces, in.Host.UnifiedCgroups = &test.pod, test.paths, test.unified
			if diff := cmp.Diff(test.want, build(t, in).Linux.Namespaces); diff != "" {
				t.Errorf("namespaces (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPauseCreatesOnlyPIDNamespace(t *testing.T) {
	s := Pause(PauseInput{
		Program: "/usr/bin/shim", CgroupsPath: "/pods/web/pause", Host: Host{Seccomp: true, Resource: true, UnifiedCgroups: true},
		Namespaces: Namespaces{Network: "/ns/net", IPC: "/ns/ipc", UTS: "/ns/uts", PID: "/ns/pid"},
	})
	want := []specs.LinuxNamespace{
		{Type: "network", Path: "/ns/net"},
		{Type: "ipc", Path: "/ns/ipc"},
		{Type: "uts", Path: "/ns/uts"},
		{Type: "pid"},
		{Type: "mount"},
		{Type: "cgroup"},
	}
	if diff := cmp.Diff(want, s.Linux.Namespaces); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	if c := s.Process.Capabilities; len(c.Bounding)+len(c.Effective)+len(c.Permitted)+len(c.Inheritable)+len(c.Ambient) > 0 {
		t.Errorf("capabilities %+v", c)
	}
	if !s.Process.NoNewPrivileges || s.Process.User.UID == 0 || s.Linux.Seccomp == nil || !s.Root.Readonly ||
		*s.Process.OOMScoreAdj != -998 {
		t.Errorf("process %+v, root %+v, seccomp %v", s.Process, s.Root, s.Linux.Seccomp)
	}
	if s.Linux.CgroupsPath != "/pods/web/pause" || s.Mounts[len(s.Mounts)-1].Source != "/usr/bin/shim" {
		t.Errorf("cgroup %s, mounts %+v", s.Linux.CgroupsPath, s.Mounts)
	}
}
