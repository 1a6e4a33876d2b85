package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
)

func TestBeyondBaseline(t *testing.T) {
	if got := BeyondBaseline(safe()); len(got) != 0 {
		t.Errorf("a safe pod requests %v", got)
	}
	p := safe()
	p.HostPID = true
	p.Containers = append(p.Containers, spec.Container{
		Name: "d", Ports: []spec.ContainerPort{{HostPort: 80}},
		SecurityContext: &spec.SecurityContext{
			Privileged: new(true), SeccompProfile: &spec.SecurityProfile{Type: "Unconfined"},
			Capabilities: &spec.Capabilities{Add: []string{"SYS_ADMIN"}},
		},
		LivenessProbe: &spec.Probe{TCPSocket: &spec.TCPSocketAction{Host: "127.0.0.1"}},
	}, spec.Container{Name: "e", SecurityContext: &spec.SecurityContext{Privileged: new(true)}})
	p.SecurityContext.Sysctls = []spec.Sysctl{{Name: "net.core.somaxconn"}}
	for _, path := range []string{"/", "/a\x1b[31m"} {
		p.Volumes = append(p.Volumes, spec.Volume{Name: "h", HostPath: &spec.HostPathVolume{Path: path}})
	}
	want := []string{
		`capabilities.add SYS_ADMIN`, `hostPID`, `hostPath "/a\x1b[31m"`, `hostPath /`, `hostPort 80`,
		`livenessProbe.tcpSocket.host 127.0.0.1`,
		`privileged`, `seccompProfile Unconfined`, `sysctls net.core.somaxconn`,
	}
	if diff := cmp.Diff(want, BeyondBaseline(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestIncludes(t *testing.T) {
	for _, test := range []struct {
		level, other Level
		want         bool
	}{
		{Restricted, Baseline, true},
		{Restricted, Privileged, true},
		{Baseline, Baseline, true},
		{Baseline, Restricted, false},
		{Privileged, Baseline, false},
	} {
		if got := test.level.Includes(test.other); got != test.want {
			t.Errorf("%s includes %s: %v", test.level, test.other, got)
		}
	}
}
