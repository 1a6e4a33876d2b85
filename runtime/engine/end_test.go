package engine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/runtime/shim"
)

func TestBundleCgroup(t *testing.T) {
	bundle := t.TempDir()
	if got, err := bundleCgroup(bundle); got != "" || err != nil {
		t.Errorf("no configuration: %q, %v", got, err)
	}
	for text, want := range map[string]string{
		`{"linux":{"cgroupsPath":"/podstead/u/c"}}`:                 "/podstead/u/c",
		`{"linux":{"cgroupsPath":"podstead-u_1.slice:podstead:c"}}`: "/podstead.slice/podstead-u_1.slice/podstead-c.scope",
		`{"linux":{}}`: "",
		`{"linux":`:    "",
	} {
		if err := os.WriteFile(filepath.Join(bundle, "config.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := bundleCgroup(bundle); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}

// TestStartDoesNotPanic: a panic of containerd is an error.
func TestStartDoesNotPanic(t *testing.T) {
	if err := noPanic(func() error { panic("invalid page") }); err == nil {
		t.Error("no error")
	}
	if err := noPanic(func() error { return os.ErrExist }); !errors.Is(err, os.ErrExist) {
		t.Errorf("error %v", err)
	}
}

func TestShimID(t *testing.T) {
	const name = shim.Name
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{name, "-namespace", "podstead", "-id", "a", "-address", "/e.sock"}, "a"},
		{[]string{name, "-namespace", "podstead", "-address", "/e.sock", "-id", "a", "start"}, "a"},
		{[]string{name, "-namespace", "podstead", "-address", "/e.sock", "-id", "a", "-bundle", "/b", "delete"}, ""},
		{[]string{name, "-namespace", "podstead", "-id", "a", "-address", "/other.sock"}, ""},
		{[]string{name, "-namespace", "other", "-id", "a", "-address", "/e.sock"}, ""},
		{[]string{"sh", "-c", name, "-namespace", "podstead", "-id", "a", "-address", "/e.sock"}, ""},
		{[]string{name, "-id"}, ""},
		{[]string{""}, ""},
	} {
		if got := shimID(test.args, "/e.sock"); got != test.want {
			t.Errorf("%q: %q, want %q", test.args, got, test.want)
		}
	}
}
