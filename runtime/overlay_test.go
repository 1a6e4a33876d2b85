package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSelectSnapshotter tests that an engine keeps the snapshotter that has layers, and what it does if overlayfs does not work, or
// cannot be tried.
func TestSelectSnapshotter(t *testing.T) {
	const unsupported = "overlayfs cannot be mounted: invalid argument"
	for _, test := range []struct {
		has    string // layers
		reason string // why overlayfs does not work
		err    error  // why it cannot be tried
		name   string // empty: an error
		want   string // reason
	}{
		{"", "", nil, overlay, ""},
		{"", unsupported, nil, native, unsupported},
		{"", "", unix.ENOSPC, "", ""},
		{native, "", nil, native, "the images were unpacked while overlayfs did not work"},
		{native, unsupported, nil, native, unsupported},
		{native, "", unix.ENOSPC, native, "overlayfs cannot be tried: no space left on device"},
		{overlay, "", nil, overlay, ""},
		{overlay, unsupported, nil, "", ""},
		{overlay, "", unix.ENOSPC, overlay, ""},
	} {
		dir := t.TempDir()
		layers := func(name string) string { return filepath.Join(dir, name) }
		if test.has != "" {
			if err := os.MkdirAll(filepath.Join(layers(test.has), "1"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		try := func(string) (string, error) { return test.reason, test.err }
		name, reason, err := selectSnapshotter(dir, layers, try)
		if name != test.name || reason != test.want || (err != nil) != (test.name == "") {
			t.Errorf("%+v: %s, %q, %v", test, name, reason, err)
		}
		if test.name == "" && errors.Is(err, ErrOverlay) != (test.has == overlay) {
			t.Errorf("%+v: %v", test, err)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if name, _, err := selectSnapshotter(dir, func(string) string { return file }, tryOverlay); err == nil {
		t.Errorf("layers that cannot be listed: %s", name)
	}
}

// TestTryOverlay tests that a trial leaves nothing, and that a directory that cannot be written to is an error. Whether overlayfs works
// here is not known.
func TestTryOverlay(t *testing.T) {
	dir := t.TempDir()
	if _, err := tryOverlay(dir); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left in the directory: %v, %v", entries, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if reason, err := tryOverlay(file); err == nil {
		t.Errorf("in a file: %q", reason)
	}
	for _, lacks := range []error{unix.ENOSPC, unix.EDQUOT, unix.EMFILE} {
		if reason, err := reasonOf(fmt.Errorf("mount: %w", lacks)); reason != "" || !errors.Is(err, lacks) {
			t.Errorf("%v: %q, %v", lacks, reason, err)
		}
	}
	if reason, err := reasonOf(unix.EINVAL); reason != unix.EINVAL.Error() || err != nil {
		t.Errorf("%q, %v", reason, err)
	}
}
