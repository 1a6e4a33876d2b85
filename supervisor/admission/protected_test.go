package admission

import (
	"strings"
	"testing"

	"github.com/podstead/podstead/spec"
)

// TestProtected checks that only privileged containers can mount what overlaps a protected path, at every level.
func TestProtected(t *testing.T) {
	policy := Policy{Protected: []string{"/var/lib/podstead", "/run/podstead/podstead.sock"}}
	for _, test := range []struct {
		path    string
		refused bool
	}{
		{"/var/lib/podstead", true},
		{"/var/lib/podstead/", true},
		{"/var/lib/podstead/pods/x", true},
		{"/var/lib/other/../podstead", true},
		{"/var/lib", true},
		{"/", true},
		{"/run", true},
		{"/run/podstead", true},
		{"/run/podstead/podstead.sock", true},
		{"/var/lib/podstead2", false},
		{"/run/podstead/other", false},
		{"/srv", false},
	} {
		for _, pod := range []struct {
			name       string
			privileged []bool // the containers that mount the volume
			refused    bool
		}{
			{"unprivileged", []bool{false}, true},
			{"privileged", []bool{true}, false},
			{"one of two", []bool{true, false}, true},
			{"not mounted", nil, true},
		} {
			p := &spec.Pod{Name: "p", Volumes: []spec.Volume{{Name: "v", HostPath: &spec.HostPathVolume{Path: test.path}}}}
			for _, privileged := range pod.privileged {
				p.Containers = append(p.Containers, spec.Container{
					SecurityContext: &spec.SecurityContext{Privileged: new(privileged)}, VolumeMounts: []spec.VolumeMount{{Name: "v"}},
				})
			}
			p.Containers = append(p.Containers, spec.Container{Name: "bystander"})
			got := policy.Check(p)
			if refused := len(got) > 0; refused != (test.refused && pod.refused) {
				t.Errorf("%s, %s: %v", test.path, pod.name, got)
			}
			if len(got) > 0 &&
				(got[0].Field != "volumes[0].hostPath.path" ||
					!strings.Contains(got[0].Message, "only privileged containers can mount it")) {
				t.Errorf("%s, %s: %v", test.path, pod.name, got)
			}
		}
	}
}

// TestProtectedEphemeral: an unprivileged ephemeral container cannot mount the volume of a privileged one.
func TestProtectedEphemeral(t *testing.T) {
	policy := Policy{Protected: []string{"/var/log/podstead"}}
	mounts := []spec.VolumeMount{{Name: "v"}}
	p := &spec.Pod{
		Name: "p", Volumes: []spec.Volume{{Name: "v", HostPath: &spec.HostPathVolume{Path: "/var/log"}}},
		Containers: []spec.Container{{SecurityContext: &spec.SecurityContext{Privileged: new(true)}, VolumeMounts: mounts}},
	}
	if got := policy.CheckEphemeral(p, &spec.Container{Name: "e", VolumeMounts: mounts}); len(got) != 1 ||
		got[0].Field != "ephemeralContainers[0].volumeMounts[0].name" {
		t.Errorf("unprivileged: %v", got)
	}
	if got := policy.CheckEphemeral(p, &spec.Container{Name: "e"}); len(got) != 0 {
		t.Errorf("without the volume: %v", got)
	}
	p.Containers[0].SecurityContext.Privileged = new(true)
	e := &spec.Container{Name: "e", VolumeMounts: mounts, SecurityContext: &spec.SecurityContext{Privileged: new(true)}}
	if got := policy.CheckEphemeral(p, e); len(got) != 0 {
		t.Errorf("privileged: %v", got)
	}
}

// TestProtectedWithoutRoot tests that no hint names privileged containers, which a daemon without root rejects.
func TestProtectedWithoutRoot(t *testing.T) {
	pod := &spec.Pod{
		Volumes: []spec.Volume{{Name: "v", HostPath: &spec.HostPathVolume{Path: "/home/ada"}}}, Containers: []spec.Container{{Name: "c"}},
	}
	for _, rootless := range []bool{true, false} {
		got := Policy{Protected: []string{"/home/ada/.local"}, Rootless: rootless}.Check(pod)
		if len(got) != 1 || strings.Contains(got[0].Message+got[0].Hint, "privileged") == rootless {
			t.Errorf("without root %v: %+v", rootless, got)
		}
	}
}
