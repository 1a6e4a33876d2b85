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
)

// forms are the ways in which each value may be written.
func (h hidden) forms() map[string][]string {
	forms := map[string][]string{}
	for name, value := range map[string]string{
		"inline": h.inline, "envFile": h.envFile, "folder": h.folder, "credential": h.credential, "program": h.program,
	} {
		list := []string{value, strings.Trim(strconv.Quote(value), `"`), url.QueryEscape(value), hex.EncodeToString([]byte(value))}
		if text, err := json.Marshal(value); err == nil {
			list = append(list, strings.Trim(string(text), `"`))
		}
		for shift := range 3 { // within a longer text, base64 has three ways to write it; the edges depend on what is beside it
			text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + value))
			list = append(list, text[4:len(text)-4])
		}
		slices.Sort(list)
		forms[name] = slices.Compact(list)
	}
	return forms
}

// place is a file, or files, that may hold secrets.
type place struct {
	pattern string // of [filepath.Match]; a folder stands for all that is in it
	secrets []string
	ok      func(path string) bool
	passing bool // it is there for a moment only, and need not be seen
	reason  string
}

// places are all of them.
func (f *fixture) places() []place {
	every := []string{"inline", "envFile", "folder", "credential", "program"}
	bundles := filepath.Join(f.RunDir(), "engine", "io.containerd.runtime.v2.task", "podstead")
	return []place{{
		pattern: filepath.Join(f.StateDir(), "pods", "keeper.json"), secrets: []string{"inline", "envFile", "program"}, ok: private,
		reason: "without the values of the pod file the pod could not start again",
	}, {
		pattern: filepath.Join(f.StateDir(), "pods", ".podstead-tmp-keeper.json-*"), secrets: []string{"inline", "envFile", "program"}, ok: private, passing: true,
		reason: "this is the file above until it is on the disk, or until the next start of a daemon that was killed before",
	}, {
		pattern: filepath.Join(bundles, "*", "config.json"), secrets: every, ok: private,
		reason: "the OCI runtime reads the environment and the arguments of a container there",
	}, {
		pattern: filepath.Join(f.RunDir(), "volumes", "*", "files"), secrets: every, ok: inMemory,
		reason: "these are the volumes of secrets, on a tmpfs",
	}, {
		pattern: filepath.Join(f.RunDir(), "process", "*"), secrets: every, ok: private, passing: true,
		reason: "the shim is given the environment and the arguments here, and they are gone when it has them",
	}, {
		pattern: filepath.Join(bundles, "*", "log.json"), secrets: []string{"program"}, ok: enclosed, passing: true,
		reason: "the OCI runtime says here which program it did not find, until the container that did not start is taken away",
	}}
}

// private reports whether only root reads a file, unless it has gone meanwhile.
func private(path string) bool {
	info, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Perm() == 0o600
}

// enclosed reports whether only root reaches a file, since the folder that it lies in is private.
func enclosed(path string) bool {
	info, err := os.Stat(filepath.Dir(path))
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Perm()&0o007 == 0
}

// inMemory reports whether a file is on a tmpfs.
func inMemory(path string) bool { return isOn(path, unix.TMPFS_MAGIC) }

// isOn reports whether a file is on a file system of a type.
func isOn(path string, magic int64) bool {
	var stat unix.Statfs_t
	return unix.Statfs(path, &stat) == nil && stat.Type == magic
}

// keepsNothing looks through all files for secrets that lie where they need not.
func (f *fixture) keepsNothing(h hidden) {
	f.Helper()
	used := f.keeps(h, f.places())
	for _, p := range f.places() {
		if !used[p.pattern] && !p.passing { // then the search has not seen it, or the exception is not needed
			f.Errorf("no secret lies in %s, where it may: %s", p.pattern, p.reason)
		}
	}
}

// keeps fails the test for each file with a secret that is not in one of the places, and returns which of those have one.
func (f *fixture) keeps(h hidden, places []place) (used map[string]bool) {
	f.Helper()
	used = map[string]bool{}
	forms := h.forms()
	for _, dir := range []string{f.StateDir(), f.RunDir(), f.LogDir()} {
		f.Check(filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || isOn(path, unix.NSFS_MAGIC) { // that is a namespace
				return gone(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return gone(err)
			}
			for name, list := range forms {
				if !slices.ContainsFunc(list, func(form string) bool { return bytes.Contains(text, []byte(form)) }) {
					continue
				}
				i := slices.IndexFunc(places, func(p place) bool { return p.has(path) && slices.Contains(p.secrets, name) })
				if i < 0 || !places[i].ok(path) {
					f.Errorf("the secret %q lies in %s", name, path)
				} else {
					used[places[i].pattern] = true
				}
			}
			return nil
		}))
	}
	return used
}

// has reports whether a file is the place, or lies in it.
func (p place) has(path string) bool {
	for ; len(path) > 1; path = filepath.Dir(path) {
		if match, err := filepath.Match(p.pattern, path); match && err == nil {
			return true
		}
	}
	return false
}

// gone forgives that a file has gone meanwhile.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
