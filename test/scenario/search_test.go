//go:build e2e

package scenario

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/monitor"
)

// forms returns the encodings in which each value may occur.
func (h hidden) forms() map[string][]string {
	forms := map[string][]string{}
	for name, value := range map[string]string{
		"inline": h.inline, "envFile": h.envFile, "directory": h.directory, "credential": h.credential, "program": h.program,
	} {
		list := []string{value, strings.Trim(strconv.Quote(value), `"`), url.QueryEscape(value), hex.EncodeToString([]byte(value))}
		if text, err := json.Marshal(value); err == nil {
			list = append(list, strings.Trim(string(text), `"`))
		}
		for shift := range 3 { // base64 has three encodings of a value within a longer text; the edges depend on what surrounds it
			text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + value))
			list = append(list, text[4:len(text)-4])
		}
		slices.Sort(list)
		forms[name] = slices.Compact(list)
	}
	return forms
}

// place is a file or directory that may contain secrets.
type place struct {
	pattern   string // a pattern of [filepath.Match]; a directory includes all files in it
	secrets   []string
	ok        func(path string) bool
	transient bool // exists for a moment only, and need not be found
	reason    string
}

// places returns all of them.
func (f *fixture) places() []place {
	every := []string{"inline", "envFile", "directory", "credential", "program"}
	engine := filepath.Join(f.RunDir(), "engine")
	bundles := filepath.Join(engine, "io.containerd.runtime.v2.task", "podstead")
	errorsOfRuntime := filepath.Join(bundles, "*", "log.json")
	if f.Monitor != "" {
		bundles = filepath.Join(engine, "bundles")
		errorsOfRuntime = filepath.Join(monitor.ContainersDir(filepath.Join(engine, "monitor")), "*", "runtime.json")
	}
	return []place{{
		pattern: filepath.Join(f.StateDir(), "pods", "keeper.json"), secrets: []string{"inline", "envFile", "program"}, ok: private,
		reason: "the daemon restarts the pod from it",
	}, {
		pattern: filepath.Join(f.StateDir(), "pods", ".podstead-tmp-keeper.json-*"), secrets: []string{"inline", "envFile", "program"},
		ok: private, transient: true,
		reason: "the file above before it is renamed; left over if the daemon is killed, until it starts again",
	}, {
		pattern: filepath.Join(bundles, "*", "config.json"), secrets: every, ok: private,
		reason: "the OCI runtime reads a container's environment and arguments from it",
	}, {
		pattern: filepath.Join(f.RunDir(), "volumes", "*", "files"), secrets: every, ok: inMemory,
		reason: "secret volumes, on a tmpfs",
	}, {
		pattern: filepath.Join(f.RunDir(), "process", "*"), secrets: every, ok: private, transient: true,
		reason: "the environment and arguments for the shim or the monitor, removed when it has read them",
	}, {
		pattern: errorsOfRuntime, secrets: []string{"program"}, ok: enclosed, transient: true,
		reason: "the OCI runtime reports a missing program here, until the container that failed to start is removed",
	}, {
		pattern: filepath.Join(filepath.Dir(errorsOfRuntime), "log", "stderr.spool"), secrets: []string{"program"}, ok: enclosed,
		transient: true, reason: "the OCI runtime writes the same error to the container's standard error",
	}}
}

// private reports whether only root can read a file. A file that was removed meanwhile counts as private.
func private(path string) bool {
	info, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Perm() == 0o600
}

// enclosed reports whether only root can reach a file, because its directory is private.
func enclosed(path string) bool {
	info, err := os.Stat(filepath.Dir(path))
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Perm()&0o007 == 0
}

// inMemory reports whether a file is on a tmpfs.
func inMemory(path string) bool { return isOn(path, unix.TMPFS_MAGIC) }

// isOn reports whether a file is on a file system of a type.
func isOn(path string, magic int64) bool {
	var stat unix.Statfs_t
	return unix.Statfs(path, &stat) == nil && int64(stat.Type) == magic //nolint:unconvert // the type depends on the architecture
}

// keepsNothing checks that no file outside of the expected places contains secrets.
func (f *fixture) keepsNothing(h hidden) {
	f.Helper()
	used := f.keeps(h, f.places())
	for _, p := range f.places() {
		if !used[p.pattern] && !p.transient { // the search has missed it, or the exception is not needed
			f.Errorf("no secret found in %s, where one is expected: %s", p.pattern, p.reason)
		}
	}
}

// keeps fails the test for each file with a secret that is not in one of the places. It returns the places that have one.
func (f *fixture) keeps(h hidden, places []place) (used map[string]bool) {
	f.Helper()
	used = map[string]bool{}
	forms := h.forms()
	for _, dir := range []string{f.StateDir(), f.RunDir(), f.LogDir()} {
		f.Check(filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || isOn(path, unix.NSFS_MAGIC) { // pinned namespaces
				return ignoreNotExist(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return ignoreNotExist(err)
			}
			for name, list := range forms {
				if !slices.ContainsFunc(list, func(form string) bool { return bytes.Contains(text, []byte(form)) }) {
					continue
				}
				i := slices.IndexFunc(places, func(p place) bool { return p.has(path) && slices.Contains(p.secrets, name) })
				if i < 0 || !places[i].ok(path) {
					f.Errorf("secret %q found in %s", name, path)
				} else {
					used[places[i].pattern] = true
				}
			}
			return nil
		}))
	}
	return used
}

// has reports whether a file is the place or is in it.
func (p place) has(path string) bool {
	for ; len(path) > 1; path = filepath.Dir(path) {
		if match, err := filepath.Match(p.pattern, path); match && err == nil {
			return true
		}
	}
	return false
}

// ignoreNotExist ignores that a file was removed meanwhile.
func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
