//go:build e2e

package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
)

// nextHead is internal/statefile/head.go of a later version. That version adds a field to each file. Earlier versions read its files if
// they are compatible.
const nextHead = `package statefile

import "encoding/json"

func (f Format) head() ([]byte, error) {
	return json.Marshal(map[string]any{"version": f.Version + 1, "minReader": f.Version + %d, "nextVersion": "adds this"})
}
`

// buildNext builds a later version of the daemon and returns its path. Shim and monitor are the current ones: they outlive the daemon.
func (f *fixture) buildNext(compatible bool) (program string) {
	f.Helper()
	dir := filepath.Join(f.Dir, fmt.Sprintf("next-%t", compatible))
	f.Check(os.Mkdir(dir, 0o755))
	source := func(name string) string { return filepath.Join(f.Repository, "internal", "statefile", name) }
	reader, err := os.ReadFile(source("format.go"))
	f.Check(err)
	needed := 0
	text := string(reader)
	if !compatible {
		needed = 1
		text = strings.Replace(text, "needed > f.Version", "needed > f.Version+1", 1)
		if text == string(reader) {
			f.Fatal("format.go does not compare the version as expected")
		}
	}
	overlay := map[string]map[string]string{"Replace": {}}
	for name, text := range map[string]string{"head.go": fmt.Sprintf(nextHead, needed), "format.go": text} {
		overlay["Replace"][source(name)] = filepath.Join(dir, name)
		f.Check(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	list, err := json.Marshal(overlay)
	f.Check(err)
	f.Check(os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600))
	build := exec.CommandContext(f.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-ldflags",
		"-s -w -X main.version=next", "-o", dir, "./cmd/podstead")
	build.Dir, build.Env = f.Repository, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		f.Fatalf("build: %v: %s", err, out)
	}
	for _, current := range []string{f.Shim, f.Monitor} {
		data, err := os.ReadFile(current)
		f.Check(err)
		f.Check(os.WriteFile(filepath.Join(dir, filepath.Base(current)), data, 0o755))
	}
	return filepath.Join(dir, "podstead")
}

// switchTo stops the daemon and starts that of another program.
func (f *fixture) switchTo(program string) {
	f.Helper()
	f.MustRun("daemon", "stop")
	f.Program = program
	f.MustRun("get")
}

// kept is what must not change with the version: processes, containers, restart counts.
func (f *fixture) kept() map[string]any {
	f.Helper()
	pids := []int{}
	all, err := f.Processes()
	f.Check(err)
	for _, p := range all {
		if strings.Contains(p.Command, "while :") {
			pids = append(pids, p.PID)
		}
	}
	holders, err := f.Holders()
	f.Check(err)
	for _, p := range holders {
		pids = append(pids, p.PID)
	}
	slices.Sort(pids)
	list, err := f.Client().Pods(f.Ctx())
	f.Check(err)
	pods := map[string]string{}
	for i := range list.Items {
		p := &list.Items[i]
		if p.Metadata.Name == "looping" || len(p.Status.ContainerStatuses) != 1 {
			continue
		}
		s := p.Status.ContainerStatuses[0]
		pods[p.Metadata.Name] = fmt.Sprintln(p.Metadata.UID, p.Status.Phase, s.ContainerID, s.RestartCount, s.Ready)
	}
	return map[string]any{"processes": pids, "pods": pods}
}

// history returns the events in the journal of the pods that must not restart, by their numbers.
func (f *fixture) history() map[uint64]api.EventKind {
	f.Helper()
	events, inJournal := map[uint64]api.EventKind{}, map[api.EventKind]bool{}
	for _, e := range api.EventEntries() {
		inJournal[e.Kind] = e.Kept
	}
	for name := range states {
		if name == "looping" {
			continue
		}
		for line := range strings.Lines(f.MustRun("events", name, "-o", "json")) {
			var e api.Event
			f.Check(json.Unmarshal([]byte(line), &e))
			if inJournal[e.Kind] {
				events[e.Seq] = e.Kind
			}
		}
	}
	return events
}

// stateFiles returns the state files of the pods in states.
func (f *fixture) stateFiles() map[string]string {
	f.Helper()
	files := map[string]string{}
	for name := range states {
		text, err := os.ReadFile(filepath.Join(f.StateDir(), "pods", name+".json"))
		f.Check(err)
		files[name] = string(text)
	}
	return files
}

// awaitFiles waits until all these files begin with the version and have the field of the later version.
func (f *fixture) awaitFiles(version int, paths ...string) {
	f.Helper()
	for _, path := range paths {
		f.Await(func() error {
			text, err := os.ReadFile(path)
			var head struct {
				Version     int    `json:"version"`
				NextVersion string `json:"nextVersion"`
			}
			if err == nil {
				err = json.Unmarshal(text, &head)
			}
			if err == nil && (head.Version != version || head.NextVersion == "") {
				err = fmt.Errorf("%s has version %d, nextVersion %q", path, head.Version, head.NextVersion)
			}
			return err
		})
	}
}

// checkNothingLost compares processes, pods and events with what they were.
func (f *fixture) checkNothingLost(was map[string]any, events map[uint64]api.EventKind) {
	f.Helper()
	if diff := cmp.Diff(was, f.kept()); diff != "" {
		f.Errorf("the pods changed (-before +after):\n%s", diff)
	}
	now := f.history()
	for seq, kind := range events {
		if now[seq] != kind {
			f.Errorf("event %d, %s, was lost", seq, kind)
		}
	}
	for seq, kind := range now {
		if _, before := events[seq]; !before && kind != api.EventPodRecovered {
			f.Errorf("event %d, %s, after the change of the version", seq, kind)
		}
	}
}

// TestUpgradeAndDowngrade: a later version that adds fields runs for a while, and then this version again. Nothing restarts, nothing is
// lost, and the added fields are still there after this version has written the files.
func TestUpgradeAndDowngrade(t *testing.T) {
	f := newFixture(t)
	current, next := f.Program, f.buildNext(true)
	f.inStates()
	f.MustRun("stop", "stopped")
	was, events := f.kept(), f.history()
	var paths []string
	for name := range states {
		paths = append(paths, filepath.Join(f.StateDir(), "pods", name+".json"))
	}
	shared := []string{
		filepath.Join(f.StateDir(), "users.json"), filepath.Join(f.StateDir(), "network.json"), filepath.Join(f.RunDir(), "network.json"),
	}
	rewrite := func(name string) { // the shared files change when a pod with a new name starts
		f.MustCreate(name, "terminationGracePeriodSeconds = 1\nhostUsers = false\n"+container("c", forever))
		f.Until(name, "ready", podReady)
		f.MustRun("delete", name)
	}
	f.switchTo(next)
	f.awaitFiles(2, paths...)
	rewrite("later")
	f.awaitFiles(2, shared...)
	f.checkNothingLost(was, events)
	f.switchTo(current)
	f.awaitFiles(1, paths...)
	rewrite("back")
	f.awaitFiles(1, shared...)
	f.checkNothingLost(was, events)
	f.switchTo(next)
	f.checkNothingLost(was, events)
	f.deleteStates()
}

// TestIncompatibleUpgrade: this version does not touch the pods of a later version whose state files it cannot read. They keep running, and
// the later version continues with them.
func TestIncompatibleUpgrade(t *testing.T) {
	f := newFixture(t)
	current, next := f.Program, f.buildNext(false)
	f.inStates()
	f.MustRun("stop", "stopped")
	was, events := f.kept(), f.history()
	f.switchTo(next)
	var paths []string
	for name := range states {
		paths = append(paths, filepath.Join(f.StateDir(), "pods", name+".json"))
	}
	f.awaitFiles(2, paths...)
	f.MustRun("daemon", "stop")
	files := f.stateFiles()
	f.Program = current
	f.MustRun("get")
	for name := range states {
		f.Until(name, "NewerState", func(p *api.Pod) bool { return p.Status.Reason == api.ReasonNewerState })
	}
	f.Await(func() error { // a shell that starts a program has two processes for a moment
		if diff := cmp.Diff(was["processes"], f.kept()["processes"]); diff != "" {
			return fmt.Errorf("processes (-before +after):\n%s", diff)
		}
		return nil
	})
	if text := f.MustRun("events", "probed", "-o", "json"); !strings.Contains(text, string(api.EventStateUnsupported)) {
		t.Errorf("events:\n%s", text)
	}
	if out, _ := f.Podstead(f.Ctx(), "doctor"); !strings.Contains(out, "written by a later version") {
		t.Errorf("doctor:\n%s", out)
	}
	f.MustRun("daemon", "stop")
	if diff := cmp.Diff(files, f.stateFiles()); diff != "" {
		t.Errorf("state files of the later version (-before +after):\n%s", diff)
	}
	f.Program = next
	f.MustRun("get")
	if diff := cmp.Diff(was, f.kept()); diff != "" {
		t.Errorf("the pods changed (-before +after):\n%s", diff)
	}
	now := f.history()
	for seq, kind := range events {
		if now[seq] != kind {
			t.Errorf("event %d, %s, was lost", seq, kind)
		}
	}
	f.deleteStates()
}

// TestBackupAndRestore follows docs/howto/back-up-and-restore.md: pods come back on an empty host, from a copy of the state directory
// without the container engine.
func TestBackupAndRestore(t *testing.T) {
	f := newFixture(t)
	f.inStates()
	f.MustRun("stop", "stopped")
	before := f.get("volumes")
	f.MustRun("daemon", "stop")
	archive := filepath.Join(f.Dir, "backup.tar.gz")
	tar := func(args ...string) {
		if out, err := exec.CommandContext(f.Ctx(), "tar", args...).CombinedOutput(); err != nil {
			f.Fatalf("tar %q: %v: %s", args, err, out)
		}
	}
	name := filepath.Base(f.StateDir())
	tar("-C", f.Dir, "--numeric-owner", "--exclude="+name+"/engine", "-czf", archive, name)
	f.Check(f.CutPower(f.Ctx()))
	f.Check(os.RemoveAll(f.StateDir()))
	f.Check(os.RemoveAll(f.LogDir()))
	tar("-C", f.Dir, "--numeric-owner", "-xzf", archive)
	f.MustRun("get")
	for _, name := range []string{"probed", "volumes", "users"} {
		f.Until(name, "ready", podReady)
	}
	after := f.get("volumes")
	if after.Metadata.UID != before.Metadata.UID {
		t.Errorf("UID %s, was %s", after.Metadata.UID, before.Metadata.UID)
	}
	f.Await(func() error { // the container writes the line when it has started
		text, err := os.ReadFile(filepath.Join(f.StateDir(), "volumes", "data", "file"))
		if lines := strings.Count(string(text), "kept"); err == nil && lines != 2 {
			err = fmt.Errorf("persistent volume: %q, want a line of each start", text)
		}
		return err
	})
	if p := f.get("done"); p.Status.Phase != api.PhaseSucceeded {
		t.Errorf("completed pod: %s", p.Status.Phase)
	}
	if out := f.MustRun("get", "stopped"); !strings.Contains(out, "Stopped") {
		t.Errorf("stopped pod:\n%s", out)
	}
	t.Logf("after the restore:\n%s", f.MustRun("get"))
	f.deleteStates()
}
