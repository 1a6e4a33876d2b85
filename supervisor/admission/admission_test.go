package admission

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// safe returns a pod that every level admits.
func safe() *spec.Pod {
	return &spec.Pod{
		Name: "p",
		SecurityContext: &spec.PodSecurityContext{
			RunAsNonRoot: new(true), SeccompProfile: &spec.SecurityProfile{Type: runtimeDefault},
			Sysctls: []spec.Sysctl{{Name: "net.ipv4.tcp_syncookies", Value: "1"}},
		},
		Containers: []spec.Container{{
			Name:            "c",
			Ports:           []spec.ContainerPort{{ContainerPort: 80}},
			LivenessProbe:   &spec.Probe{HTTPGet: &spec.HTTPGetAction{Port: spec.Port{Number: 80}}},
			SecurityContext: secure(),
		}},
		Volumes: []spec.Volume{{Name: "v", EmptyDir: &spec.EmptyDirVolume{}}},
	}
}

func secure() *spec.SecurityContext {
	return &spec.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &spec.Capabilities{Drop: []string{"ALL"}, Add: []string{"NET_BIND_SERVICE"}},
	}
}

// TestControls checks that each violation is denied at its level and the stricter ones, in the right field, and admitted at the
// others.
func TestControls(t *testing.T) {
	const c = "containers[0].securityContext."
	for _, test := range []struct {
		control string
		level   Level // the least restrictive level that denies it
		change  func(p *spec.Pod, c *spec.Container)
		want    string // field: message
	}{
		{
			"Host Namespaces", Baseline, func(p *spec.Pod, _ *spec.Container) { p.HostNetwork = true },
			`hostNetwork: true: must be false or unset`,
		},
		{"Host Namespaces", Baseline, func(p *spec.Pod, _ *spec.Container) { p.HostPID = true }, `hostPID: true: must be false or unset`},
		{"Host Namespaces", Baseline, func(p *spec.Pod, _ *spec.Container) { p.HostIPC = true }, `hostIPC: true: must be false or unset`},
		{
			"Privileged Containers", Baseline, func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.Privileged = new(true) },
			c + `privileged: true: must be false or unset`,
		},
		{"Capabilities", Baseline, func(_ *spec.Pod, c *spec.Container) {
			c.SecurityContext.Capabilities.Add = []string{"NET_BIND_SERVICE", "NET_RAW"}
		}, c + `capabilities.add[1]: "NET_RAW": must be `},
		{
			"Capabilities", Restricted, func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.Capabilities.Add = []string{"CHOWN"} },
			c + `capabilities.add[0]: "CHOWN": must be "NET_BIND_SERVICE"`,
		},
		{
			"Capabilities", Restricted, func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.Capabilities.Drop = []string{"CHOWN"} },
			c + `capabilities.drop: must include "ALL"`,
		},
		{
			"Capabilities", Restricted, func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.Capabilities = nil },
			c + `capabilities.drop: must include "ALL"`,
		},
		{"HostPath Volumes", Baseline, func(p *spec.Pod, _ *spec.Container) {
			p.Volumes = append(p.Volumes, spec.Volume{Name: "h", HostPath: &spec.HostPathVolume{Path: "/srv"}})
		}, `volumes[1].hostPath: "/srv": hostPath volumes are forbidden`},
		{
			"Devices", Baseline, func(_ *spec.Pod, c *spec.Container) { c.Devices = []spec.Device{{Path: "/dev/ttyUSB0"}} },
			`containers[0].devices[0]: "/dev/ttyUSB0": devices are forbidden`,
		},
		{
			"Host Ports", Baseline, func(_ *spec.Pod, c *spec.Container) { c.Ports[0].HostPort = 8080 },
			`containers[0].ports[0].hostPort: 8080: must be 0 or unset`,
		},
		{
			"Host Probes / Lifecycle Hooks", Baseline, func(_ *spec.Pod, c *spec.Container) { c.LivenessProbe.HTTPGet.Host = "10.0.0.1" },
			`containers[0].livenessProbe.httpGet.host: "10.0.0.1": must be empty or unset`,
		},
		{"Host Probes / Lifecycle Hooks", Baseline, func(_ *spec.Pod, c *spec.Container) {
			c.ReadinessProbe = &spec.Probe{TCPSocket: &spec.TCPSocketAction{Host: "h"}}
		}, `containers[0].readinessProbe.tcpSocket.host: "h": must be empty or unset`},
		{"Host Probes / Lifecycle Hooks", Baseline, func(_ *spec.Pod, c *spec.Container) {
			c.Lifecycle = &spec.Lifecycle{PreStop: &spec.LifecycleHandler{HTTPGet: &spec.HTTPGetAction{Host: "h"}}}
		}, `containers[0].lifecycle.preStop.httpGet.host: "h": must be empty or unset`},
		{"AppArmor", Baseline, func(p *spec.Pod, _ *spec.Container) {
			p.SecurityContext.AppArmorProfile = &spec.SecurityProfile{Type: "Unconfined"}
		}, `securityContext.appArmorProfile.type: "Unconfined": must be RuntimeDefault or Localhost`},
		{"AppArmor", Baseline, func(_ *spec.Pod, c *spec.Container) {
			c.SecurityContext.AppArmorProfile = &spec.SecurityProfile{Type: "Unconfined"}
		}, c + `appArmorProfile.type: "Unconfined": must be RuntimeDefault or Localhost`},
		{"AppArmor", Baseline, func(p *spec.Pod, _ *spec.Container) {
			p.Annotations = map[string]string{appArmorAnnotation + "c": "unconfined"}
		}, `annotations.` + appArmorAnnotation + `c: "unconfined": must be runtime/default or localhost/<profile>`},
		{
			"/proc Mount Type", Baseline, func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.ProcMount = "Unmasked" },
			c + `procMount: "Unmasked": must be Default or unset`,
		},
		{"/proc Mount Type", Restricted, func(p *spec.Pod, c *spec.Container) {
			p.HostUsers, c.SecurityContext.ProcMount = new(false), "Unmasked"
		}, c + `procMount: "Unmasked": must be Default or unset`},
		{
			"Seccomp", Baseline, func(p *spec.Pod, _ *spec.Container) { p.SecurityContext.SeccompProfile.Type = "Unconfined" },
			`securityContext.seccompProfile.type: "Unconfined": must be RuntimeDefault or Localhost`,
		},
		{"Seccomp", Baseline, func(_ *spec.Pod, c *spec.Container) {
			c.SecurityContext.SeccompProfile = &spec.SecurityProfile{Type: "Unconfined"}
		}, c + `seccompProfile.type: "Unconfined": must be RuntimeDefault or Localhost`},
		{
			"Seccomp", Restricted, func(p *spec.Pod, _ *spec.Container) { p.SecurityContext.SeccompProfile = nil },
			c + `seccompProfile: must be set in the pod or the container`,
		},
		{
			"Sysctls", Baseline, func(p *spec.Pod, _ *spec.Container) { p.SecurityContext.Sysctls[0].Name = "kernel.msgmax" },
			`securityContext.sysctls[0].name: "kernel.msgmax": must be one of `,
		},
		{"Ulimits", Baseline, func(_ *spec.Pod, c *spec.Container) {
			c.Ulimits = []spec.Ulimit{{Name: "nofile", Soft: new(int64(1))}, {Name: "core", Soft: new(int64(0)), Hard: new(int64(-1))}}
		}, `containers[0].ulimits[1]: core=0:-1: must not be unlimited`},
		{"Ulimits", Baseline, func(_ *spec.Pod, c *spec.Container) {
			c.Ulimits = []spec.Ulimit{{Name: "nice", Soft: new(int64(0))}, {Name: "rtprio", Soft: new(int64(0)), Hard: new(int64(5))}}
		}, `containers[0].ulimits[1]: rtprio=0:5: must be 0 or unset`},
		{
			"Privilege Escalation", Restricted, func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.AllowPrivilegeEscalation = nil },
			c + `allowPrivilegeEscalation: must be false`,
		},
		{
			"Privilege Escalation", Restricted,
			func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.AllowPrivilegeEscalation = new(true) },
			c + `allowPrivilegeEscalation: true: must be false`,
		},
		{
			"Running as Non-root", Restricted, func(p *spec.Pod, _ *spec.Container) { p.SecurityContext.RunAsNonRoot = nil },
			c + `runAsNonRoot: must be true in the pod or the container`,
		},
		{"Running as Non-root", Restricted, func(p *spec.Pod, c *spec.Container) {
			p.SecurityContext.RunAsNonRoot, c.SecurityContext.RunAsNonRoot = new(false), new(true)
		}, `securityContext.runAsNonRoot: false: must be true`},
		{
			"Running as Non-root", Restricted, func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.RunAsNonRoot = new(false) },
			c + `runAsNonRoot: false: must be true`,
		},
		{
			"Running as Non-root user", Restricted, func(p *spec.Pod, _ *spec.Container) { p.SecurityContext.RunAsUser = new(int64(0)) },
			`securityContext.runAsUser: 0: must not be 0`,
		},
		{
			"Running as Non-root user", Restricted, func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.RunAsUser = new(int64(0)) },
			c + `runAsUser: 0: must not be 0`,
		},
	} {
		t.Run(test.control+"/"+test.want[:strings.IndexAny(test.want, ":")], func(t *testing.T) {
			pod := safe()
			test.change(pod, &pod.Containers[0])
			for i, level := range []Level{Privileged, Baseline, Restricted} {
				got := (Policy{PodSecurity: level, UnsafeSysctls: []string{"kernel.msg*"}}).Check(pod)
				if allowed := i < slices.Index(Levels(), string(test.level)); allowed != (len(got) == 0) {
					t.Errorf("%s: %v", level, got)
				}
				for _, r := range got {
					text := r.Field + ": " + r.Message
					if r.Reason != lifecycle.ReasonPodSecurity || !strings.HasPrefix(text, test.want) ||
						!strings.Contains(text, ", "+test.control+")") || r.Hint == "" {
						t.Errorf("%s: %+v, want %s by %s", level, r, test.want, test.control)
					}
				}
			}
		})
	}
}

// TestRestrictedAdmits checks that the restricted level does not deny more than the standards do.
func TestRestrictedAdmits(t *testing.T) {
	for name, change := range map[string]func(p *spec.Pod, c *spec.Container){
		"unchanged": func(*spec.Pod, *spec.Container) {},
		"seccomp profile set in the container": func(p *spec.Pod, c *spec.Container) {
			p.SecurityContext.SeccompProfile, c.SecurityContext.SeccompProfile = nil, &spec.SecurityProfile{Type: localhost}
		},
		"runAsNonRoot set in the container": func(p *spec.Pod, c *spec.Container) {
			p.SecurityContext.RunAsNonRoot, c.SecurityContext.RunAsNonRoot = nil, new(true)
		},
		"non-root user": func(p *spec.Pod, _ *spec.Container) { p.SecurityContext.RunAsUser = new(int64(1000)) },
		"root in a user namespace": func(p *spec.Pod, c *spec.Container) {
			p.HostUsers, p.SecurityContext.RunAsNonRoot, c.SecurityContext.RunAsUser = new(false), nil, new(int64(0))
		},
		"AppArmor profile RuntimeDefault": func(p *spec.Pod, c *spec.Container) {
			c.SecurityContext.AppArmorProfile = &spec.SecurityProfile{Type: runtimeDefault}
			p.Annotations = map[string]string{appArmorAnnotation + "c": "localhost/x"}
		},
		"procMount Default": func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.ProcMount = "Default" },
	} {
		t.Run(name, func(t *testing.T) {
			pod := safe()
			change(pod, &pod.Containers[0])
			if got := (Policy{PodSecurity: Restricted}).Check(pod); len(got) > 0 {
				t.Errorf("denied: %v", got)
			}
		})
	}
}

// TestAllViolationsOfAllContainers checks that all kinds of containers are checked, and that all violations are returned.
func TestAllViolationsOfAllContainers(t *testing.T) {
	pod := &spec.Pod{
		HostPID: true, InitContainers: []spec.Container{{Name: "i"}}, Containers: []spec.Container{{Name: "c"}},
		EphemeralContainers: []spec.Container{{Name: "e"}},
		Volumes:             []spec.Volume{{Name: "h", HostPath: &spec.HostPathVolume{Path: "/etc"}}},
		SecurityContext:     &spec.PodSecurityContext{Sysctls: []spec.Sysctl{{Name: "kernel/panic", Value: "1"}}},
	}
	var got []string
	for _, r := range (Policy{PodSecurity: Restricted, HostPaths: []string{"/srv"}}).Check(pod) {
		got = append(got, string(r.Reason)+" "+r.Field)
	}
	want := []string{"PodSecurity hostPID"}
	for _, field := range []string{"capabilities.drop", "", "seccompProfile", "", "allowPrivilegeEscalation", "runAsNonRoot"} {
		if field == "" {
			want = append(want,
				map[int]string{4: "PodSecurity volumes[0].hostPath", 8: "PodSecurity securityContext.sysctls[0].name"}[len(want)])
			continue
		}
		for _, c := range []string{"initContainers", "containers", "ephemeralContainers"} {
			want = append(want, "PodSecurity "+c+"[0].securityContext."+field)
		}
	}
	want = append(want, "HostPathForbidden volumes[0].hostPath.path", "SysctlForbidden securityContext.sysctls[0].name")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEphemeralIgnoresViolationsOfThePod(t *testing.T) {
	insecure := &spec.Pod{HostNetwork: true, Containers: []spec.Container{{Name: "c"}}, SecurityContext: safe().SecurityContext}
	p := Policy{PodSecurity: Restricted}
	if got := p.CheckEphemeral(insecure, &spec.Container{Name: "e", SecurityContext: secure()}); len(got) > 0 {
		t.Errorf("the container is denied because of its pod: %v", got)
	}
	if got := p.CheckEphemeral(insecure, &spec.Container{Name: "e"}); len(got) != 2 ||
		got[0].Field != "ephemeralContainers[0].securityContext.capabilities.drop" {
		t.Errorf("insecure container: %v", got)
	}
	if len(insecure.EphemeralContainers) > 0 {
		t.Error("the pod was changed")
	}
}

func TestHostPaths(t *testing.T) {
	for _, test := range []struct {
		path    string
		allowed []string
		ok      bool
	}{
		{"/etc", nil, true},
		{"/etc", []string{"/"}, true},
		{"/etc", []string{}, false},
		{"/srv", []string{"/srv"}, true},
		{"/srv/", []string{"/srv"}, true},
		{"/srv/web", []string{"/data", "/srv/"}, true},
		{"/srvx", []string{"/srv"}, false},
		{"/", []string{"/srv"}, false},
		{"/srv/../etc", []string{"/srv"}, false},
	} {
		pod := &spec.Pod{
			Volumes: []spec.Volume{
				{Name: "e", EmptyDir: &spec.EmptyDirVolume{}}, {Name: "h", HostPath: &spec.HostPathVolume{Path: test.path}},
			},
		}
		got := Policy{HostPaths: test.allowed}.Check(pod)
		if (len(got) == 0) != test.ok {
			t.Errorf("%s below %q: %v", test.path, test.allowed, got)
		}
		for _, r := range got {
			if r.Reason != lifecycle.ReasonHostPathForbidden || r.Field != "volumes[1].hostPath.path" || r.Hint == "" ||
				!strings.Contains(r.Message, strings.Join(test.allowed, ", ")) {
				t.Errorf("%+v", r)
			}
		}
	}
}

func TestDevices(t *testing.T) {
	for _, test := range []struct {
		path    string
		allowed []string
		ok      bool
	}{
		{"/dev/sda", nil, true},
		{"/dev/sda", []string{}, false},
		{"/dev/sda", []string{"/dev"}, true},
		{"/dev/ttyUSB0", []string{"/dev/serial", "/dev/ttyUSB0"}, true},
		{"/dev/serial/by-id/x", []string{"/dev/serial"}, true},
		{"/dev/ttyUSB01", []string{"/dev/ttyUSB0"}, false},
		{"/dev/serial/../sda", []string{"/dev/serial"}, false},
	} {
		pod := &spec.Pod{InitContainers: []spec.Container{{Devices: []spec.Device{{Path: "/dev/serial/a"}, {Path: test.path}}}}}
		got := Policy{Devices: test.allowed}.Check(pod)
		got = slices.DeleteFunc(got, func(r lifecycle.Refusal) bool { return r.Field == "initContainers[0].devices[0].path" })
		if (len(got) == 0) != test.ok {
			t.Errorf("%s below %q: %v", test.path, test.allowed, got)
		}
		for _, r := range got {
			if r.Reason != lifecycle.ReasonDeviceForbidden || r.Field != "initContainers[0].devices[1].path" || r.Hint == "" ||
				!strings.Contains(r.Message, strings.Join(test.allowed, ", ")) {
				t.Errorf("%+v", r)
			}
		}
	}
}

// TestCDIPolicy: a CDI device is allowed by its name or its kind, never by a path.
func TestCDIPolicy(t *testing.T) {
	pod := &spec.Pod{Containers: []spec.Container{{Name: "c", Devices: []spec.Device{{CDI: "vendor.com/class=a"}}}}}
	for _, test := range []struct {
		allowed []string
		want    bool
	}{
		{nil, true},
		{[]string{}, false},
		{[]string{"/dev"}, false},
		{[]string{"/"}, false},
		{[]string{"vendor.com/class"}, true},
		{[]string{"/dev", "vendor.com/class=a"}, true},
		{[]string{"vendor.com/class=b", "vendor.com/cla"}, false},
	} {
		got := Policy{Devices: test.allowed}.Check(pod)
		if (len(got) == 0) != test.want {
			t.Errorf("%q: %v", test.allowed, got)
		}
		for _, r := range got {
			if r.Reason != lifecycle.ReasonDeviceForbidden || r.Field != "containers[0].devices[0].cdi" ||
				!strings.HasPrefix(r.Message, `"vendor.com/class=a": `) || !strings.HasPrefix(r.Hint, "add the part before =") {
				t.Errorf("%+v", r)
			}
		}
	}
	other := &spec.Pod{Containers: []spec.Container{{Devices: []spec.Device{{Path: "/vendor.com/class"}}}}}
	if got := (Policy{Devices: []string{"vendor.com/class"}}).Check(other); len(got) == 0 {
		t.Error("the kind of CDI devices allows a path")
	}
}

func TestSysctls(t *testing.T) {
	for _, test := range []struct {
		name    string
		allowed []string
		ok      bool
	}{
		{"net.ipv4.tcp_syncookies", nil, true},
		{"net/ipv4/tcp_syncookies", nil, true},
		{"net.core.somaxconn", nil, false},
		{"net.core.somaxconn", []string{"net.core.somaxconn"}, true},
		{"net/core/somaxconn", []string{"net.core.*"}, true},
		{"net.core.somaxconn", []string{"net/core/somaxconn"}, true},
		{"net.core.somaxconn", []string{"net.core.som"}, false},
		{"kernel.msgmax", []string{"net.*", "kernel.msg*"}, true},
		{"kernel.panic", []string{"kernel.panic", "*"}, false}, // not namespaced
	} {
		pod := &spec.Pod{SecurityContext: &spec.PodSecurityContext{Sysctls: []spec.Sysctl{{Name: test.name, Value: "1"}}}}
		got := Policy{UnsafeSysctls: test.allowed}.Check(pod)
		if (len(got) == 0) != test.ok {
			t.Errorf("%s with %q: %v", test.name, test.allowed, got)
		}
		for _, r := range got {
			if r.Reason != lifecycle.ReasonSysctlForbidden || r.Field != "securityContext.sysctls[0].name" ||
				!strings.Contains(r.Hint, spec.SysctlName(test.name)) {
				t.Errorf("%+v", r)
			}
		}
	}
	for pattern, ok := range map[string]bool{
		"net.core.*": true, "net.*": true, "kernel.shm*": true, "kernel.sem": true, "fs.mqueue.*": true, "net/core/somaxconn": true,
		"*": false, "": false, "kernel.*": false, "kernel.panic": false, "net.*.x": false, "vm.overcommit_memory": false,
	} {
		if err := CheckSysctlPattern(pattern); (err == nil) != ok {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

// TestEphemeralInherits checks settings that an ephemeral container inherits from its pod. The policy may have become stricter
// since the pod was admitted.
func TestEphemeralInherits(t *testing.T) {
	pod := &spec.Pod{Containers: []spec.Container{{Name: "c"}}, SecurityContext: &spec.PodSecurityContext{
		RunAsUser: new(int64(0)), RunAsNonRoot: new(false),
		SeccompProfile: &spec.SecurityProfile{Type: "Unconfined"}, AppArmorProfile: &spec.SecurityProfile{Type: "Unconfined"},
	}}
	bare := secure()
	bare.RunAsNonRoot, bare.SeccompProfile = nil, nil
	var got []string
	for _, r := range (Policy{PodSecurity: Restricted}).CheckEphemeral(pod, &spec.Container{Name: "e", SecurityContext: bare}) {
		got = append(got, strings.TrimPrefix(r.Field, "ephemeralContainers[0].securityContext."))
	}
	if diff := cmp.Diff([]string{"appArmorProfile.type", "seccompProfile.type", "runAsNonRoot", "runAsUser"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	own := secure()
	own.RunAsUser, own.RunAsNonRoot, own.SeccompProfile = new(int64(1)), new(true), &spec.SecurityProfile{Type: "RuntimeDefault"}
	own.AppArmorProfile = own.SeccompProfile
	if got := (Policy{PodSecurity: Restricted}).CheckEphemeral(pod, &spec.Container{Name: "e", SecurityContext: own}); len(got) > 0 {
		t.Errorf("container with its own settings: %v", got)
	}
}
