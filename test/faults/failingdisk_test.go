//go:build e2e

package faults

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestUnreadableDisk: commands about the disk fail with the path and the cause if a directory cannot be read, and work again when
// it can.
func TestUnreadableDisk(t *testing.T) {
	f := newFixture(t)
	f.MustRun("get")
	f.MustCreate("runs", "terminationGracePeriodSeconds = 0\n"+container("c", idle))
	f.running("runs")
	layers := f.awaitLayers(2)
	files := filepath.Join(f.layerDir(), layers[1], "fs")
	f.Check(os.Rename(files, files+"-moved"))
	f.fails(`measure layer .*/fs: no such file or directory`, "system", "df")
	f.Check(os.Rename(files+"-moved", files))
	f.MustRun("system", "df")

	f.MustRun("delete", "--all", "--force")

	moved := f.StateDir() + "-moved"
	f.Check(os.Rename(f.StateDir(), moved))
	back := func() error { return errors.Join(os.RemoveAll(f.StateDir()), os.Rename(moved, f.StateDir())) }
	f.Cleanup(func() {
		if _, err := os.Stat(moved); err == nil {
			f.Check(back())
		}
	})
	f.fails(`measure disk usage: open .*/lib: no such file or directory`, "system", "df")
	f.fails(`free space of .*: no such file or directory`, "image", "import", f.Archive("busybox"))
	f.Check(back())
	f.MustRun("system", "df")
}

// fails checks that a command fails with an error.
func (f *fixture) fails(pattern string, args ...string) {
	f.Helper()
	if out, err := f.Podstead(f.Ctx(), args...); err == nil || !regexp.MustCompile(pattern).MatchString(err.Error()) {
		f.Errorf("podstead %q: %v, want %q\n%s", args, err, pattern, out)
	}
}
