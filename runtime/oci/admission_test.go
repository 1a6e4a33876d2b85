package oci

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/spec"
)

// TestCheckResources tests that unsupported limits are rejected with the field and a hint, and requests are accepted.
func TestCheckResources(t *testing.T) {
	limits := spec.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("64Mi")}
	pod := &spec.Pod{
		Resources:      spec.Resources{Requests: limits},
		InitContainers: []spec.Container{{Resources: spec.Resources{Limits: spec.ResourceList{"memory": resource.MustParse("1Mi")}}}},
		Containers:     []spec.Container{{}, {Resources: spec.Resources{Limits: limits}}},
	}
	whole := cgroup.Controllers{Names: []string{cgroup.CPU, cgroup.Memory}, Bandwidth: true}
	for name, test := range map[string]struct {
		has  cgroup.Controllers
		want []string
	}{
		"all":          {whole, nil},
		"no bandwidth": {cgroup.Controllers{Names: whole.Names}, []string{"containers[1].resources.limits.cpu"}},
		"no memory": {
			cgroup.Controllers{Names: []string{cgroup.CPU}, Bandwidth: true},
			[]string{"initContainers[0].resources.limits.memory", "containers[1].resources.limits.memory"},
		},
	} {
		var got []string
		for _, r := range (Host{Controllers: test.has}).CheckResources(pod) {
			got = append(got, r.Field)
			if r.Hint == "" || r.Message == "" {
				t.Errorf("%s: %+v lacks a message or a hint", name, r)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
