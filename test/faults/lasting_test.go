//go:build e2e

package faults

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/rig"
)

// TestLostStateFiles: pods of the pods directory whose state files are lost or unreadable keep their containers. Containers without a state
// file that no pod file defines are stopped, but only when the directory can be read.
func TestLostStateFiles(t *testing.T) {
	d := newPodsDir(t)
	want := map[string]string{"lost": "a", "garbled": "b", "gone": "c"}
	for name, marker := range want {
		d.write(name, d.text(name, marker))
	}
	was := d.until(want)
	process := map[string]int{}
	for name, marker := range want {
		process[name] = d.process("marker=" + marker)
	}
	d.MustKillDaemon()
	states := filepath.Join(d.StateDir(), "pods")
	d.Check(os.Remove(filepath.Join(states, "lost.json")))
	d.Check(os.Remove(filepath.Join(states, "gone.json")))
	d.Check(os.WriteFile(filepath.Join(states, "garbled.json"), []byte(`{"version":1,`), 0o600))
	d.Check(os.Rename(d.path, d.path+".away"))
	d.until(want)
	d.untilEvents("", string(api.EventPodsDirLost))
	d.MustKillDaemon() // what is orphaned is still known after that
	d.until(want)
	d.Check(os.Remove(filepath.Join(d.path+".away", "gone.toml")))
	d.Check(os.Rename(d.path+".away", d.path))
	now := d.until(map[string]string{"lost": "a", "garbled": "b"})
	for _, name := range []string{"lost", "garbled"} {
		p := now[name]
		if p.Metadata.UID != was[name].Metadata.UID || p.Status.ContainerStatuses[0].RestartCount != 0 ||
			d.process("marker="+want[name]) != process[name] {
			t.Errorf("pod %s was restarted: %+v", name, p.Status)
		}
	}
	if rig.IsAlive(process["gone"]) {
		t.Error("the container that no file defines still runs")
	}
	d.untilEvents("gone", "requested by the pods directory (orphaned containers)")
	d.Await(func() error {
		for _, name := range []string{"lost", "garbled"} {
			if p, err := d.Client().Pod(d.Ctx(), name); err != nil || p.Status.File != filepath.Join(d.path, name+".toml") {
				return fmt.Errorf("pod %s follows %q, %w", name, p.Status.File, err)
			}
		}
		return nil
	})
}

// TestUnfinishedFiles: of each file of state, what was being written at a power loss is removed when the daemon starts.
func TestUnfinishedFiles(t *testing.T) {
	d := newPodsDir(t)
	d.write("web", d.text("web", "a"))
	d.until(map[string]string{"web": "a"})
	d.MustKillDaemon()
	// This pod does not need them.
	for _, name := range []string{"users.json", "reboots.json", "image-use.json", "podstead.toml", "bundle-undo.json"} {
		d.unfinished(filepath.Join(d.StateDir(), name))
	}
	d.Check(os.MkdirAll(filepath.Join(d.StateDir(), "notify"), 0o700))
	d.unfinished(filepath.Join(d.StateDir(), "notify", "ops.json"))
	others := []string{"bundles", "monitor", "runc", "volumes"}
	for _, root := range []string{d.StateDir(), d.RunDir()} {
		d.Check(filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			switch name := filepath.Base(path); {
			case err != nil:
				return err
			case e.IsDir() && (strings.HasPrefix(name, "io.containerd.") || slices.Contains(others, name)):
				return fs.SkipDir
			case e.Type().IsRegular() && !strings.HasPrefix(name, ".") && (filepath.Ext(name) == ".json" || name == "booted"):
				d.unfinished(path)
			}
			return nil
		}))
	}
	written := d.unfinishedFiles()
	for _, name := range []string{"images.json", "web.json", "booted", "network.json", "daemon.json"} {
		if !slices.ContainsFunc(written, func(path string) bool { return strings.Contains(path, "-"+name+"-") }) {
			t.Errorf("there is no file %s; those that are there have the temporary files %q", name, written)
		}
	}
	d.until(map[string]string{"web": "a"})
	d.Await(func() error {
		if left := d.unfinishedFiles(); len(left) > 0 {
			return fmt.Errorf("temporary files are left: %q", left)
		}
		return nil
	})
}

// unfinished leaves what the writer of a file leaves at a power loss.
func (d *podsDir) unfinished(path string) {
	d.Helper()
	d.Check(os.WriteFile(filepath.Join(filepath.Dir(path), ".podstead-tmp-"+filepath.Base(path)+"-1234"), []byte("{"), 0o600))
}

// unfinishedFiles returns the temporary files in the directories of the daemon.
func (d *podsDir) unfinishedFiles() (paths []string) {
	d.Helper()
	for _, root := range []string{d.StateDir(), d.RunDir()} {
		_ = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error { // what is removed meanwhile is no error
			if err == nil && strings.HasPrefix(filepath.Base(path), ".podstead-tmp-") {
				paths = append(paths, path)
			}
			return nil
		})
	}
	return paths
}

// TestEmptyAtBoot: a pods directory that is empty or missing when the daemon starts ends no pod that is known.
func TestEmptyAtBoot(t *testing.T) {
	d := newPodsDir(t)
	want := map[string]string{"one": "a", "two": "b"}
	for name, marker := range want {
		d.write(name, d.text(name, marker))
	}
	d.until(want)
	processes := []int{d.process("marker=a"), d.process("marker=b")}
	for _, missing := range []bool{true, false} {
		d.MustKillDaemon()
		if missing {
			d.Check(os.Rename(d.path, d.path+".away"))
		} else {
			d.Check(os.Mkdir(d.path, 0o755))
		}
		d.MustRun("get")
		d.untilEvents("", map[bool]string{true: "does not exist", false: "has no pod files"}[missing])
		d.until(want)
		for _, p := range processes {
			if !rig.IsAlive(p) {
				t.Errorf("directory missing: %v: a container exited", missing)
			}
		}
	}
	d.Check(os.Remove(d.path))
	d.Check(os.Rename(d.path+".away", d.path))
	d.untilEvents("", string(api.EventPodsDirFound))
	d.until(want)
}

// TestIdle is the short form of TestSoakIdle: each probe runs several times.
func TestIdle(t *testing.T) { testIdle(t, time.Minute) }

// untilEvents waits until the events of a pod, or all events, contain a text.
func (f *fixture) untilEvents(pod, text string) {
	f.Helper()
	args := []string{"events", "-o", "json"}
	if pod != "" {
		args = append(args, pod)
	}
	f.Await(func() error {
		if out, err := f.Podstead(f.Ctx(), args...); err != nil || !strings.Contains(out, text) {
			return fmt.Errorf("events do not contain %q: %w: %s", text, err, out)
		}
		return nil
	})
}
