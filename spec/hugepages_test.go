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
		want, problem    string
	}{
		{"HugePages", nil, []Container{requests("hugepages-2Mi"), requests("hugepages-2Mi")}, "2Mi", ""},
		{"HugePages", []Container{requests("hugepages-1Gi")}, []Container{requests()}, "1Gi", ""},
		{"HugePages-1Gi", nil, []Container{requests("hugepages-1Gi"), requests("hugepages-2Mi")}, "1Gi", ""},
		{"HugePages", nil, []Container{requests("hugepages-1Gi"), requests("hugepages-2Mi")}, "", several},
		{"HugePages-1Gi", nil, []Container{requests("hugepages-2Mi")}, "", none},
		{"HugePages", nil, []Container{requests()}, "", none},
		{"HugePages2Mi", nil, []Container{requests("hugepages-2Mi")}, "", none},
	} {
		p := Pod{InitContainers: test.init, Containers: test.containers}
		got, err := p.PageSizeOf(&EmptyDirVolume{Medium: test.medium})
		if got != test.want || (err != nil) != (test.problem != "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: %q, %v, want %q, %q", test.medium, got, err, test.want, test.problem)
		}
	}
}
