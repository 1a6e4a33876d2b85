package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
)

func claim(name string) spec.Volume {
	return spec.Volume{Name: "data", PersistentVolumeClaim: &spec.ClaimVolume{ClaimName: name}}
}

func TestClaims(t *testing.T) {
	s := newSet(t, nil)
	for _, name := range []string{"pgdata", "shop.v2"} {
		if err := s.Prepare(t.Context(), podOf(claim(name))); err != nil {
			t.Fatal(err)
		}
		filetest.Write(t, filepath.Join(s.opts.ClaimsDir, name, "deep", "file"), "data")
	}
	if mode := filetest.Stat(t, s.opts.ClaimsDir).Mode & 0o777; mode != 0o700 {
		t.Errorf("directory of claims: mode %o", mode)
	}
	if mode := filetest.Stat(t, filepath.Join(s.opts.ClaimsDir, "pgdata")).Mode & 0o777; mode != 0o777 {
		t.Errorf("claim: mode %o", mode)
	}
	// Links to directories count as claims; files and invalid names do not.
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	filetest.Write(t, filepath.Join(elsewhere, "file"), "kept")
	filetest.Symlink(t, elsewhere, filepath.Join(s.opts.ClaimsDir, "linked"))
	filetest.Write(t, filepath.Join(s.opts.ClaimsDir, "file"), "")
	filetest.Mkdir(t, filepath.Join(s.opts.ClaimsDir, "Not_A_Name"))
	filetest.Mkdir(t, filepath.Join(s.opts.ClaimsDir, ".pgdata.new"))
	names := func() []string {
		t.Helper()
		list, err := s.ListClaims(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, c := range list {
			if names = append(names, c.Name); c.Path != filepath.Join(s.opts.ClaimsDir, c.Name) {
				t.Errorf("path of %s: %s", c.Name, c.Path)
			}
		}
		return names
	}
	if diff := cmp.Diff([]string{"linked", "pgdata", "shop.v2"}, names()); diff != "" {
		t.Error(diff)
	}
	// The claim outlives the pod.
	if err := s.Teardown(t.Context(), "uid-1"); err != nil {
		t.Error(err)
	}
	if err := s.Prepare(t.Context(), podOf(claim("pgdata"))); err != nil ||
		filetest.Read(t, filepath.Join(s.opts.ClaimsDir, "pgdata/deep/file")) != "data" {
		t.Errorf("data of the claim is missing: %v", err)
	}
	filetest.Write(t, filepath.Join(s.opts.ClaimsDir, removedPrefix+"pgdata", "file"), "interrupted")
	for _, name := range []string{"pgdata", "linked"} {
		if err := s.RemoveClaim(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"shop.v2"}, names()); diff != "" {
		t.Error(diff)
	}
	if left, _ := filepath.Glob(filepath.Join(s.opts.ClaimsDir, removedPrefix+"*")); len(left) > 0 {
		t.Errorf("unexpected files: %v", left)
	}
	if filetest.Read(t, filepath.Join(elsewhere, "file")) != "kept" {
		t.Error("the target of a link was removed")
	}
	if err := s.RemoveClaim(t.Context(), "pgdata"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("repeated: %v", err)
	}
}

// TestProjectsOfClaims checks that a claim belongs to the project of the pod that has created it, until it is removed.
func TestProjectsOfClaims(t *testing.T) {
	s := newSet(t, nil)
	prepare := func(project, name string) {
		t.Helper()
		p := podOf(claim(name))
		if project != "" {
			p.Spec.Labels = map[string]string{spec.ProjectLabel: project}
		}
		if err := s.Prepare(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want ...string) {
		t.Helper()
		list, err := s.ListClaims(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, c := range list {
			got = append(got, c.Name+" "+c.Project)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	filetest.Mkdir(t, filepath.Join(s.opts.ClaimsDir, "earlier"))
	prepare("a", "earlier")
	prepare("a", "a-b-c")
	prepare("", "alone")
	prepare("a-b", "a-b-c")
	check("a-b-c a", "alone ", "earlier ")
	if err := s.RemoveClaim(t.Context(), "a-b-c"); err != nil {
		t.Fatal(err)
	}
	// A crash between the two steps leaves the project of a claim that does not exist.
	filetest.Write(t, s.projectFile("left"), "a")
	prepare("", "left")
	prepare("a-b", "a-b-c")
	check("a-b-c a-b", "alone ", "earlier ", "left ")
}

func TestClaimNames(t *testing.T) {
	s := newSet(t, nil)
	outside := filepath.Join(filepath.Dir(s.opts.ClaimsDir), "outside")
	filetest.Write(t, outside, "kept")
	for _, name := range []string{"", ".", "..", "../outside", "a/b", "/etc", ".removed-x", "A", "a_b"} {
		filetest.WantError(t, s.RemoveClaim(t.Context(), name), "remove persistentvolumeclaim ")
		filetest.WantError(t, s.Prepare(t.Context(), podOf(claim(name))), `volume "data": persistentvolumeclaim `)
		pod := podOf(claim(name))
		_, err := s.Mounts(t.Context(), pod, Request{Run: "run", Container: &spec.Container{
			VolumeMounts: []spec.VolumeMount{{Name: "data", MountPath: "/data"}},
		}})
		filetest.WantError(t, err, `volume "data": persistentvolumeclaim `)
	}
	if entries, _ := os.ReadDir(s.opts.ClaimsDir); len(entries) > 0 || filetest.Read(t, outside) != "kept" {
		t.Errorf("created: %v", entries)
	}
	filetest.Write(t, filepath.Join(s.opts.ClaimsDir, "file"), "")
	filetest.WantError(t, s.Prepare(t.Context(), podOf(claim("file"))), "is not a directory")
}
