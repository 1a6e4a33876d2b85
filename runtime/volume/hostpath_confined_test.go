package volume

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
)

// Confined host paths that lead out of the allowed directories are refused, and nothing is created outside.
func TestConfinedHostPath(t *testing.T) {
	dir := t.TempDir()
	inside, outside := filetest.Mkdir(t, filepath.Join(dir, "srv", "data")), filetest.Mkdir(t, filepath.Join(dir, "etc"))
	filetest.Write(t, filepath.Join(inside, "file"), "")
	filetest.Write(t, filepath.Join(outside, "passwd"), "")
	filetest.Symlink(t, outside, filepath.Join(inside, "out"))
	filetest.Symlink(t, "../../etc", filepath.Join(inside, "out-relative"))
	filetest.Symlink(t, inside, filepath.Join(inside, "around"))
	filetest.Symlink(t, filepath.Join(outside, "new"), filepath.Join(inside, "dangling"))
	filetest.Symlink(t, "/proc/self/root", filepath.Join(inside, "magic"))
	filetest.Symlink(t, filepath.Join(dir, "srv"), filepath.Join(dir, "alias"))
	const leads = ": must be below "
	tests := []struct {
		path string
		kind spec.HostPathType
		want string
	}{
		{"srv/data", spec.HostPathDirectory, ""},
		{"srv/data/file", spec.HostPathFile, ""},
		{"srv/data/around/file", spec.HostPathFile, ""},
		{"alias/data", spec.HostPathDirectory, ""},
		{"srv/data/created/deep", spec.HostPathUnset, ""},
		{"srv/data/made2/deep", spec.HostPathDirectoryOrCreate, ""},
		{"srv/data/around/made3", spec.HostPathDirectoryOrCreate, ""},
		{"srv/data/created-file", spec.HostPathFileOrCreate, ""},
		{"srv/data/file", spec.HostPathDirectory, "is not a directory"},
		{"srv/data/none", spec.HostPathDirectory, "is not a directory: it does not exist"},
		{"srv/data/none", spec.HostPathSocket, "is not a socket file: it does not exist"},
		{"srv/data/none/file", spec.HostPathFileOrCreate, "create hostPath: "},

		{"etc", spec.HostPathDirectory, leads},
		{"etc/new", spec.HostPathDirectoryOrCreate, leads},
		{"srv/data/out", spec.HostPathDirectory, leads},
		{"srv/data/out-relative", spec.HostPathUnset, leads},
		{"srv/data/out/passwd", spec.HostPathFile, leads},
		{"srv/data/out/new", spec.HostPathUnset, leads},
		{"srv/data/out/new/deep", spec.HostPathDirectoryOrCreate, leads},
		{"srv/data/out/new", spec.HostPathFileOrCreate, leads},
		{"srv/data/dangling", spec.HostPathDirectoryOrCreate, "create hostPath: "},
		{"srv/data/dangling", spec.HostPathFileOrCreate, "create hostPath"},
		{"srv/data/magic", spec.HostPathDirectory, "open hostPath"},
		{"srv/data/magic/etc", spec.HostPathDirectory, "open hostPath"},
		{"srv/data/../../etc", spec.HostPathDirectory, leads},
		{"srv", spec.HostPathDirectory, leads},
	}
	s := newSet(t, nil)
	s.opts.HostPaths = []string{filepath.Join(dir, "not-there"), filepath.Join(dir, "alias", "data")}
	for _, test := range tests {
		path := dir + "/" + test.path
		pod := podOf(spec.Volume{Name: "v", HostPath: &spec.HostPathVolume{Path: path, Type: test.kind}})
		err := s.Prepare(t.Context(), pod)
		t.Logf("%s of type %q: %v", test.path, test.kind, err)
		filetest.WantError(t, err, test.want)
		if _, statErr := os.Stat(path); test.want == "" && statErr != nil {
			t.Errorf("%s of type %q: %v", test.path, test.kind, statErr)
		}
	}
	if entries, err := os.ReadDir(outside); len(entries) != 1 || err != nil {
		t.Errorf("created outside: %v, %v", entries, err)
	}
	for _, everywhere := range [][]string{nil, {"/srv", "/"}} {
		s.opts.HostPaths = everywhere
		pod := podOf(spec.Volume{
			Name: "v", HostPath: &spec.HostPathVolume{Path: filepath.Join(inside, "out"), Type: spec.HostPathDirectory},
		})
		filetest.WantError(t, s.Prepare(t.Context(), pod), "")
	}
	s.opts.HostPaths = []string{}
	filetest.WantError(t, s.Prepare(t.Context(), podOf(spec.Volume{Name: "v", HostPath: &spec.HostPathVolume{Path: inside}})), leads)
}
