package container

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestGrantedDevices resolves links to nodes of the host. TestFieldsDevices of package runtime makes nodes.
func TestGrantedDevices(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "tree", "pts"), 0o755), os.Mkdir(filepath.Join(dir, "empty"), 0o755),
		os.Symlink("/dev/null", filepath.Join(dir, "null")), os.Symlink("../null", filepath.Join(dir, "tree", "twice")),
		os.Symlink("/dev/zero", filepath.Join(dir, "tree", "pts", "0")), os.Symlink("none", filepath.Join(dir, "tree", "dangling")),
		os.Symlink("tree", filepath.Join(dir, "link")), os.WriteFile(filepath.Join(dir, "tree", "file"), nil, 0o600),
		unix.Mkfifo(filepath.Join(dir, "tree", "fifo"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	granted := func(d spec.Device) (string, error) {
		d.Path = filepath.Join(dir, d.Path)
		list, err := grantedDevices(t.Context(), &spec.Container{Devices: []spec.Device{d}})
		text := ""
		for _, g := range slices.Concat(list...) {
			text += g.Source + " " + g.Path + " " + g.Access + " " + g.Type + "\n"
		}
		return text, err
	}
	for _, test := range []struct {
		d    spec.Device
		want string
	}{
		{spec.Device{Path: "null", ContainerPath: "/dev/x", Permissions: "r"}, "/dev/null /dev/x r c\n"},
		{spec.Device{Path: "link", ContainerPath: "/dev/tree"}, "/dev/null /dev/tree/twice rwm c\n"},
		{spec.Device{Path: "none", Optional: true}, ""},
		{spec.Device{Path: "empty", Optional: true}, ""},
		{spec.Device{Path: "tree/file/x", Optional: true}, ""},
	} {
		if got, err := granted(test.d); got != test.want || err != nil {
			t.Errorf("%+v: %q, %v, want %q", test.d, got, err, test.want)
		}
	}
	for path, reason := range map[string]lifecycle.Reason{
		"none": lifecycle.ReasonDeviceMissing, "empty": lifecycle.ReasonDeviceMissing, "tree/dangling": lifecycle.ReasonDeviceMissing,
		"tree/file": "", "tree/fifo": "",
	} {
		_, err := granted(spec.Device{Path: path})
		if f, _ := errors.AsType[lifecycle.Failure](err); err == nil || f.Reason != reason {
			t.Errorf("%s: %v, want %q", path, err, reason)
		}
	}
	if _, err := granted(spec.Device{Path: "tree/file", Optional: true}); err == nil {
		t.Error("a file is an optional device")
	}
}
