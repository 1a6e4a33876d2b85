package oci

import (
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/spec"
)

// TestCheckRootless tests that each field that needs root is rejected with its path, a reason and a hint, and that other pods are accepted.
func TestCheckRootless(t *testing.T) {
	h := Host{Rootless: true, LastID: 65536}
	for _, test := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"hostNetwork = true", []string{"hostNetwork"}},
		{"hostPID = true", []string{"hostPID"}},
		{"hostIPC = true", []string{"hostIPC"}},
		{"shareProcessNamespace = true", []string{"shareProcessNamespace"}},
		{"hostUsers = false", []string{"hostUsers"}},
		{"hostUsers = true", nil},
		{"securityContext = { runAsUser = 65536, runAsGroup = 1, fsGroup = 65536 }", nil},
		{
			"securityContext = { runAsUser = 65537, runAsGroup = 65537, fsGroup = 65537, supplementalGroups = [1, 65537] }",
			[]string{
				"securityContext.runAsUser", "securityContext.runAsGroup", "securityContext.fsGroup",
				"securityContext.supplementalGroups[1]",
			},
		},
		{"CONTAINER\nports = [{ containerPort = 80 }]", nil},
		{"CONTAINER\nports = [{ containerPort = 80, hostPort = 80, protocol = 'UDP' }, { containerPort = 81, protocol = 'SCTP' }]", nil},
		{
			"CONTAINER\nports = [{ containerPort = 80, hostPort = 80 }, { containerPort = 81, hostPort = 81, protocol = 'SCTP' }]",
			[]string{"containers[0].ports[1].hostPort"},
		},
		{"CONTAINER\nresources = { requests = { cpu = 1, memory = '1Mi' } }", nil},
		{
			"CONTAINER\nresources = { limits = { cpu = 1, memory = '1Mi', ephemeral-storage = '1Gi' } }",
			[]string{"containers[0].resources.limits.cpu", "containers[0].resources.limits.memory"},
		},
		{"CONTAINER\ndevices = ['/dev/kvm']", []string{"containers[0].devices"}},
		{"CONTAINER\nsecurityContext = { privileged = true }", []string{"containers[0].securityContext.privileged"}},
		{"CONTAINER\nsecurityContext = { privileged = false, runAsUser = 70000 }", []string{"containers[0].securityContext.runAsUser"}},
	} {
		pod := rootlessPod(t, test.text)
		var got []string
		for _, r := range h.CheckRootless(pod) {
			got = append(got, r.Field)
			if r.Message == "" || r.Hint == "" {
				t.Errorf("%s: %+v", test.text, r)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: rejected for %v, want %v", test.text, got, test.want)
		}
		if got := (Host{}).CheckRootless(pod); len(got) > 0 {
			t.Errorf("%s: with root, rejected for %v", test.text, got)
		}
	}
	pod := rootlessPod(t, "")
	pod.EphemeralContainers = []spec.Container{{Name: "debugger", TargetContainerName: "c"}}
	if got := h.CheckRootless(pod); len(got) != 1 || got[0].Field != "ephemeralContainers[0].targetContainerName" {
		t.Errorf("debugger with a target: %v", got)
	}
}

// rootlessPod returns a pod with lines of its own or, after CONTAINER, of its container.
func rootlessPod(t *testing.T, text string) *spec.Pod {
	t.Helper()
	own, container, _ := strings.Cut(text, "CONTAINER\n")
	pod, err := spec.Parse("pod.toml", []byte("name = 'p'\n"+own+"\n[[containers]]\nname = 'c'\nimage = 'i'\n"+container))
	if err != nil {
		t.Fatal(err)
	}
	return pod
}
