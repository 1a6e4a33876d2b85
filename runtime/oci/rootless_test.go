package oci

import (
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/spec"
)

// TestCheckRootless tests that each field that needs root is rejected with its path, a reason and a hint, and that other pods are accepted.
func TestCheckRootless(t *testing.T) {
	h := Host{Rootless: true, LastID: 65536, NoCgroups: "no systemd"}
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
		{"keepID = 65535", nil},
		{
			"CONTAINER\nresources.limits = { hugepages-2Mi = '2Mi', cpu = 1 }\n\n[volumes.huge.emptyDir]\nmedium = 'HugePages'",
			[]string{"containers[0].resources.limits.cpu", "volumes[0].emptyDir.medium"},
		},
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
		{"pidsLimit = 10", []string{"pidsLimit"}},
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
		if got := (Host{}).CheckRootless(pod); len(got) > 0 && pod.KeepID == nil {
			t.Errorf("%s: with root, rejected for %v", test.text, got)
		}
	}
	pod := rootlessPod(t, "keepID = 1000")
	small := h
	small.LastID = 999
	for _, host := range []Host{{}, small} {
		if got := host.CheckRootless(pod); len(got) != 1 || got[0].Field != "keepID" || got[0].Hint == "" {
			t.Errorf("keepID with IDs to %d: %+v", host.LastID, got)
		}
	}
	pod = rootlessPod(t, "")
	pod.EphemeralContainers = []spec.Container{{Name: "debugger", TargetContainerName: "c"}}
	if got := h.CheckRootless(pod); len(got) != 1 || got[0].Field != "ephemeralContainers[0].targetContainerName" {
		t.Errorf("debugger with a target: %v", got)
	}
}

// TestCheckDelegated tests that only those limits are rejected whose controller is not delegated, with the name of the controller, and what
// is rejected for a pod that was started without cgroups.
func TestCheckDelegated(t *testing.T) {
	pod := rootlessPod(t, "shareProcessNamespace = true\npidsLimit = 10\nCONTAINER\nresources.limits = { cpu = 1, memory = '1Mi' }")
	pod.EphemeralContainers = []spec.Container{{Name: "debugger", TargetContainerName: "c"}}
	const cpuField, memoryField = "containers[0].resources.limits.cpu", "containers[0].resources.limits.memory"
	all := []string{"shareProcessNamespace", "ephemeralContainers[0].targetContainerName", cpuField, memoryField, "pidsLimit"}
	for _, test := range []struct {
		controllers string
		want        []string
	}{
		{"cpu memory pids", nil},
		{"memory pids", []string{cpuField}},
		{"memory", []string{cpuField, "pidsLimit"}},
		{"", []string{cpuField, memoryField, "pidsLimit"}},
	} {
		h := Host{Rootless: true, LastID: 65536}
		h.Controllers.Names, h.Controllers.Bandwidth = strings.Fields(test.controllers), true
		var got []string
		for _, r := range slices.Concat(h.CheckRootless(pod), h.CheckResources(pod), h.CheckProcesses(pod, 0)) {
			got = append(got, r.Field)
			if !strings.Contains(r.Message, ", which is not delegated to this user") || r.Hint == "" {
				t.Errorf("%s: %+v", test.controllers, r)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: rejected for %v, want %v", test.controllers, got, test.want)
		}
		got = nil
		for _, r := range h.CheckWithoutCgroups(pod) {
			got = append(got, r.Field)
			if !strings.Contains(r.Message, "this pod was started without one, delete it and apply it again") {
				t.Errorf("%s: %+v", test.controllers, r)
			}
		}
		if !slices.Equal(got, all) {
			t.Errorf("%q: a pod without cgroups is rejected for %v, want %v", test.controllers, got, all)
		}
	}
	h := Host{Rootless: true}
	h.Controllers.Names = []string{"cpu"}
	if got := h.CheckResources(pod); len(got) != 1 || got[0].Field != cpuField {
		t.Errorf("a kernel without CPU bandwidth control: %v", got)
	}
	if got := (Host{Rootless: true}).CheckWithoutCgroups(rootlessPod(t, "")); len(got) > 0 {
		t.Errorf("a pod that needs no cgroup: %v", got)
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
