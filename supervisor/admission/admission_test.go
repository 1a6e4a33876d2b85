package admission

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// safe is a pod that every level lets run.
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
			SecurityContext: tight(),
		}},
		Volumes: []spec.Volume{{Name: "v", EmptyDir: &spec.EmptyDirVolume{}}},
	}
}

func tight() *spec.SecurityContext {
	return &spec.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &spec.Capabilities{Drop: []string{"ALL"}, Add: []string{"NET_BIND_SERVICE"}},
	}
}

// TestControls: each way to break a control is refused by its level and by those above it, in its field, and by none below.
func TestControls(t *testing.T) {
	const c = "containers[0].securityContext."
	for _, test := range []struct {
		control string
		level   Level // that asks for it
		change  func(p *spec.Pod, c *spec.Container)
		want    string // field: message
	}{
		{"Host Namespaces", Baseline, func(p *spec.Pod, _ *spec.Container) { p.HostNetwork = true }, `hostNetwork: found true, want false or nothing`},
		{"Host Namespaces", Baseline, func(p *spec.Pod, _ *spec.Container) { p.HostPID = true }, `hostPID: found true, want false or nothing`},
		{"Host Namespaces", Baseline, func(p *spec.Pod, _ *spec.Container) { p.HostIPC = true }, `hostIPC: found true, want false or nothing`},
		{"Privileged Containers", Baseline, func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.Privileged = new(true) }, c + `privileged: found true, want false or nothing`},
		{"Capabilities", Baseline, func(_ *spec.Pod, c *spec.Container) {
			c.SecurityContext.Capabilities.Add = []string{"NET_BIND_SERVICE", "NET_RAW"}
		}, c + `capabilities.add[1]: found "NET_RAW", want `},
		{"Capabilities", Restricted, func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.Capabilities.Add = []string{"CHOWN"} }, c + `capabilities.add[0]: found "CHOWN", want "NET_BIND_SERVICE"`},
		{"Capabilities", Restricted, func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.Capabilities.Drop = []string{"CHOWN"} }, c + `capabilities.drop: found no "ALL", want ["ALL"]`},
		{"Capabilities", Restricted, func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.Capabilities = nil }, c + `capabilities.drop: found no "ALL", want ["ALL"]`},
		{"HostPath Volumes", Baseline, func(p *spec.Pod, _ *spec.Container) {
			p.Volumes = append(p.Volumes, spec.Volume{Name: "h", HostPath: &spec.HostPathVolume{Path: "/srv"}})
		}, `volumes[1].hostPath: found "/srv", want another kind of volume`},
		{"Host Ports", Baseline, func(_ *spec.Pod, c *spec.Container) { c.Ports[0].HostPort = 8080 }, `containers[0].ports[0].hostPort: found 8080, want 0 or nothing`},
		{"Host Probes / Lifecycle Hooks", Baseline, func(_ *spec.Pod, c *spec.Container) { c.LivenessProbe.HTTPGet.Host = "10.0.0.1" }, `containers[0].livenessProbe.httpGet.host: found "10.0.0.1", want "" or nothing`},
		{"Host Probes / Lifecycle Hooks", Baseline, func(_ *spec.Pod, c *spec.Container) {
			c.ReadinessProbe = &spec.Probe{TCPSocket: &spec.TCPSocketAction{Host: "h"}}
		}, `containers[0].readinessProbe.tcpSocket.host: found "h", want "" or nothing`},
		{"Host Probes / Lifecycle Hooks", Baseline, func(_ *spec.Pod, c *spec.Container) {
			c.Lifecycle = &spec.Lifecycle{PreStop: &spec.LifecycleHandler{HTTPGet: &spec.HTTPGetAction{Host: "h"}}}
		}, `containers[0].lifecycle.preStop.httpGet.host: found "h", want "" or nothing`},
		{"AppArmor", Baseline, func(p *spec.Pod, _ *spec.Container) {
			p.SecurityContext.AppArmorProfile = &spec.SecurityProfile{Type: "Unconfined"}
		}, `securityContext.appArmorProfile.type: found "Unconfined", want one of RuntimeDefault, Localhost`},
		{"AppArmor", Baseline, func(_ *spec.Pod, c *spec.Container) {
			c.SecurityContext.AppArmorProfile = &spec.SecurityProfile{Type: "Unconfined"}
		}, c + `appArmorProfile.type: found "Unconfined", want one of RuntimeDefault, Localhost`},
		{"AppArmor", Baseline, func(p *spec.Pod, _ *spec.Container) {
			p.Annotations = map[string]string{appArmorAnnotation + "c": "unconfined"}
		}, `annotations.` + appArmorAnnotation + `c: found "unconfined", want `},
		{"/proc Mount Type", Baseline, func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.ProcMount = "Unmasked" }, c + `procMount: found "Unmasked", want "Default" or nothing`},
		{"/proc Mount Type", Restricted, func(p *spec.Pod, c *spec.Container) {
			p.HostUsers, c.SecurityContext.ProcMount = new(false), "Unmasked"
		}, c + `procMount: found "Unmasked", want "Default" or nothing`},
		{"Seccomp", Baseline, func(p *spec.Pod, _ *spec.Container) { p.SecurityContext.SeccompProfile.Type = "Unconfined" }, `securityContext.seccompProfile.type: found "Unconfined", want one of RuntimeDefault, Localhost`},
		{"Seccomp", Baseline, func(_ *spec.Pod, c *spec.Container) {
			c.SecurityContext.SeccompProfile = &spec.SecurityProfile{Type: "Unconfined"}
		}, c + `seccompProfile.type: found "Unconfined", want one of RuntimeDefault, Localhost`},
		{"Seccomp", Restricted, func(p *spec.Pod, _ *spec.Container) { p.SecurityContext.SeccompProfile = nil }, c + `seccompProfile: found nothing, nor in the pod, want type = `},
		{"Sysctls", Baseline, func(p *spec.Pod, _ *spec.Container) { p.SecurityContext.Sysctls[0].Name = "kernel.msgmax" }, `securityContext.sysctls[0].name: found "kernel.msgmax", want one of `},
		{"Privilege Escalation", Restricted, func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.AllowPrivilegeEscalation = nil }, c + `allowPrivilegeEscalation: found nothing, want false`},
		{"Privilege Escalation", Restricted, func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.AllowPrivilegeEscalation = new(true) }, c + `allowPrivilegeEscalation: found true, want false`},
		{"Running as Non-root", Restricted, func(p *spec.Pod, _ *spec.Container) { p.SecurityContext.RunAsNonRoot = nil }, c + `runAsNonRoot: found nothing, nor in the pod, want true in one of them`},
		{"Running as Non-root", Restricted, func(p *spec.Pod, c *spec.Container) {
			p.SecurityContext.RunAsNonRoot, c.SecurityContext.RunAsNonRoot = new(false), new(true)
		}, `securityContext.runAsNonRoot: found false, want true`},
		{"Running as Non-root", Restricted, func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.RunAsNonRoot = new(false) }, c + `runAsNonRoot: found false, want true`},
		{"Running as Non-root user", Restricted, func(p *spec.Pod, _ *spec.Container) { p.SecurityContext.RunAsUser = new(int64(0)) }, `securityContext.runAsUser: found 0, want another user or nothing`},
		{"Running as Non-root user", Restricted, func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.RunAsUser = new(int64(0)) }, c + `runAsUser: found 0, want another user or nothing`},
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
					if r.Reason != lifecycle.ReasonPodSecurity || !strings.HasPrefix(text, test.want) || !strings.Contains(text, ", "+test.control+")") || r.Hint == "" {
						t.Errorf("%s: %+v, want %s by %s", level, r, test.want, test.control)
					}
				}
			}
		})
	}
}

// TestAllowed: what the standards let through, the strictest level does.
func TestAllowed(t *testing.T) {
	for name, change := range map[string]func(p *spec.Pod, c *spec.Container){
		"as it is": func(*spec.Pod, *spec.Container) {},
		"seccomp of the container": func(p *spec.Pod, c *spec.Container) {
			p.SecurityContext.SeccompProfile, c.SecurityContext.SeccompProfile = nil, &spec.SecurityProfile{Type: localhost}
		},
		"non-root of the container": func(p *spec.Pod, c *spec.Container) {
			p.SecurityContext.RunAsNonRoot, c.SecurityContext.RunAsNonRoot = nil, new(true)
		},
		"a user": func(p *spec.Pod, _ *spec.Container) { p.SecurityContext.RunAsUser = new(int64(1000)) },
		"root of a user namespace": func(p *spec.Pod, c *spec.Container) {
			p.HostUsers, p.SecurityContext.RunAsNonRoot, c.SecurityContext.RunAsUser = new(false), nil, new(int64(0))
		},
		"apparmor of the runtime": func(p *spec.Pod, c *spec.Container) {
			c.SecurityContext.AppArmorProfile = &spec.SecurityProfile{Type: runtimeDefault}
			p.Annotations = map[string]string{appArmorAnnotation + "c": "localhost/x"}
		},
		"procMount in words": func(_ *spec.Pod, c *spec.Container) { c.SecurityContext.ProcMount = "Default" },
	} {
		t.Run(name, func(t *testing.T) {
			pod := safe()
			change(pod, &pod.Containers[0])
			if got := (Policy{PodSecurity: Restricted}).Check(pod); len(got) > 0 {
				t.Errorf("refused: %v", got)
			}
		})
	}
}

// TestEveryContainerCounts, and all refusals are told at once.
func TestEveryContainerCounts(t *testing.T) {
	pod := &spec.Pod{
		HostPID: true, InitContainers: []spec.Container{{Name: "i"}}, Containers: []spec.Container{{Name: "c"}}, EphemeralContainers: []spec.Container{{Name: "e"}},
		Volumes:         []spec.Volume{{Name: "h", HostPath: &spec.HostPathVolume{Path: "/etc"}}},
		SecurityContext: &spec.PodSecurityContext{Sysctls: []spec.Sysctl{{Name: "kernel/panic", Value: "1"}}},
	}
	var got []string
	for _, r := range (Policy{PodSecurity: Restricted, HostPaths: []string{"/srv"}}).Check(pod) {
		got = append(got, string(r.Reason)+" "+r.Field)
	}
	want := []string{"PodSecurity hostPID"}
	for _, field := range []string{"capabilities.drop", "", "seccompProfile", "", "allowPrivilegeEscalation", "runAsNonRoot"} {
		if field == "" {
			want = append(want, map[int]string{4: "PodSecurity volumes[0].hostPath", 8: "PodSecurity securityContext.sysctls[0].name"}[len(want)])
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

func TestEphemeral(t *testing.T) {
	loose := &spec.Pod{HostNetwork: true, Containers: []spec.Container{{Name: "c"}}, SecurityContext: safe().SecurityContext}
	p := Policy{PodSecurity: Restricted}
	if got := p.CheckEphemeral(loose, &spec.Container{Name: "e", SecurityContext: tight()}); len(got) > 0 {
		t.Errorf("a container is refused for what its pod is: %v", got)
	}
	if got := p.CheckEphemeral(loose, &spec.Container{Name: "e"}); len(got) != 2 || got[0].Field != "ephemeralContainers[0].securityContext.capabilities.drop" {
		t.Errorf("a loose container: %v", got)
	}
	if len(loose.EphemeralContainers) > 0 {
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
		pod := &spec.Pod{Volumes: []spec.Volume{{Name: "e", EmptyDir: &spec.EmptyDirVolume{}}, {Name: "h", HostPath: &spec.HostPathVolume{Path: test.path}}}}
		got := Policy{HostPaths: test.allowed}.Check(pod)
		if (len(got) == 0) != test.ok {
			t.Errorf("%s below %q: %v", test.path, test.allowed, got)
		}
		for _, r := range got {
			if r.Reason != lifecycle.ReasonHostPathForbidden || r.Field != "volumes[1].hostPath.path" || r.Hint == "" || !strings.Contains(r.Message, strings.Join(test.allowed, ", ")) {
				t.Errorf("%+v", r)
			}
		}
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
		{"kernel.panic", []string{"kernel.panic", "*"}, false}, // it would be the machine's
	} {
		pod := &spec.Pod{SecurityContext: &spec.PodSecurityContext{Sysctls: []spec.Sysctl{{Name: test.name, Value: "1"}}}}
		got := Policy{UnsafeSysctls: test.allowed}.Check(pod)
		if (len(got) == 0) != test.ok {
			t.Errorf("%s with %q: %v", test.name, test.allowed, got)
		}
		for _, r := range got {
			if r.Reason != lifecycle.ReasonSysctlForbidden || r.Field != "securityContext.sysctls[0].name" || !strings.Contains(r.Hint, spec.SysctlName(test.name)) {
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

// What an ephemeral container has from its pod counts as its own: it may come when the policy has become stricter than the pod.
func TestEphemeralInherits(t *testing.T) {
	pod := &spec.Pod{Containers: []spec.Container{{Name: "c"}}, SecurityContext: &spec.PodSecurityContext{
		RunAsUser: new(int64(0)), RunAsNonRoot: new(false),
		SeccompProfile: &spec.SecurityProfile{Type: "Unconfined"}, AppArmorProfile: &spec.SecurityProfile{Type: "Unconfined"},
	}}
	bare := tight()
	bare.RunAsNonRoot, bare.SeccompProfile = nil, nil
	var got []string
	for _, r := range (Policy{PodSecurity: Restricted}).CheckEphemeral(pod, &spec.Container{Name: "e", SecurityContext: bare}) {
		got = append(got, strings.TrimPrefix(r.Field, "ephemeralContainers[0].securityContext."))
	}
	if diff := cmp.Diff([]string{"appArmorProfile.type", "seccompProfile.type", "runAsNonRoot", "runAsUser"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	own := tight()
	own.RunAsUser, own.RunAsNonRoot, own.SeccompProfile = new(int64(1)), new(true), &spec.SecurityProfile{Type: "RuntimeDefault"}
	own.AppArmorProfile = own.SeccompProfile
	if got := (Policy{PodSecurity: Restricted}).CheckEphemeral(pod, &spec.Container{Name: "e", SecurityContext: own}); len(got) > 0 {
		t.Errorf("one that says otherwise: %v", got)
	}
}
