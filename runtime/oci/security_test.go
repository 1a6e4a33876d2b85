package oci

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/spec"
)

// hostCaps are the capabilities of a daemon that does not have all.
var hostCaps = []string{"CAP_CHOWN", "CAP_NET_ADMIN", "CAP_SYS_ADMIN", "CAP_SYS_TIME"}

// secured returns an input whose container has a security context.
func secured(c spec.SecurityContext) Input {
	in := input()
	in.Container.SecurityContext = &c
	in.Host.Capabilities = hostCaps
	return in
}

func TestCapabilities(t *testing.T) {
	defaults := []string{"CAP_CHOWN", "CAP_KILL"}
	list := func(names ...string) []string { return names }
	for _, test := range []struct {
		name      string
		add, drop []string
		want      []string
		err       string
	}{
		{name: "defaults", want: list("CAP_CHOWN", "CAP_KILL")},
		{name: "add", add: list("SYS_TIME", "CHOWN"), want: list("CAP_CHOWN", "CAP_KILL", "CAP_SYS_TIME")},
		{name: "drop", drop: list("CHOWN", "SYS_TIME"), want: list("CAP_KILL")},
		{name: "drop all", drop: list("ALL"), want: nil},
		{
			name: "drop all and add an unavailable one", add: list("SYS_TIME", "KILL"), drop: list("ALL"),
			err: "capability KILL cannot be added",
		},
		{name: "drop all and add an available one", add: list("SYS_TIME"), drop: list("ALL"), want: list("CAP_SYS_TIME")},
		{name: "add all and drop one", add: list("ALL"), drop: list("SYS_ADMIN"), want: list("CAP_CHOWN", "CAP_NET_ADMIN", "CAP_SYS_TIME")},
		{name: "add all and drop all", add: list("ALL", "SYS_TIME"), drop: list("ALL"), want: list("CAP_SYS_TIME")},
		{name: "add and drop the same", add: list("SYS_TIME"), drop: list("SYS_TIME"), want: list("CAP_CHOWN", "CAP_KILL")},
		{name: "add one that the host does not have", add: list("SYS_RESOURCE"), err: "capability SYS_RESOURCE cannot be added"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := capabilities(&spec.Capabilities{Add: test.add, Drop: test.drop}, defaults, hostCaps)
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if err == nil && !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if diff := cmp.Diff(list("CAP_CHOWN", "CAP_KILL"), defaults); diff != "" {
		t.Errorf("the defaults were changed (-want +got):\n%s", diff)
	}
	got := build(t,
		secured(spec.SecurityContext{Capabilities: &spec.Capabilities{Drop: list("ALL"), Add: list("SYS_TIME")}})).Process.Capabilities
	sets := list("CAP_SYS_TIME")
	if diff := cmp.Diff(&specs.LinuxCapabilities{Bounding: sets, Effective: sets, Permitted: sets}, got); diff != "" {
		t.Errorf("sets (-want +got):\n%s", diff)
	}
}

// TestPaths compares the masked and read-only paths with the kubelet's list.
func TestPaths(t *testing.T) {
	s := build(t, secured(spec.SecurityContext{ProcMount: "Default"}))
	throttle := regexp.MustCompile(`^/sys/devices/system/cpu/cpu[0-9]+/thermal_throttle$`)
	masked := slices.DeleteFunc(slices.Sorted(slices.Values(s.Linux.MaskedPaths)), throttle.MatchString)
	want := []string{
		"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug",
		"/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware",
	}
	if diff := cmp.Diff(want, masked); diff != "" {
		t.Errorf("masked (-want +got):\n%s", diff)
	}
	want = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
	if diff := cmp.Diff(want, s.Linux.ReadonlyPaths); diff != "" {
		t.Errorf("read-only (-want +got):\n%s", diff)
	}
	s = build(t, secured(spec.SecurityContext{ProcMount: "Unmasked"}))
	if len(s.Linux.MaskedPaths)+len(s.Linux.ReadonlyPaths) > 0 || s.Linux.Seccomp == nil {
		t.Errorf("unmasked: %v and %v, seccomp %v", s.Linux.MaskedPaths, s.Linux.ReadonlyPaths, s.Linux.Seccomp)
	}
}

func TestSimplePrivileges(t *testing.T) {
	for _, test := range []struct {
		allow, readOnly *bool
		nnp, root       bool
	}{{nil, nil, false, false}, {new(true), new(false), false, false}, {new(false), new(true), true, true}} {
		s := build(t, secured(spec.SecurityContext{AllowPrivilegeEscalation: test.allow, ReadOnlyRootFilesystem: test.readOnly}))
		if s.Process.NoNewPrivileges != test.nnp || s.Root.Readonly != test.root {
			t.Errorf("%+v: no new privileges %v, read-only root %v", test, s.Process.NoNewPrivileges, s.Root.Readonly)
		}
	}
}

// TestReadOnlyRootFiles checks which files of the pod are read-only in a container with a read-only root file system.
func TestReadOnlyRootFiles(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		in := secured(spec.SecurityContext{ReadOnlyRootFilesystem: &readOnly})
		in.Files = []File{
			{Path: "/etc/hosts", Source: "/ns/hosts"},
			{Path: "/etc/resolv.conf", Source: "/ns/resolv.conf", WithRoot: true},
			{Path: "/etc/hostname", Source: "/ns/hostname", WithRoot: true},
		}
		for _, m := range build(t, in).Mounts {
			want := readOnly && m.Destination != "/etc/hosts"
			if got := slices.Contains(m.Options, "ro"); strings.HasPrefix(m.Destination, "/etc/") && got != want {
				t.Errorf("read-only root %v: %s read-only %v, want %v", readOnly, m.Destination, got, want)
			}
		}
	}
}

func TestPrivileged(t *testing.T) {
	in := secured(spec.SecurityContext{
		Privileged: new(true), Capabilities: &spec.Capabilities{Drop: []string{"ALL"}},
		SeccompProfile:  &spec.SecurityProfile{Type: "Localhost", LocalhostProfile: new("not-read.json")},
		AppArmorProfile: &spec.SecurityProfile{Type: "RuntimeDefault"},
	})
	in.Host.UnifiedCgroups, in.Host.AppArmor = true, true
	in.Devices = []specs.LinuxDevice{{Path: "/dev/fuse", Type: "c", Major: 10, Minor: 229}}
	if name := LocalhostSeccomp(in.Pod, in.Container); name != "" {
		t.Errorf("profile file of a privileged container: %s", name)
	}
	s := build(t, in)
	if diff := cmp.Diff(hostCaps, s.Process.Capabilities.Effective); diff != "" || len(s.Process.Capabilities.Ambient) > 0 {
		t.Errorf("capabilities (-want +got):\n%s", diff)
	}
	if s.Linux.Seccomp != nil || s.Process.ApparmorProfile != "" || len(s.Linux.MaskedPaths)+len(s.Linux.ReadonlyPaths) > 0 {
		t.Errorf("seccomp %v, AppArmor %q, masked %v, read-only %v",
			s.Linux.Seccomp, s.Process.ApparmorProfile, s.Linux.MaskedPaths, s.Linux.ReadonlyPaths)
	}
	if diff := cmp.Diff(in.Devices, s.Linux.Devices); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}, s.Linux.Resources.Devices); diff != "" {
		t.Errorf("allowed devices (-want +got):\n%s", diff)
	}
	for _, m := range s.Mounts {
		if (m.Type == "sysfs" || m.Type == "cgroup") && (slices.Contains(m.Options, "ro") || !slices.Contains(m.Options, "rw")) {
			t.Errorf("%s is mounted %v", m.Destination, m.Options)
		}
	}
	for _, ns := range s.Linux.Namespaces {
		if ns.Type == specs.CgroupNamespace {
			t.Error("it has its own cgroup namespace, want the host's")
		}
	}
	s = build(t, secured(spec.SecurityContext{Privileged: new(false)}))
	if len(s.Linux.Devices) > 0 || len(s.Linux.Resources.Devices) != 1 || s.Linux.Resources.Devices[0].Allow {
		t.Errorf("not privileged: devices %v, allowed %v", s.Linux.Devices, s.Linux.Resources.Devices)
	}
}

// mounting reports whether a filter has a rule for mount(2). The default filter allows it only with CAP_SYS_ADMIN.
func mounting(s *specs.LinuxSeccomp) bool {
	return s != nil && slices.ContainsFunc(s.Syscalls, func(rule specs.LinuxSyscall) bool {
		return slices.Contains(rule.Names, "mount") && rule.Action == specs.ActAllow
	})
}

func TestSeccompOf(t *testing.T) {
	profile := func(kind string) *spec.SecurityProfile {
		return &spec.SecurityProfile{Type: kind, LocalhostProfile: new("a/p.json")}
	}
	const text = `{ "defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{ "names": ["chmod"], "action": "SCMP_ACT_ERRNO" }] }`
	for _, test := range []struct {
		name     string
		pod, own *spec.SecurityProfile
		none     bool // the kernel does not support seccomp
		text     string
		def      specs.LinuxSeccompAction // the default action; "" for no filter
		err      string
	}{
		{name: "default", def: specs.ActErrno},
		{name: "default without seccomp", none: true},
		{name: "profile of the pod", pod: profile("Unconfined")},
		{
			name: "profile of the container overrides the pod's", pod: profile("Unconfined"), own: profile("RuntimeDefault"),
			def: specs.ActErrno,
		},
		{
			name: "RuntimeDefault without seccomp", own: profile("RuntimeDefault"), none: true,
			err: "profile RuntimeDefault: the kernel does not support seccomp",
		},
		{
			name: "Localhost without seccomp", own: profile("Localhost"), none: true,
			err: "profile Localhost: the kernel does not support seccomp",
		},
		{name: "unconfined without seccomp", own: profile("Unconfined"), none: true},
		{name: "Localhost", own: profile("Localhost"), text: text, def: specs.ActAllow},
		{name: "Localhost of the pod", pod: profile("Localhost"), text: text, def: specs.ActAllow},
		{name: "invalid JSON", own: profile("Localhost"), text: "{", err: "seccomp profile /seccomp/p.json: read JSON: unexpected end"},
		{
			name: "empty profile", own: profile("Localhost"), text: "{}",
			err: `/seccomp/p.json: defaultAction must be one of SCMP_ACT_*, got ""`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := secured(spec.SecurityContext{SeccompProfile: test.own})
			in.Pod.SecurityContext = &spec.PodSecurityContext{SeccompProfile: test.pod}
			in.Host.Seccomp = !test.none
			in.Seccomp = Profile{Path: "/seccomp/p.json", Text: []byte(test.text)}
			s, err := Spec(namespaces.WithNamespace(t.Context(), "test"), in)
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if err != nil {
				return
			}
			var got specs.LinuxSeccompAction
			if s.Linux.Seccomp != nil {
				got = s.Linux.Seccomp.DefaultAction
			}
			if got != test.def {
				t.Errorf("default action %q, want %q", got, test.def)
			}
		})
	}
	if mounting(build(t, secured(spec.SecurityContext{})).Linux.Seccomp) {
		t.Error("the default filter allows mount without CAP_SYS_ADMIN")
	}
	add := spec.SecurityContext{Capabilities: &spec.Capabilities{Add: []string{"SYS_ADMIN"}}}
	if !mounting(build(t, secured(add)).Linux.Seccomp) {
		t.Error("the default filter does not match the container's capabilities")
	}
}

func TestAppArmorOf(t *testing.T) {
	profile := func(kind string) *spec.SecurityProfile { return &spec.SecurityProfile{Type: kind} }
	local := func(name string) *spec.SecurityProfile {
		return &spec.SecurityProfile{Type: "Localhost", LocalhostProfile: &name}
	}
	for _, test := range []struct {
		name       string
		pod, own   *spec.SecurityProfile
		privileged bool
		with       string // the profile or error on a host with AppArmor
		without    string
	}{
		{name: "not set", with: DefaultAppArmor},
		{name: "privileged", privileged: true},
		{name: "RuntimeDefault", own: profile("RuntimeDefault"), with: DefaultAppArmor, without: "the host does not support AppArmor"},
		{name: "unconfined", pod: profile("Unconfined")},
		{
			name: "profile of the container overrides the pod's", pod: profile("Unconfined"), own: profile("RuntimeDefault"),
			with: DefaultAppArmor, without: "the host does not support AppArmor",
		},
		{name: "Localhost", own: local("mine"), with: "mine", without: "the host does not support AppArmor"},
		{name: "Localhost, privileged", own: local("mine"), privileged: true, with: "mine", without: "the host does not support AppArmor"},
		{
			name: "Localhost without a name", pod: local(""), with: "localhostProfile is required",
			without: "the host does not support AppArmor",
		},
	} {
		for _, has := range []bool{true, false} {
			in := secured(spec.SecurityContext{AppArmorProfile: test.own, Privileged: &test.privileged})
			in.Pod.SecurityContext = &spec.PodSecurityContext{AppArmorProfile: test.pod}
			in.Host.AppArmor = has
			got, err := appArmorOf(&in)
			if err != nil {
				got = err.Error()
			}
			want := test.without
			if has {
				want = test.with
			}
			if got != want && (err == nil || want == "" || !strings.HasSuffix(got, want)) {
				t.Errorf("%s, AppArmor %v: %q, want %q", test.name, has, got, want)
			}
		}
	}
}
