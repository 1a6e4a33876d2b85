package oci

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/spec"
)

// ulimit returns a limit. hard is missing if it is nil.
func ulimit(name string, soft int64, hard *int64) spec.Ulimit {
	return spec.Ulimit{Name: name, Soft: &soft, Hard: hard}
}

func TestRlimits(t *testing.T) {
	in := input()
	in.Container.Ulimits = []spec.Ulimit{
		ulimit("stack", 1, new(int64(spec.Unlimited))), ulimit("core", spec.Unlimited, nil),
		ulimit("nofile", 1024, new(int64(spec.Unlimited))),
	}
	want := []specs.POSIXRlimit{
		{Type: "RLIMIT_CORE", Soft: unix.RLIM_INFINITY, Hard: unix.RLIM_INFINITY},
		{Type: "RLIMIT_NOFILE", Soft: 1024, Hard: 1 << 30},
		{Type: "RLIMIT_STACK", Soft: 1, Hard: unix.RLIM_INFINITY},
	}
	if diff := cmp.Diff(want, build(t, in).Process.Rlimits); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(resources) != len(spec.UlimitNames) {
		t.Errorf("%d resources for %d names", len(resources), len(spec.UlimitNames))
	}
	for _, name := range spec.UlimitNames {
		if _, known := resources[name]; !known {
			t.Errorf("%s is not known", name)
		}
	}
}

// TestCheckProcesses tests that limits that the host cannot set are refused with the field and a hint.
func TestCheckProcesses(t *testing.T) {
	host := Host{
		Controllers: cgroup.Controllers{Names: []string{cgroup.Pids}}, NrOpen: 4096, Resource: true,
		HardLimits: map[string]uint64{"nofile": 1024, "core": 0, "stack": unix.RLIM_INFINITY},
	}
	weak, noPids := host, host
	weak.Resource, noPids.Controllers = false, cgroup.Controllers{}
	for _, test := range []struct {
		name   string
		host   Host
		limit  spec.Ulimit
		pids   *int64
		of     int64
		refuse string
	}{
		{"nothing", host, ulimit("core", 0, nil), nil, 0, ""},
		{"raised", host, ulimit("core", spec.Unlimited, nil), new(int64(5)), 5, ""},
		{"files of the kernel", host, ulimit("nofile", spec.Unlimited, nil), nil, 0, ""},
		{
			"more files than the kernel has", host, ulimit("nofile", 1, new(int64(4097))), nil, 0,
			"containers[0].ulimits[0]: nofile 4097: the kernel allows at most 4096 open files",
		},
		{
			"more files than the kernel has, up to its maximum", host, ulimit("nofile", 4097, new(int64(spec.Unlimited))), nil, 0,
			"containers[0].ulimits[0]: nofile 4097: the kernel allows at most 4096 open files",
		},
		{"all files of the kernel", host, ulimit("nofile", 4096, new(int64(spec.Unlimited))), nil, 0, ""},
		{"own limit", weak, ulimit("nofile", 1024, nil), nil, 0, ""},
		{"own unlimited", weak, ulimit("stack", spec.Unlimited, nil), nil, 0, ""},
		{
			"raised without CAP_SYS_RESOURCE", weak, ulimit("core", 0, new(int64(spec.Unlimited))), nil, 0,
			"containers[0].ulimits[0]: core unlimited: the daemon has no CAP_SYS_RESOURCE, and its own limit is 0",
		},
		{"processes without a limit of all pods", host, ulimit("core", 0, nil), new(int64(5)), 0, ""},
		{"more processes", host, ulimit("core", 0, nil), new(int64(6)), 5, "pidsLimit: 6: must be at most 5, the limit of all pods"},
		{"no controller", noPids, ulimit("core", 0, nil), new(int64(5)), 0, "pidsLimit: this host has no cgroup controller pids"},
	} {
		pod := &spec.Pod{PidsLimit: test.pids, Containers: []spec.Container{{Ulimits: []spec.Ulimit{test.limit}}}}
		got := ""
		for _, r := range test.host.CheckProcesses(pod, test.of) {
			got += r.Field + ": " + r.Message
			if r.Hint == "" {
				t.Errorf("%s: no hint", test.name)
			}
		}
		if got != test.refuse {
			t.Errorf("%s: %q, want %q", test.name, got, test.refuse)
		}
	}
}

func TestPidsLimitOfPod(t *testing.T) {
	for _, test := range []struct {
		own       *int64
		all, want int64
	}{{nil, 0, 0}, {nil, 5, 5}, {new(int64(3)), 5, 3}, {new(int64(3)), 0, 3}, {new(int64(7)), 5, 5}} {
		if got := (Host{}).PodLimits(&spec.Pod{PidsLimit: test.own}, test.all).Pids; got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
}

// The init process gets the command as its arguments, and its program is read-only.
func TestInitProcess(t *testing.T) {
	in := input()
	in.Container.Init = true
	in.Files = append(in.Files, File{Path: spec.InitPath, Source: "/monitor", Program: true})
	s := build(t, in)
	if got := fmt.Sprint(s.Process.Args); got != "[/dev/podstead-init true]" {
		t.Errorf("arguments %s", got)
	}
	want := specs.Mount{
		Destination: "/dev/podstead-init", Type: "bind", Source: "/monitor",
		Options: []string{"rbind", "rprivate", "ro", "nosuid", "nodev"},
	}
	if diff := cmp.Diff(want, s.Mounts[len(s.Mounts)-1]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	in.Image.Cmd = nil
	if args, _ := Process(&in); len(args) > 0 {
		t.Errorf("without a command: %q", args)
	}
}
