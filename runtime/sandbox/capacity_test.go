package sandbox

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/spec"
)

func TestAllocatable(t *testing.T) {
	h := Host{StateDir: filepath.Join(t.TempDir(), "not", "yet"), Cgroup: "/podstead-none"}
	all := h.Allocatable()
	for _, name := range []string{spec.ResourceCPU, spec.ResourceMemory, spec.ResourceEphemeralStorage} {
		if q := all[name]; q.Sign() <= 0 {
			t.Errorf("%s: %v, want a positive quantity", name, q)
		}
	}
	h.Reserved = spec.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("1Ei")}
	rest := h.Allocatable()
	cpu, want := rest["cpu"], all["cpu"]
	want.Sub(resource.MustParse("250m"))
	if cpu.Cmp(want) != 0 {
		t.Errorf("cpu without 250m: %v, want %v", &cpu, &want)
	}
	if memory, is := rest["memory"]; !is || !memory.IsZero() {
		t.Errorf("memory that is reserved completely: %v, want 0", &memory)
	}
	if storage, want := rest["ephemeral-storage"], all["ephemeral-storage"]; storage.Cmp(want) != 0 {
		t.Errorf("ephemeral-storage: %v, want %v", &storage, &want)
	}
}
