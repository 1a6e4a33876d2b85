//go:build e2e

package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// surfacePod is a pod that uses everything for which the daemon keeps files.
const surfacePod = `
secrets = [{ name = "inline", data = { word = "Kq7-surface-secret" } }]
configMaps = [{ name = "conf", data = { word = "no secret" } }]
volumes = [
	{ name = "secret", secret = { secretName = "inline" } },
	{ name = "conf", configMap = { name = "conf" } },
	{ name = "disk", emptyDir = {} },
	{ name = "memory", emptyDir = { medium = "Memory" } },
	{ name = "claim", persistentVolumeClaim = { claimName = "surface" } },
]

[[containers]]
name = "c"
image = "` + busybox + `"
command = ["sh", "-c", "echo on > /disk/f; echo on > /memory/f; echo on > /claim/f; echo begun; while :; do sleep 1; done"]
ports = [{ containerPort = 80, hostPort = 18090 }]
env.WORD.secretKeyRef = { name = "inline", key = "word" }
volumeMounts = { secret = "/secret", conf = "/conf", disk = "/disk", memory = "/memory", claim = "/claim" }
readinessProbe = { periodSeconds = 1, exec = { command = ["test", "-f", "/disk/f"] } }
`

// TestSurface checks every file of a daemon with a pod for users other than root: no file is writable, the API socket is the only socket
// that can be opened, by its group only, and no secret is readable. Files in a directory that only root can enter are out of reach,
// whatever their mode. The directories above the daemon's count as open.
func TestSurface(t *testing.T) {
	f := newFixture(t)
	f.start("surface", surfacePod)
	seen := map[string]int{}
	for _, root := range []string{f.StateDir(), f.RunDir(), f.LogDir()} {
		err := surface(root, func(path string, info fs.FileInfo, within bool) error { return f.inspect(path, info, within, seen) })
		if err != nil {
			t.Error(err)
		}
	}
	for _, kind := range []string{"the API's socket", "the read-only socket", "a secret out of reach", "a file in reach"} {
		if seen[kind] == 0 {
			t.Errorf("%s was not found, the test checks the wrong directories", kind)
		}
	}
	t.Logf("checked %v", seen)
}

// surface visits everything below a directory, with whether users other than root can reach it. Files that are removed meanwhile are
// skipped.
func surface(root string, visit func(path string, info fs.FileInfo, within bool) error) error {
	var errs []error
	var walk func(path string, within bool)
	walk = func(path string, within bool) {
		info, err := os.Lstat(path)
		if err == nil {
			err = visit(path, info, within)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		if err != nil || !info.IsDir() {
			return
		}
		entries, err := os.ReadDir(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, e := range entries {
			walk(filepath.Join(path, e.Name()), within && info.Mode().Perm()&0o011 != 0)
		}
	}
	walk(root, true)
	return errors.Join(errs...)
}

// inspect returns an error if users other than root can do what only root may.
func (f *fixture) inspect(path string, info fs.FileInfo, within bool, seen map[string]int) error {
	perm, problem := info.Mode().Perm(), ""
	switch info.Mode().Type() { //nolint:exhaustive // other types cannot be opened
	case fs.ModeSymlink:
		return nil
	case fs.ModeSocket:
		switch {
		case path == f.Socket():
			if seen["the API's socket"]++; perm != 0o660 || !within {
				problem = "the API's socket is not 0660, or its group cannot reach it"
			}
		case path == filepath.Join(f.RunDir(), "podstead-ro.sock"):
			if seen["the read-only socket"]++; perm != 0o660 || !within {
				problem = "the read-only socket is not 0660, or its group cannot reach it"
			}
		case within && perm&0o022 != 0:
			problem = "a socket can be connected to"
		}
	case 0:
		secret, err := holdsSecret(path, info)
		if err != nil {
			return err
		}
		switch {
		case secret && !within:
			seen["a secret out of reach"]++
		case secret && perm&0o077 != 0:
			problem = "a secret can be read"
		case within:
			seen["a file in reach"]++
		}
	}
	if problem == "" && within && info.Mode().Type() != fs.ModeSocket && perm&0o022 != 0 {
		problem = "writable"
	}
	if problem == "" && within && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 && info.Mode().IsRegular() {
		problem = "set-user-ID program"
	}
	if problem != "" {
		return fmt.Errorf("%s (%v): %s", path, info.Mode(), problem)
	}
	return nil
}

// holdsSecret reports whether a file contains the test's secret.
func holdsSecret(path string, info fs.FileInfo) (bool, error) {
	if info.Size() > 16<<20 { // a program
		return false, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, unix.EINVAL) { // a pinned namespace
		err = nil
	}
	return bytes.Contains(text, []byte("Kq7-surface-secret")), err
}
