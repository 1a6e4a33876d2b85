package volume

import (
	"path/filepath"
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/volume/filetest"
)

// TestOf checks that a mount belongs to the last one that shows its place.
func TestOf(t *testing.T) {
	root := t.TempDir()
	filetest.Mkdir(t, filepath.Join(root, "var"))
	filetest.Symlink(t, "/run", filepath.Join(root, "var", "run"))
	mount := func(destination string) specs.Mount {
		return specs.Mount{Destination: destination, Type: "bind", Source: t.TempDir()}
	}
	got, err := placesOf(root,
		[]specs.Mount{
			mount("/run/secrets"), mount("/var/run"), mount("/var/run/secrets/x"), {Destination: "/run/secrets/x/proc", Type: "proc"},
		})
	if err != nil {
		t.Fatal(err)
	}
	want := []mountPlace{{"/run/secrets", -1}, {"/run", -1}, {"/run/secrets/x", 1}, {"/run/secrets/x/proc", 2}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
