package oci

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/spec"
)

func TestField(t *testing.T) {
	d := &Downward{
		Pod: &spec.Pod{
			Name: "web", Labels: map[string]string{"b": "2", "a": "say \"1\""}, Annotations: map[string]string{"x/y": "line\nline"},
		},
		UID: "uid-1", PodIPs: []string{"10.0.0.2", "fd00::2"}, HostIPs: []string{"192.0.2.1"}, NodeName: "edge",
	}
	for path, want := range map[string]string{
		"metadata.name": "web", "metadata.namespace": "default", "metadata.uid": "uid-1",
		"metadata.labels": "a=\"say \\\"1\\\"\"\nb=\"2\"", "metadata.annotations": "x/y=\"line\\nline\"",
		"metadata.labels['b']": "2", "metadata.labels['none']": "", "metadata.annotations['x/y']": "line\nline",
		"spec.nodeName": "edge", "spec.serviceAccountName": "default",
		"status.podIP": "10.0.0.2", "status.podIPs": "10.0.0.2,fd00::2", "status.hostIP": "192.0.2.1", "status.hostIPs": "192.0.2.1",
	} {
		if got, err := d.Field(path); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
	if got, err := d.Field("metadata.none"); err == nil {
		t.Errorf("unsupported field: %q", got)
	}
	if got, err := (&Downward{Pod: &spec.Pod{}}).Field("status.podIP"); err != nil || got != "" {
		t.Errorf("pod without an address: %q, %v", got, err)
	}
}

func TestResource(t *testing.T) {
	q := func(s string) *spec.Quantity { v := resource.MustParse(s); return &v }
	pod := &spec.Pod{
		InitContainers: []spec.Container{{Name: "init"}},
		Containers: []spec.Container{{Name: "app", Resources: spec.Resources{
			Limits:   spec.ResourceList{"cpu": *q("1500m"), "memory": *q("100Mi"), "hugepages-2Mi": *q("6Mi")},
			Requests: spec.ResourceList{"cpu": *q("250m"), "hugepages-2Mi": *q("6Mi")},
		}}, {Name: "side"}},
	}
	host := spec.ResourceList{"cpu": *q("4"), "memory": *q("8Gi"), "ephemeral-storage": *q("100Gi"), "hugepages-2Mi": *q("1Gi")}
	for _, test := range []struct {
		resource, container string
		divisor             *spec.Quantity
		want                string
	}{
		{"limits.cpu", "", nil, "2"},
		{"limits.cpu", "", q("1m"), "1500"},
		{"limits.cpu", "", q("0"), "2"},
		{"limits.memory", "", nil, "104857600"},
		{"limits.memory", "", q("1Mi"), "100"},
		{"limits.memory", "", q("1Gi"), "1"},
		{"limits.memory", "", q("1M"), "105"},
		{"requests.cpu", "", q("1m"), "250"},
		{"requests.cpu", "", nil, "1"},
		{"requests.memory", "", nil, "0"},
		{"limits.cpu", "side", nil, "4"},
		{"limits.memory", "init", q("1Gi"), "8"},
		{"limits.ephemeral-storage", "", q("1Gi"), "100"},
		{"requests.ephemeral-storage", "side", nil, "0"},
		{"limits.hugepages-2Mi", "", q("1Mi"), "6"},
		{"requests.hugepages-2Mi", "", nil, "6291456"},
		{"limits.hugepages-2Mi", "side", nil, "0"},
		{"limits.hugepages-1Gi", "", nil, "0"},
	} {
		d := &Downward{Pod: pod, Allocatable: host}
		got, err := d.Resource("app", &spec.ResourceFieldRef{ContainerName: test.container, Resource: test.resource, Divisor: test.divisor})
		if err != nil || got != test.want {
			t.Errorf("%s of %q by %v: %q, %v, want %q", test.resource, test.container, test.divisor, got, err, test.want)
		}
	}
	limited := *pod
	limited.Resources = spec.Resources{Limits: spec.ResourceList{"cpu": *q("3")}}
	d := &Downward{Pod: &limited, Allocatable: host}
	if got, err := d.Resource("side", &spec.ResourceFieldRef{Resource: "limits.cpu"}); err != nil || got != "3" {
		t.Errorf("container of a pod with a limit: %q, %v", got, err)
	}
	for _, bad := range []*spec.ResourceFieldRef{{ContainerName: "none", Resource: "limits.cpu"}, {Resource: "wishes.cpu"}} {
		if got, err := d.Resource("app", bad); err == nil {
			t.Errorf("%+v: %q", bad, got)
		}
	}
}
