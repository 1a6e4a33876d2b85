//go:build e2e

package upgrade

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// panics is a file of a version whose daemon panics soon after it has started, while it takes pods over.
const panics = `package main

import (
	"os"
	"time"
)

func init() {
	if len(os.Args) > 1 && os.Args[1] == "daemon" {
		time.AfterFunc(300*time.Millisecond, func() { panic("defect of the new version") })
	}
}
`

// buildPanicking builds a version that panics.
func buildPanicking(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	list, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(repository(t), "cmd", "podstead", "panics.go"): writeFile(t, filepath.Join(dir, "panics.go"), panics),
	}})
	if err != nil {
		t.Fatal(err)
	}
	build(t, repository(t), dir, "panicking", programs, "-overlay", writeFile(t, filepath.Join(dir, "overlay.json"), string(list)))
	return dir
}

func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// brokenPrograms returns a directory with the programs of a version that does not start.
func brokenPrograms(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range programs {
		writeFile(t, filepath.Join(dir, name), text)
	}
	return dir
}

// TestBrokenUpgrade: pods keep running while the daemon of a new version does not start, and the previous version takes them over again.
func TestBrokenUpgrade(t *testing.T) {
	previous, s := buildPrevious(t), newServers(t)
	h := newHost(t, previous)
	h.MustRun("get")
	names, l := h.create("", s), logs{}
	h.check(l, names)
	before, events := h.look(names), h.events(names)
	for _, c := range []struct{ name, programs, config, want string }{
		{"unknown configuration key", current(t), "[engine]\nnextKey = true\n", "engine.nextKey: unknown field"},
		{"exits at once", brokenPrograms(t, "#!/bin/sh\necho defect >&2\nexit 2\n"), "", "defect"},
		{"another libc", brokenPrograms(t, "#!/lib/ld-of-another-libc.so.1\n"), "", "no such file or directory"},
		{"panics", buildPanicking(t), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &host{h.Of(t), h.bin}
			h.MustRun("daemon", "stop")
			h.install(c.programs)
			h.Check(os.WriteFile(filepath.Join(h.Dir, "podstead.toml"), []byte(c.config), 0o600))
			h.Env = append(h.Env, "PODSTEAD_CONFIG="+filepath.Join(h.Dir, "podstead.toml"))
			out, err := h.Podstead(h.Ctx(), "get")
			t.Logf("get: %s, %v", out, err)
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("get: %v, want %q", err, c.want)
			}
			h.Await(func() error { // this client starts no daemon
				if pid, err := h.DaemonPID(h.Ctx()); err == nil {
					return fmt.Errorf("the daemon %d is running", pid)
				}
				return nil
			})
			h.Check(os.WriteFile(filepath.Join(h.Dir, "podstead.toml"), nil, 0o600))
			h.install(previous)
			h.MustRun("get")
			h.check(l, names)
			h.unchanged("with the previous version", names, before, events)
		})
	}
	h.MustRun("delete", "mixed", "probed", "filed")
	h.MustRun("daemon", "stop")
}
