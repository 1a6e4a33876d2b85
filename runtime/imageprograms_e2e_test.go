//go:build e2e

package runtime_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/test/ocitar"
)

// TestProgramsOfImages looks for programs in images with one layer, which is mounted by a bind mount, and with two.
func TestProgramsOfImages(t *testing.T) {
	m := newTestHost(t)
	lower := ocitar.Layer{
		{Path: "bin", Mode: fs.ModeDir | 0o755},
		{Path: "usr", Mode: fs.ModeDir | 0o755},
		{Path: "usr/sbin", Mode: fs.ModeDir | 0o755},
		{Path: "bin/sh", Mode: 0o755},
		{Path: "bin/text", Mode: 0o644},
		{Path: "bin/dir", Mode: fs.ModeDir | 0o755},
		{Path: "bin/gone", Mode: 0o755},
		{Path: "sbin", Mode: fs.ModeSymlink | 0o777, Link: "usr/sbin"},
		{Path: "usr/sbin/mount", Mode: 0o755},
		{Path: "bin/inside", Mode: fs.ModeSymlink | 0o777, Link: "/bin/sh"},
		{Path: "bin/outside", Mode: fs.ModeSymlink | 0o777, Link: "../../../../../../bin/bash"}, // the host has it, the image does not
		{Path: "bin/loop", Mode: fs.ModeSymlink | 0o777, Link: "loop"},
	}
	upper := ocitar.Layer{{Path: "bin/new", Mode: 0o755}, {Path: "bin/.wh.gone", Mode: 0o644}}
	names := []string{
		"sh", "/bin/sh", "/sbin/mount", "mount", "text", "dir", "gone", "new", "inside", "outside", "loop", "curl", "/usr/bin/curl", "..",
	}
	want := map[string]string{
		"sh": "/bin/sh", "/bin/sh": "/bin/sh", "/sbin/mount": "/sbin/mount", "mount": "/sbin/mount", "text": "", "dir": "",
		"gone": "/bin/gone", "new": "", "inside": "/bin/inside", "outside": "", "loop": "", "curl": "", "/usr/bin/curl": "", "..": "",
	}
	for layers := 1; layers <= 2; layers++ {
		if layers == 2 {
			want["gone"], want["new"] = "", "/bin/new"
		}
		name := "localhost/podstead/programs:" + strconv.Itoa(layers)
		var archive bytes.Buffer
		if err := ocitar.WriteOCI(&archive, ocitar.Image{
			Name: name, Layers: []ocitar.Layer{lower, upper}[:layers],
			Config: ocispec.ImageConfig{Env: []string{"PATH=/bin:relative:/sbin"}},
		}); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(m.dir, "programs.tar")
		if err := os.WriteFile(file, archive.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Images().Import(m.ctx(), bytes.NewReader(archive.Bytes()), true); err != nil {
			t.Fatal(err)
		}
		d := m.detail(name)
		if found, _, err := m.Images().Programs(m.ctx(), &d, names); found != nil || err != nil {
			t.Errorf("programs of an image that is not unpacked: %v, %v", found, err)
		}
		m.pull(file, name)
		found, search, err := m.Images().Programs(m.ctx(), &d, names)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, found) + cmp.Diff([]string{"/bin", "/sbin"}, search); diff != "" {
			t.Errorf("%d layers: (-want +got):\n%s", layers, diff)
		}
		if err := m.Images().Forget(m.ctx(), d.Record); err != nil {
			t.Error(err)
		}
	}
}

// detail returns an image that was imported by hand.
func (m *testHost) detail(name string) image.Detail {
	m.Helper()
	list, err := m.Images().Catalog(m.ctx())
	if err != nil {
		m.Fatal(err)
	}
	for i := range list {
		if list[i].Name == name && !list[i].Scoped {
			d, err := m.Images().Detail(m.ctx(), list[i].Record)
			if err != nil {
				m.Fatal(err)
			}
			return d
		}
	}
	m.Fatalf("no image %s", name)
	return image.Detail{}
}
