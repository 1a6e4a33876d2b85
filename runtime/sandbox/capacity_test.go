package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/spec"
)

func TestHugePages(t *testing.T) {
	dir := t.TempDir()
	for name, number := range map[string]string{
		"hugepages-64kB": "0", "hugepages-2048kB": "8", "hugepages-1048576kB": "2", "hugepages-16kB": "?", "other": "1",
	} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "nr_hugepages"), []byte(number+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int64{"hugepages-64Ki": 0, "hugepages-2Mi": 16 << 20, "hugepages-1Gi": 2 << 30}
	if diff := cmp.Diff(want, hugePages(dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if pages := hugePages(filepath.Join(dir, "none")); len(pages) > 0 {
		t.Errorf("kernel without huge pages: %v", pages)
	}
}

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
