package doctor

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/spec"
)

func TestRequestsResult(t *testing.T) {
	allocatable := spec.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("8142548Ki")}
	pages := spec.ResourceList{"hugepages-2Mi": resource.MustParse("16Mi"), "hugepages-1Gi": resource.MustParse("0")}
	if r := requestsResult(pages, nil, true); r.detail != "hugepages-2Mi 16Mi allocatable, 0 requested" || r.grade != OK {
		t.Errorf("huge pages: %+v", r)
	}
	user := api.Pod{}
	user.Spec.Containers = []spec.Container{{
		Resources: spec.Resources{Requests: spec.ResourceList{"hugepages-1Gi": resource.MustParse("1Gi")}},
	}}
	r := requestsResult(pages, []api.Pod{user}, true)
	if r.grade != Warn || !strings.HasPrefix(r.detail, "hugepages-1Gi 0 allocatable, 1Gi requested; ") {
		t.Errorf("a pod with huge pages that the host does not have any more: %+v", r)
	}
	pod := func(phase api.Phase, cpu string) api.Pod {
		p := api.Pod{}
		p.Status.Phase = phase
		p.Spec.Containers = []spec.Container{{Resources: spec.Resources{Requests: spec.ResourceList{"cpu": resource.MustParse(cpu)}}}}
		return p
	}
	pods := []api.Pod{pod(api.PhaseRunning, "250m"), pod(api.PhaseSucceeded, "4"), pod(api.PhasePending, "1")}
	for _, test := range []struct {
		name  string
		pods  []api.Pod
		known bool
		grade Grade
		want  string
	}{
		{"no daemon", nil, false, OK, "cpu 2 allocatable; memory 7951Mi allocatable"},
		{"pods that have not terminated", pods, true, OK, "cpu 2 allocatable, 1250m requested; memory 7951Mi allocatable, 0 requested"},
		{
			"host that has become too small", append(pods, pod(api.PhaseRunning, "1")), true, Warn,
			"cpu 2 allocatable, 2250m requested; memory 7951Mi allocatable, 0 requested",
		},
	} {
		r := requestsResult(allocatable, test.pods, test.known)
		if r.grade != test.grade || r.detail != test.want || (r.grade == Warn) != strings.Contains(r.hint, "delete pods that request cpu") {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
}

func admissionOf(reserved ...string) api.Policy {
	policy := config.Policy{SystemReserved: reserved}.Admission()
	return *server.PolicyOf(&policy)
}

func TestPoliciesWithReservedResources(t *testing.T) {
	a := admissionOf("cpu=500m", "memory=1Gi")
	if !samePolicy(a, admissionOf("memory=1024Mi", "cpu=0.5")) || samePolicy(a, admissionOf("cpu=500m")) ||
		samePolicy(a, admissionOf("cpu=500m", "memory=2Gi")) {
		t.Error("policies with reserved resources are compared incorrectly")
	}
	ignoring := a
	ignoring.IgnoreRequests = true
	if samePolicy(a, ignoring) {
		t.Error("a policy that ignores requests is the same as one that does not")
	}
	if text := describePolicy(ignoring); !strings.HasSuffix(text, "; requests ignored; reserved cpu=500m, memory=1Gi") {
		t.Error(text)
	}
}
