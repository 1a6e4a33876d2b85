package spec

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// resourcesFile returns a pod file with resources of the pod, its init containers and its containers, as inline tables. An
// init container whose table ends with "S" is a sidecar.
func resourcesFile(pod string, inits, apps []string) string {
	file := "name = \"web\"\nrestartPolicy = \"Always\"\n"
	if pod != "" {
		file += "resources = " + pod + "\n"
	}
	add := func(kind string, list []string) {
		for i, r := range list {
			file += fmt.Sprintf("[[%s]]\nname = \"%c%d\"\nimage = \"a:1\"\n", kind, kind[0], i)
			if r[len(r)-1] == 'S' {
				r = r[:len(r)-1]
				file += "restartPolicy = \"Always\"\n"
			}
			file += "resources = " + r + "\n"
		}
	}
	add("initContainers", inits)
	add("containers", apps)
	return file
}

// TestPodResources checks aggregates, cgroup limits and QoS classes (k8s.io/component-helpers/resource; kubelet: GetPodQOS).
func TestPodResources(t *testing.T) {
	const (
		none  = `{}`
		small = `{ limits = { cpu = "100m", memory = "64Mi" } }`
		large = `{ limits = { cpu = "1", memory = "1Gi" } }`
		ask   = `{ requests = { cpu = "100m" } }`
		cpu   = `{ limits = { cpu = "500m" } }`
		less  = `{ limits = { cpu = "500m", memory = "1Gi" }, requests = { cpu = "100m", memory = "1Mi" } }`
	)
	type list = []string
	for _, test := range []struct {
		name        string
		pod         string
		inits, apps []string
		want        string // class; cpu and memory of requests, limits and cgroup limits
	}{
		{"no resources", "", nil, list{none}, "BestEffort 0 0 0 0 0 0"},
		{"empty pod-level resources", none, nil, list{none, none}, "BestEffort 0 0 0 0 0 0"},
		{
			"ephemeral-storage does not count for the class", "", nil,
			list{`{ limits = { ephemeral-storage = "1Gi" } }`},
			"BestEffort 0 0 0 0 0 0",
		},
		{"limits only", "", nil, list{small}, "Guaranteed 100m 64Mi 100m 64Mi 100m 64Mi"},
		{"two containers", "", nil, list{small, large}, "Guaranteed 1100m 1088Mi 1100m 1088Mi 1100m 1088Mi"},
		{"request only", "", nil, list{ask}, "Burstable 100m 0 0 0 0 0"},
		{"cpu limit only", "", nil, list{cpu}, "Burstable 500m 0 500m 0 500m 0"},
		{"requests below limits", "", nil, list{less}, "Burstable 100m 1Mi 500m 1Gi 500m 1Gi"},
		{"one container without limits", "", nil, list{small, none}, "Burstable 100m 64Mi 100m 64Mi 0 0"},
		{"one container without memory limit", "", nil, list{small, cpu}, "Burstable 600m 64Mi 600m 64Mi 600m 0"},
		{"large init container", "", list{large}, list{small}, "Guaranteed 1 1Gi 1 1Gi 1 1Gi"},
		{"small init container", "", list{small}, list{large}, "Guaranteed 1 1Gi 1 1Gi 1 1Gi"},
		{"init container without limits", "", list{none}, list{small}, "Burstable 100m 64Mi 100m 64Mi 0 0"},
		{"sidecar", "", list{small + "S"}, list{large}, "Guaranteed 1100m 1088Mi 1100m 1088Mi 1100m 1088Mi"},
		{"init container after a sidecar", "", list{small + "S", large}, list{small}, "Guaranteed 1100m 1088Mi 1100m 1088Mi 1100m 1088Mi"},
		{"init container before a sidecar", "", list{large, small + "S"}, list{small}, "Guaranteed 1 1Gi 1 1Gi 1 1Gi"},
		{"pod-level resources only", large, nil, list{none}, "Guaranteed 1 1Gi 1 1Gi 1 1Gi"},
		{"pod-level limits, container request", large, nil, list{ask}, "Burstable 100m 1Gi 1 1Gi 1 1Gi"},
		{"pod-level cpu limit only", cpu, nil, list{small, none}, "Burstable 100m 64Mi 500m 64Mi 500m 0"},
		{"pod-level limits above those of containers", large, nil, list{small, small}, "Burstable 200m 128Mi 1 1Gi 1 1Gi"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := mustParse(t, "web.toml", resourcesFile(test.pod, test.inits, test.apps))
			got := string(p.QOS())
			for _, of := range []func(string) Quantity{p.Request, p.Limit, p.Bound} {
				for _, name := range podResourceNames {
					q := of(name)
					got += " " + q.String()
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if class := (&Pod{}).QOS(); class != QOSBestEffort {
		t.Errorf("QoS class of a pod without containers: %s", class)
	}
}
