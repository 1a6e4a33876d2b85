package volume

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
)

func TestHostPath(t *testing.T) {
	dir, err := os.MkdirTemp("", "hp") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	filetest.Mkdir(t, filepath.Join(dir, "dir"))
	filetest.Write(t, filepath.Join(dir, "file"), "")
	filetest.Symlink(t, "file", filepath.Join(dir, "link"))
	filetest.Symlink(t, "loop", filepath.Join(dir, "loop"))
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	tests := []struct {
		path string
		kind spec.HostPathType
		want string
	}{
		{"created/deep", spec.HostPathUnset, ""},
		{"file", spec.HostPathUnset, ""},
		{"dir", spec.HostPathDirectory, ""},
		{"file", spec.HostPathDirectory, "is not a directory"},
		{"none", spec.HostPathDirectory, "is not a directory: it does not exist"},
		{"made2/deep", spec.HostPathDirectoryOrCreate, ""},
		{"file", spec.HostPathDirectoryOrCreate, "is not a directory"},
		{"file", spec.HostPathFile, ""},
		{"link", spec.HostPathFile, ""},
		{"dir", spec.HostPathFile, "is not a file"},
		{"none", spec.HostPathFile, "is not a file: it does not exist"},
		{"created-file", spec.HostPathFileOrCreate, ""},
		{"dir", spec.HostPathFileOrCreate, "is not a file"},
		{"none/file", spec.HostPathFileOrCreate, "create hostPath: "},
		{"socket", spec.HostPathSocket, ""},
		{"file", spec.HostPathSocket, "is not a socket file"},
		{"none", spec.HostPathSocket, "is not a socket file: it does not exist"},
		{"/dev/null", spec.HostPathCharDevice, ""},
		{"file", spec.HostPathCharDevice, "is not a character device"},
		{"/dev/null", spec.HostPathBlockDevice, "is not a block device"},
		{"loop", spec.HostPathFile, "hostPath type check failed: "},
	}
	s := newSet(t, nil)
	for _, test := range tests {
		path := test.path
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		pod := podOf(spec.Volume{Name: "v", HostPath: &spec.HostPathVolume{Path: path, Type: test.kind}})
		err := s.Prepare(t.Context(), pod)
		t.Logf("%s of type %q: %v", test.path, test.kind, err)
		filetest.WantError(t, err, test.want)
		if test.want != "" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s of type %q: %v", test.path, test.kind, err)
		}
	}
}
