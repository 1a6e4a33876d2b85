package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// amounts returns a list of cpu, memory and ephemeral-storage; empty: absent.
func amounts(cpu, memory, storage string) spec.ResourceList {
	list := spec.ResourceList{}
	for name, text := range map[string]string{"cpu": cpu, "memory": memory, "ephemeral-storage": storage} {
		if text != "" {
			list[name] = resource.MustParse(text)
		}
	}
	return list
}

func requesting(name, cpu, memory, storage string) *spec.Pod {
	return &spec.Pod{Name: name, Containers: []spec.Container{{
		Name: "c", Resources: spec.Resources{Requests: amounts(cpu, memory, storage)},
	}}}
}

func TestCheckRequests(t *testing.T) {
	host := amounts("2", "4Gi", "10Gi")
	sidecar := requesting("sidecar", "1", "", "")
	sidecar.InitContainers = []spec.Container{
		{Name: "s", RestartPolicy: spec.RestartAlways, Resources: spec.Resources{Requests: amounts("1500m", "", "")}},
	}
	large := requesting("large", "1", "", "")
	large.InitContainers = []spec.Container{{Name: "i", Resources: spec.Resources{Requests: amounts("2", "", "")}}}
	podLevel := requesting("level", "4", "", "")
	podLevel.Resources.Requests = amounts("500m", "", "")
	for _, test := range []struct {
		name   string
		policy Policy
		pod    *spec.Pod
		others []*spec.Pod
		host   spec.ResourceList
		want   []string // reason and message
	}{
		{"no requests", Policy{}, requesting("p", "", "", ""), nil, host, nil},
		{"all of the host", Policy{}, requesting("p", "2", "4Gi", "10Gi"), nil, host, nil},
		{"no request, nothing free", Policy{}, requesting("p", "", "", ""), []*spec.Pod{requesting("a", "3", "8Gi", "")}, host, nil},
		{"another resource is exceeded", Policy{}, requesting("p", "1", "", ""), []*spec.Pod{requesting("a", "", "8Gi", "")}, host, nil},
		{"init container as large as the host", Policy{}, large, nil, host, nil},
		{"pod-level request below those of containers", Policy{}, podLevel, nil, host, nil},
		{"unknown capacity", Policy{}, requesting("p", "9", "1Ti", ""), nil, spec.ResourceList{}, nil},
		{"ignored", Policy{IgnoreRequests: true}, requesting("p", "9", "1Ti", ""), nil, host, nil},
		{
			"too much cpu",
			Policy{},
			requesting("p", "2001m", "", ""), nil, host,
			[]string{
				"OutOfcpu: containers[0].resources.requests.cpu: Node didn't have enough resource: cpu, requested: 2001, used: 0, " +
					"capacity: 2000; free: 2",
			},
		},
		{
			"sidecars count with containers",
			Policy{},
			sidecar, nil, host,
			[]string{
				"OutOfcpu: initContainers[0].resources.requests.cpu: Node didn't have enough resource: cpu, requested: 2500, used: 0, " +
					"capacity: 2000; free: 2",
			},
		},
		{
			"everything, in the kubelet's order",
			Policy{},
			requesting("p", "1", "1Gi", "1Gi"),
			[]*spec.Pod{requesting("a", "1500m", "3Gi", "5Gi"), requesting("b", "500m", "2Gi", "5Gi")},
			host,
			[]string{
				"OutOfcpu: containers[0].resources.requests.cpu: Node didn't have enough resource: cpu, requested: 1000, used: 2000, " +
					"capacity: 2000; free: 0",
				"OutOfmemory: containers[0].resources.requests.memory: Node didn't have enough resource: memory, requested: 1073741824, " +
					"used: 5368709120, capacity: 4294967296; free: 0",
				"OutOfephemeral-storage: containers[0].resources.requests.ephemeral-storage: Node didn't have enough resource: " +
					"ephemeral-storage, requested: 1073741824, used: 10737418240, capacity: 10737418240; free: 0",
			},
		},
		{
			"sum beyond an int64",
			Policy{},
			requesting("p", "", "1", ""),
			[]*spec.Pod{
				requesting("a", "", "7Ei", ""), requesting("b", "", "7Ei", ""), requesting("c", "", "7Ei", ""),
				requesting("d", "", "7Ei", ""),
			},
			host,
			[]string{
				"OutOfmemory: containers[0].resources.requests.memory: Node didn't have enough resource: memory, requested: 1, used: " +
					"4611686018427387904, capacity: 4294967296; free: 0",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, r := range test.policy.CheckRequests(test.pod, test.others, test.host) {
				got = append(got, r.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCheckRequestsOfHugePages: a pod cannot request pages of a size that the host does not have, nor those of other pods.
func TestCheckRequestsOfHugePages(t *testing.T) {
	pages := func(size, amount string) *spec.Pod {
		p := requesting(size+amount, "", "", "")
		p.Containers[0].Resources.Requests["hugepages-"+size] = resource.MustParse(amount)
		return p
	}
	host := spec.ResourceList{"hugepages-2Mi": resource.MustParse("16Mi"), "hugepages-1Gi": resource.MustParse("0")}
	const message = "Node didn't have enough resource: "
	for _, test := range []struct {
		pod        *spec.Pod
		want, hint string
	}{
		{pages("2Mi", "12Mi"), "", ""},
		{
			pages("2Mi", "14Mi"),
			"OutOfhugepages-2Mi: containers[0].resources.requests.hugepages-2Mi: " + message +
				"hugepages-2Mi, requested: 14680064, used: 4194304, capacity: 16777216; free: 12Mi",
			"request less hugepages-2Mi, delete one of the pods 2Mi4Mi (4Mi)",
		},
		{
			pages("1Gi", "1Gi"),
			"OutOfhugepages-1Gi: containers[0].resources.requests.hugepages-1Gi: " + message +
				"hugepages-1Gi, requested: 1073741824, used: 0, capacity: 0; free: 0",
			"reserve huge pages, such as",
		},
		{
			pages("64Ki", "64Ki"),
			"OutOfhugepages-64Ki: containers[0].resources.requests.hugepages-64Ki: " + message +
				"hugepages-64Ki, requested: 65536, used: 0, capacity: 0; free: 0",
			"reserve huge pages, such as",
		},
	} {
		list := Policy{}.CheckRequests(test.pod, []*spec.Pod{pages("2Mi", "4Mi")}, host)
		switch {
		case test.want == "" && len(list) == 0:
		case len(list) != 1 || list[0].Error() != test.want || !strings.HasPrefix(list[0].Hint, test.hint):
			t.Errorf("%s: %+v, want %q with the hint %q", test.pod.Name, list, test.want, test.hint)
		}
		if list := (Policy{IgnoreRequests: true}).CheckRequests(test.pod, nil, host); len(list) > 0 {
			t.Errorf("%s with requests ignored: %+v", test.pod.Name, list)
		}
	}
}

func TestCheckRequestsHint(t *testing.T) {
	host := amounts("2", "4Gi", "")
	others := []*spec.Pod{
		requesting("a", "", "100Mi", ""), requesting("b", "", "1Gi", ""), requesting("c", "", "", ""),
		requesting("d", "", "300Mi", ""), requesting("e", "", "200Mi", ""),
	}
	none := Policy{}.CheckRequests(requesting("p", "1", "", ""), others, amounts("0", "", ""))
	if len(none) != 1 || !strings.HasPrefix(none[0].Hint, "do not request cpu, or set") {
		t.Errorf("%+v", none)
	}
	const alternative = `, or set requests = "ignore" in [policy] of podstead.toml`
	for _, test := range []struct {
		memory string
		want   string
	}{
		{"3Gi", "request less memory, delete one of the pods b (1Gi), d (300Mi), e (200Mi), 1 more" + alternative},
		{"5Gi", "request at most 2472Mi of memory" + alternative},
	} {
		list := Policy{}.CheckRequests(requesting("p", "", test.memory, ""), others, host)
		if len(list) != 1 || list[0].Reason != lifecycle.ReasonOutOfMemory || list[0].Hint != test.want {
			t.Errorf("%s: %+v, want hint %q", test.memory, list, test.want)
		}
	}
}
