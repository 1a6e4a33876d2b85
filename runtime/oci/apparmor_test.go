package oci

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestCheckAppArmor checks that a profile which the host cannot enforce rejects the pod, also RuntimeDefault, and that none is needed.
func TestCheckAppArmor(t *testing.T) {
	of := func(kind string) *spec.SecurityProfile {
		if kind == "" {
			return nil
		}
		return &spec.SecurityProfile{Type: kind}
	}
	for _, test := range []struct {
		pod, container string
		want           []string
	}{
		{"", "", nil},
		{"Unconfined", "Unconfined", nil},
		{"RuntimeDefault", "", []string{"securityContext.appArmorProfile"}},
		{"", "RuntimeDefault", []string{"containers[0].securityContext.appArmorProfile"}},
		{"Localhost", "Localhost", []string{"securityContext.appArmorProfile", "containers[0].securityContext.appArmorProfile"}},
	} {
		own := &spec.SecurityContext{AppArmorProfile: of(test.container)}
		pod := &spec.Pod{
			SecurityContext: &spec.PodSecurityContext{AppArmorProfile: of(test.pod)},
			Containers:      []spec.Container{{Name: "c", SecurityContext: own}, {Name: "d"}},
		}
		var got []string
		for _, r := range (Host{}).CheckAppArmor(pod) {
			if r.Reason != lifecycle.ReasonAppArmor || r.Message == "" || r.Hint == "" {
				t.Errorf("%+v", r)
			}
			got = append(got, r.Field)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q %q (-want +got):\n%s", test.pod, test.container, diff)
		}
		if list := (Host{AppArmor: true}).CheckAppArmor(pod); list != nil {
			t.Errorf("on a host with AppArmor: %v", list)
		}
	}
}

// TestCheckAppArmorWithoutRoot tests that the message does not blame the host.
func TestCheckAppArmorWithoutRoot(t *testing.T) {
	pod := &spec.Pod{SecurityContext: &spec.PodSecurityContext{AppArmorProfile: &spec.SecurityProfile{Type: "RuntimeDefault"}}}
	got := Host{Rootless: true}.CheckAppArmor(pod)
	if len(got) != 1 || !strings.Contains(got[0].Message, "without root") || strings.Contains(got[0].Hint, "kernel command line") {
		t.Errorf("%+v", got)
	}
}
