package imagedirs

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSignatureBesideChangesState: a signature that arrives beside a file or a directory in the OCI layout changes its state.
func TestSignatureBesideChangesState(t *testing.T) {
	b := newBench(t)
	b.write("a.tar", "image")
	if err := os.Mkdir(filepath.Join(b.dir, "layout"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.write("layout/oci-layout", "{}")
	origins := func() map[string]string {
		archives, err := list(b.dir)
		if err != nil || len(archives) != 2 {
			t.Fatalf("archives %v, %v", archives, err)
		}
		states := map[string]string{}
		for _, a := range archives {
			states[filepath.Base(a.path)] = a.origin
		}
		return states
	}
	before := origins()
	b.write("a.tar.sig", "YQ==")
	b.write("layout.sigstore.json", "{}")
	after := origins()
	for name := range before {
		if before[name] == after[name] {
			t.Errorf("%s has the same state with a signature", name)
		}
	}
}
