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

// wholeSurface is a pod that uses everything that the daemon keeps files for.
const wholeSurface = `
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

// TestSurface looks at every file of a daemon with a pod, as somebody on the machine who is not root would: nothing can be
// written, no socket but the API's is there, that for its group alone, and no secret can be read. What lies in a folder that only root
// can enter is out of reach, whatever its own mode is; the folders of the machine above the daemon's own count as open.
func TestSurface(t *testing.T) {
	f := newFixture(t)
	f.start("surface", wholeSurface)
	seen := map[string]int{}
	for _, root := range []string{f.StateDir(), f.RunDir(), f.LogDir()} {
		err := surface(root, func(path string, info fs.FileInfo, within bool) error { return f.inspect(path, info, within, seen) })
		if err != nil {
			t.Error(err)
		}
	}
	for _, kind := range []string{"the API's socket", "a secret out of reach", "a file in reach"} {
		if seen[kind] == 0 {
			t.Errorf("%s was not found: the test looks at the wrong place", kind)
		}
	}
	t.Logf("looked at %v", seen)
}

// surface visits what is below a folder, with whether somebody who is not root may get to it. What goes away meanwhile is left out.
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

// inspect is an error where somebody who is not root may do what is root's alone.
func (f *fixture) inspect(path string, info fs.FileInfo, within bool, seen map[string]int) error {
	perm, problem := info.Mode().Perm(), ""
	switch info.Mode().Type() { //nolint:exhaustive // the others are nobody's to open
	case fs.ModeSymlink:
		return nil
	case fs.ModeSocket:
		switch {
		case path == f.Socket():
			if seen["the API's socket"]++; perm != 0o660 || !within {
				problem = "the API's socket is not 0660, or its group does not get to it"
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
		problem = "it can be written"
	}
	if problem == "" && within && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 && info.Mode().IsRegular() {
		problem = "it runs as root for anybody"
	}
	if problem != "" {
		return fmt.Errorf("%s (%v): %s", path, info.Mode(), problem)
	}
	return nil
}

// holdsSecret looks for the secret of the test in a file.
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
