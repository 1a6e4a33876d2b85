package etcfiles

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/runtime/idmap"
	"github.com/podstead/podstead/runtime/layout"
	"github.com/podstead/podstead/runtime/podindex"
	"github.com/podstead/podstead/spec"
)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	for _, test := range []struct {
		name    string
		prepare func() error
	}{
		{"no file", func() error { return nil }},
		{"same content", func() error { return nil }},
		{"longer content", func() error { return os.WriteFile(path, []byte("text\nand more\n"), 0o644) }},
		{"shorter content", func() error { return os.WriteFile(path, []byte("te"), 0o644) }},
		{"larger than memory", func() error { return os.Truncate(path, 8<<40) }},
	} {
		if err := test.prepare(); err != nil {
			t.Fatal(err)
		}
		if err := write(path, "text\n"); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if got, err := os.ReadFile(path); string(got) != "text\n" || err != nil {
			t.Errorf("%s: %d bytes, %v", test.name, len(got), err)
		}
	}
}

// fakeNetwork has one other pod.
type fakeNetwork struct{ changed chan struct{} }

func (fakeNetwork) PodPeers(string) (ips []string, lines string) {
	return []string{"10.0.0.2"}, "10.0.0.3\tother\n"
}

func (n fakeNetwork) Changed() <-chan struct{} { return n.changed }

func TestWriteHosts(t *testing.T) {
	dirs := layout.Dirs{State: t.TempDir()}
	f := New(dirs, fakeNetwork{}, podindex.New(), slog.Default())
	pod := &spec.Pod{Name: "web"}
	hosts := filepath.Join(dirs.Etc("u", 1), "hosts")
	if err := f.updateHosts("u", pod, 1); err != nil {
		t.Errorf("update without a file: %v", err)
	}
	if _, err := os.Stat(hosts); !os.IsNotExist(err) {
		t.Errorf("an update created the file of a removed sandbox: %v", err)
	}
	if err := f.Write("u", pod, 1, idmap.Range{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hosts, []byte("changed by a container"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.updateHosts("u", pod, 1); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(hosts)
	if err != nil || !strings.Contains(string(text), "10.0.0.2\tweb") || !strings.Contains(string(text), "10.0.0.3\tother") {
		t.Errorf("%q, %v; want the pod and the other pod", text, err)
	}
	if name, err := os.ReadFile(filepath.Join(dirs.Etc("u", 1), "hostname")); string(name) != "web\n" || err != nil {
		t.Errorf("hostname %q, %v; want web", name, err)
	}
}
