package spec

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// TestUnits expects that amounts beyond an int64 do not become small.
func TestUnits(t *testing.T) {
	for _, test := range []struct {
		name, amount string
		want         int64
	}{
		{ResourceCPU, "0", 0},
		{ResourceCPU, "250m", 250},
		{ResourceCPU, "1.5", 1500},
		{ResourceCPU, "100u", 1},
		{ResourceCPU, "10E", maxUnits},
		{ResourceMemory, "1Gi", 1 << 30},
		{ResourceMemory, "100m", 1},
		{ResourceMemory, "7Ei", maxUnits},
		{ResourceMemory, "9e18", maxUnits},
		{ResourceEphemeralStorage, "9999999e18", maxUnits},
	} {
		if got := Units(test.name, resource.MustParse(test.amount)); got != test.want {
			t.Errorf("%s %s: %d, want %d", test.name, test.amount, got, test.want)
		}
	}
}

func TestAmount(t *testing.T) {
	for _, test := range []struct {
		name  string
		units int64
		want  string
	}{
		{ResourceCPU, 0, "0"},
		{ResourceCPU, 250, "250m"},
		{ResourceCPU, 2000, "2"},
		{ResourceMemory, 1 << 30, "1Gi"},
		{ResourceMemory, 1<<30 + 1, "1Gi"},
		{ResourceMemory, 7951<<20 + 12345, "7951Mi"},
		{ResourceMemory, 1000, "1k"},
		{ResourceMemory, 0, "0"},
	} {
		if got := Amount(test.name, test.units); got != test.want {
			t.Errorf("%s %d: %s, want %s", test.name, test.units, got, test.want)
		}
	}
}

func TestRequestField(t *testing.T) {
	const ask, more = `{ requests = { cpu = "100m" } }`, `{ limits = { cpu = "1", memory = "1Gi" } }`
	for _, test := range []struct {
		name        string
		pod         string
		inits, apps []string
		want        string
	}{
		{"no request", "", nil, []string{`{}`}, ""},
		{"the largest", "", nil, []string{ask, more}, "containers[1].resources.requests.cpu"},
		{"of an init container", "", []string{more}, []string{ask}, "initContainers[0].resources.requests.cpu"},
		{"pod-level", more, nil, []string{ask}, "resources.requests.cpu"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := mustParse(t, "web.toml", resourcesFile(test.pod, test.inits, test.apps))
			if got := p.RequestField(ResourceCPU); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
