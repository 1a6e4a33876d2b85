package spec

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// TestPageSizeOf: an emptyDir has pages of the size that containers request, which its medium must name if there are several.
func TestPageSizeOf(t *testing.T) {
	requests := func(names ...string) Container {
		list := ResourceList{"cpu": resource.MustParse("1")}
		for _, name := range names {
			list[name] = resource.MustParse("1Gi")
		}
		return Container{Resources: Resources{Requests: list}}
	}
	const none, several = "no resource request for huge pages", "can't be used if container requests multiple huge page sizes"
	for _, test := range []struct {
		medium           string
		init, containers []Container
		want             int64
		problem          string
	}{
		{"HugePages", nil, []Container{requests("hugepages-2Mi"), requests("hugepages-2Mi")}, 2 << 20, ""},
		{"HugePages", nil, nil, 2 << 20, ""}, // of the pod
		{"HugePages", []Container{requests("hugepages-1Gi")}, []Container{requests()}, 1 << 30, ""},
		{"HugePages-1Gi", nil, []Container{requests("hugepages-1Gi"), requests("hugepages-2Mi")}, 1 << 30, ""},
		{"HugePages", nil, []Container{requests("hugepages-1Gi"), requests("hugepages-2Mi")}, 0, several},
		{"HugePages-1Gi", nil, []Container{requests("hugepages-2Mi")}, 0, none},
		{"HugePages", nil, []Container{requests()}, 0, none},
		{"HugePages-2Mi", nil, []Container{requests("hugepages-2048Ki")}, 2 << 20, ""},
		{"HugePages", nil, []Container{requests("hugepages-2048Ki"), requests("hugepages-2Mi")}, 2 << 20, ""},
		{"HugePages-", nil, []Container{requests("hugepages-2Mi")}, 0, none},
		{"HugePages2Mi", nil, []Container{requests("hugepages-2Mi")}, 0, none},
	} {
		p := Pod{InitContainers: test.init, Containers: test.containers}
		if len(test.containers) == 0 {
			p.Resources = requests("hugepages-2Mi").Resources
		}
		got, err := p.PageSizeOf(&EmptyDirVolume{Medium: test.medium})
		if got != test.want || (err != nil) != (test.problem != "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: %d, %v, want %d, %q", test.medium, got, err, test.want, test.problem)
		}
	}
}

// TestPodHugePages: the huge pages of a pod are those that its containers have at the same time, or those of the pod. Where the pod has
// other resources of its own, they have the defaults of Kubernetes.
func TestPodHugePages(t *testing.T) {
	const (
		none = `{}`
		two  = `{ limits = { cpu = 1, hugepages-2Mi = "2Mi" } }`
		four = `{ limits = { cpu = 1, hugepages-2Mi = "4Mi" } }`
		six  = `{ limits = { cpu = 1, hugepages-2Mi = "6Mi" } }`
		cpu  = `{ limits = { cpu = 3 } }`
		ask  = `{ limits = { cpu = 3 }, requests = { hugepages-2Mi = "6Mi" } }`
	)
	type list = []string
	for _, test := range []struct {
		name, pod   string
		inits, apps []string
		want        string // request of the pod, pod-level request and limit
	}{
		{"none", "", nil, list{none}, "0 - -"},
		{"sum", "", nil, list{two, four, none}, "6Mi - -"},
		{"large init container", "", list{six}, list{two}, "6Mi - -"},
		{"small init container", "", list{two}, list{four}, "4Mi - -"},
		{"sidecar", "", list{two + "S"}, list{four}, "6Mi - -"},
		{"of the pod", six, nil, list{none, two}, "6Mi 6Mi 6Mi"},
		{"pod-level CPU", cpu, nil, list{two, two, none}, "4Mi 4Mi 4Mi"},
		{"pod-level request", ask, nil, list{two, two}, "6Mi 6Mi 6Mi"},
	} {
		p := mustParse(t, "web.toml", resourcesFile(test.pod, test.inits, test.apps))
		got := p.Request("hugepages-2Mi")
		text := got.String()
		for _, list := range []ResourceList{p.Resources.Requests, p.Resources.Limits} {
			if q, set := list["hugepages-2Mi"]; set {
				text += " " + q.String()
			} else {
				text += " -"
			}
		}
		if text != test.want {
			t.Errorf("%s: %s, want %s", test.name, text, test.want)
		}
	}
}
