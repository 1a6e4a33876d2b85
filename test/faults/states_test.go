//go:build e2e

package faults

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/statefile"
)

var (
	update   = flag.Bool("update", false, "write the state files of a new version to test/formats/testdata")
	programs = flag.String("programs", "", "directory of the programs that write these files, of this or an earlier version")
)

// waits is a script that runs until it is stopped, and starts one process only.
const waits = "trap 'exit 0' TERM; while :; do sleep 100000 & wait $!; done"

// states are pods in different states. Their names are those of the states.
var states = map[string]string{
	"probed": container("web", waits) +
		"ports = [{ containerPort = 80, hostPort = 18099, hostIP = \"127.0.0.1\" }]\nreadinessProbe = { exec = { command = [\"true\"] }, " +
		"periodSeconds = 1 }\n",
	"volumes": "[[volumes]]\nname = \"data\"\npersistentVolumeClaim = { claimName = \"data\" }\n[[volumes]]\nname = " +
		"\"scratch\"\nemptyDir = {}\n[[secrets]]\nname = \"db\"\ndata = { password = \"swordfish\" }\n" +
		container("db", "echo kept >> /data/file; "+waits) +
		"volumeMounts = { data = \"/data\", scratch = \"/scratch\" }\nenv = [{ name = \"PASSWORD\", valueFrom.secretKeyRef = { name = " +
		"\"db\", key = \"password\" } }]\n",
	"looping": container("fails", "echo no; exit 3"),
	"users":   "hostUsers = false\n" + container("c", waits),
	"done":    "restartPolicy = \"Never\"\n" + container("c", "exit 0"),
	"stopped": container("c", waits),
}

// inStates creates the pods, and waits until they have their states.
func (f *fixture) inStates() {
	f.Helper()
	f.MustRun("get")
	for name, text := range states {
		f.MustCreate(name, "terminationGracePeriodSeconds = 1\n"+text)
	}
	for _, name := range []string{"probed", "volumes", "users", "stopped"} {
		f.Until(name, "ready", podReady)
	}
	f.Until("looping", "backing off", func(p *api.Pod) bool {
		s := p.Status.ContainerStatuses
		return len(s) == 1 && s[0].RestartCount > 0 && s[0].State.Waiting != nil && s[0].State.Waiting.Reason == "CrashLoopBackOff"
	})
	f.Until("done", "completed", func(p *api.Pod) bool { return p.Status.Phase == "Succeeded" })
}

// deleteStates deletes the pods and the volume.
func (f *fixture) deleteStates() {
	f.Helper()
	f.MustRun(append([]string{"delete"}, slices.Sorted(maps.Keys(states))...)...)
	f.MustRun("volume", "rm", "data")
}

// walk returns the regular files of the rig, with the directories as the page names them.
func (f *fixture) walk() (files []string) {
	f.Helper()
	for name, dir := range map[string]string{"STATE": f.StateDir(), "RUN": f.RunDir()} {
		f.Check(filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if e != nil && e.IsDir() && foreign.MatchString(strings.Replace(path, dir, name, 1)) {
				return fs.SkipDir
			}
			if err == nil && e.Type().IsRegular() {
				files = append(files, strings.Replace(path, dir, name, 1))
			}
			return err
		}))
	}
	slices.Sort(files)
	return files
}

// foreign matches directories of containers, and what is mounted in them.
var foreign = regexp.MustCompile(`/rootfs($|/)|^STATE/volumes/|/snapshots/[0-9]+$|^STATE/pods/[^/]+/volumes/|^RUN/(images|ns|volumes)/|/shm$`)

// TestStateFiles: each file of a daemon with pods is in docs/reference/state-files.md.
func TestStateFiles(t *testing.T) {
	f := newFixture(t)
	f.inStates()
	f.MustRun("stop", "stopped")
	page, err := os.ReadFile(filepath.Join(f.Repository, "docs", "reference", "state-files.md"))
	f.Check(err)
	var patterns []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(string(page), -1) {
		patterns = append(patterns, match[1])
	}
	used := map[string]bool{}
	for _, file := range f.walk() {
		known := false
		for _, pattern := range patterns {
			if matches(pattern, file) {
				known, used[pattern] = true, true
			}
		}
		if !known && !strings.Contains(file, "/.podstead-tmp-") {
			t.Errorf("%s is not in docs/reference/state-files.md", file)
		}
	}
	t.Logf("%d of %d patterns have files", len(used), len(patterns))
	f.deleteStates()
}

// matches reports whether a file has a path of the page. "/..." at its end means everything below a directory.
func matches(pattern, file string) bool {
	if dir, all := strings.CutSuffix(pattern, "/..."); all {
		depth := strings.Count(dir, "/") + 1
		parts := strings.Split(file, "/")
		if len(parts) <= depth {
			return false
		}
		pattern, file = dir, strings.Join(parts[:depth], "/")
	}
	ok, err := filepath.Match(pattern, file)
	return ok && err == nil
}

// versioned are the formats of Podstead, by the directory in test/formats/testdata.
var versioned = map[string]string{
	"pod": "STATE/pods/*.json", "checkpoint": "RUN/pods/*.json", "journal": "STATE/events/*.jsonl", "quarantine": "STATE/quarantine/*.json",
	"network": "STATE/network.json", "leases": "RUN/network.json", "users": "STATE/users.json", "images": "STATE/engine/images.json",
	"life": "RUN/daemon.json", "damage": "STATE/engine/damaged/reports.json",
}

// sum is the checksum of a file.
var sum = regexp.MustCompile(`,"_sum":"[0-9a-f]{8}"`)

// TestWriteFormats writes the state files of new versions with -update, and does nothing without it. With -programs it does that with an
// earlier version of Podstead.
func TestWriteFormats(t *testing.T) {
	if !*update {
		return
	}
	f := newFixture(t)
	if *programs != "" {
		f.Program, f.Shim = filepath.Join(*programs, "podstead"), filepath.Join(*programs, filepath.Base(f.Shim))
	}
	f.inStates()
	f.MustKillDaemon()
	written := map[string]string{}
	for _, file := range f.walk() {
		for name, pattern := range versioned {
			if !matches(pattern, file) {
				continue
			}
			path := strings.Replace(strings.Replace(file, "STATE", f.StateDir(), 1), "RUN", f.RunDir(), 1)
			text, err := os.ReadFile(path)
			f.Check(err)
			text = sum.ReplaceAll(text, nil) // the paths below change
			written[fmt.Sprintf("%s/v%d/%s", name, versionOf(text),
				filepath.Base(file))] = strings.NewReplacer(f.Dir, "/srv/rig", f.Repository, "/srv/podstead").Replace(string(text))
		}
	}
	f.MustRun("get")
	f.deleteStates()
	writeNew(f, filepath.Join(f.Repository, "test", "formats", "testdata"), written)
}

func versionOf(text []byte) int {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	for v := range 1000 {
		if (statefile.Format{Version: v, Unversioned: true}).Check([]byte(line)) == nil {
			return v
		}
	}
	return 0
}

// writeNew writes files of versions that have none. Files of a version never change: hosts have them.
func writeNew(f *fixture, dir string, files map[string]string) {
	f.Helper()
	existing := map[string]bool{}
	for name := range files {
		_, err := os.Stat(filepath.Join(dir, filepath.Dir(name)))
		existing[filepath.Dir(name)] = err == nil
	}
	for name, text := range files {
		if existing[filepath.Dir(name)] {
			f.Logf("%s: the version has files, they are not changed", name)
			continue
		}
		path := filepath.Join(dir, name)
		f.Check(os.MkdirAll(filepath.Dir(path), 0o755))
		f.Check(os.WriteFile(path, []byte(text), 0o644))
	}
}
