package oci

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/spec"
)

// TestAddDevices checks that the permissions of two entries for one path add up, that nodes are mounted in a user namespace, and that a
// privileged container keeps its rule for all devices.
func TestAddDevices(t *testing.T) {
	device := func(path, access string) Device {
		node := specs.LinuxDevice{Path: path, Type: "c", Major: 116, Minor: 33}
		return Device{LinuxDevice: node, Source: "/dev/snd/timer", Access: access}
	}
	granted := []Device{device("/dev/snd/timer", "r"), device("/dev/snd/timer", "rwm"), device("/dev/t", "w"), device("/dev/none", "")}
	for _, test := range []struct {
		name          string
		in            Input
		nodes, mounts []string
		rules         []string
	}{
		{
			"node",
			Input{},
			[]string{"/dev/snd/timer", "/dev/t", "/dev/none"},
			nil,
			[]string{"r", "rwm", "w"},
		},
		{
			"user namespace",
			Input{Namespaces: Namespaces{User: "/ns/user"}},
			nil,
			[]string{"/dev/snd/timer", "/dev/t", "/dev/none"},
			[]string{"r", "rwm", "w"},
		},
		{
			"privileged",
			Input{Container: &spec.Container{SecurityContext: &spec.SecurityContext{Privileged: new(true)}}},
			[]string{"/dev/snd/timer", "/dev/t", "/dev/none"},
			nil, nil,
		},
	} {
		in := test.in
		in.Granted = granted
		if in.Container == nil {
			in.Container = &spec.Container{}
		}
		s := &specs.Spec{Linux: &specs.Linux{Resources: &specs.LinuxResources{}}}
		addDevices(s, &in)
		var nodes, mounts, rules []string
		for _, d := range s.Linux.Devices {
			nodes = append(nodes, d.Path)
		}
		for _, m := range s.Mounts {
			mounts = append(mounts, m.Destination)
		}
		for _, r := range s.Linux.Resources.Devices {
			rules = append(rules, r.Access)
		}
		if diff := cmp.Diff([][]string{test.nodes, test.mounts, test.rules}, [][]string{nodes, mounts, rules}); diff != "" {
			t.Errorf("%s: nodes, mounts and rules (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestAddDeviceMounts: a mount of a device does not hide a volume, at its destination or below it.
func TestAddDeviceMounts(t *testing.T) {
	s := &specs.Spec{Mounts: []specs.Mount{{Destination: "/data"}}}
	lib := specs.Mount{Destination: "/lib/gpu.so", Source: "/lib/gpu.so.1", Type: "bind"}
	if err := addDeviceMounts(s, &Input{DeviceMounts: []specs.Mount{lib}}); err != nil || len(s.Mounts) != 2 {
		t.Errorf("%v, %+v", err, s.Mounts)
	}
	s.Mounts = []specs.Mount{{Destination: "/usr"}, {Destination: "/usr/lib-other"}, {Destination: "/usr/lib/a"}, {Destination: "/data"}}
	in := &Input{DeviceMounts: []specs.Mount{{Destination: "/usr/lib/b/c"}, {Destination: "/usr/lib"}, {Destination: "/usr/lib/b"}}}
	if err := addDeviceMounts(s, in); err != nil {
		t.Error(err)
	}
	var order []string
	for _, m := range s.Mounts {
		order = append(order, m.Destination)
	}
	want := []string{"/usr", "/usr/lib-other", "/usr/lib", "/usr/lib/a", "/data", "/usr/lib/b", "/usr/lib/b/c"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	err := addDeviceMounts(s, &Input{DeviceMounts: []specs.Mount{{Destination: "/data"}}})
	if err == nil || !strings.Contains(err.Error(), "/data of a CDI device: the container has another mount there") {
		t.Errorf("volume: %v", err)
	}
}
