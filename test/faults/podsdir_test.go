//go:build e2e

package faults

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/rig"
)

// podsDir is the pods directory of a fixture.
type podsDir struct {
	*fixture
	path string
}

func newPodsDir(t *testing.T) *podsDir {
	t.Helper()
	d := &podsDir{fixture: newFixture(t)}
	d.path = filepath.Join(d.ConfigDir(), "pods.d")
	d.Check(os.MkdirAll(d.path, 0o755))
	t.Cleanup(func() { // before the check for leftovers
		for _, name := range d.files() {
			d.remove(name)
		}
		d.keep("last")
		d.until(map[string]string{"last": "x"})
		d.remove("last")
		d.until(map[string]string{})
	})
	return d
}

// text is a pod file whose container runs a marker in its command.
func (d *podsDir) text(name, marker string) string {
	return d.PodText(name, "terminationGracePeriodSeconds = 1\n"+
		container("c", fmt.Sprintf(": marker=%s; trap 'exit 0' TERM; while :; do sleep 0.1; done", marker)))
}

func (d *podsDir) write(name, text string) {
	d.Helper()
	d.Check(os.WriteFile(filepath.Join(d.path, name+".toml"), []byte(text), 0o600))
}

// keep writes a pod file that stays, since the directory counts as lost when it is empty at the start of the daemon.
func (d *podsDir) keep(name string) { d.write(name, d.text(name, "x")) }

func (d *podsDir) remove(name string) {
	d.Helper()
	if err := os.Remove(filepath.Join(d.path, name+".toml")); !errors.Is(err, os.ErrNotExist) {
		d.Check(err)
	}
}

func (d *podsDir) files() []string {
	d.Helper()
	entries, err := os.ReadDir(d.path)
	d.Check(err)
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	return names
}

// until waits until exactly these pods run, with these markers, and nothing else of the rig. It starts the daemon if none runs.
func (d *podsDir) until(want map[string]string) (pods map[string]api.Pod) {
	d.Helper()
	d.Await(func() error {
		if _, err := d.Podstead(d.Ctx(), "get"); err != nil {
			return err
		}
		list, err := d.Client().Pods(d.Ctx())
		if err != nil {
			return err
		}
		got := map[string]string{}
		pods = map[string]api.Pod{}
		for i := range list.Items {
			p := &list.Items[i]
			d.Saw(p.Metadata.UID)
			pods[p.Metadata.Name] = *p
			got[p.Metadata.Name] = marker(p)
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("pods %v, want %v", got, want)
		}
		return nil
	})
	return pods
}

// marker is the marker of a pod that runs.
func marker(p *api.Pod) string {
	s := p.Status.ContainerStatuses
	if len(s) != 1 || s[0].State.Running == nil {
		return "(not running)"
	}
	text := strings.Join(p.Spec.Containers[0].Command, " ")
	_, text, _ = strings.Cut(text, "marker=")
	text, _, _ = strings.Cut(text, ";")
	return text
}

// TestPodsDirectorySurvivesKill: files in the pods directory run. After kill -9 of the daemon, the next one carries out what has changed
// meanwhile, and changes nothing else.
func TestPodsDirectorySurvivesKill(t *testing.T) {
	d := newPodsDir(t)
	for name, marker := range map[string]string{"stays": "zero", "changed": "one", "removed": "one"} {
		d.write(name, d.text(name, marker))
	}
	was := d.until(map[string]string{"stays": "zero", "changed": "one", "removed": "one"})
	process := d.process("marker=zero")
	d.MustKillDaemon()
	if !rig.IsAlive(process) {
		t.Error("a container ended with the daemon")
	}
	d.write("changed", d.text("changed", "two"))
	d.write("added", d.text("added", "one"))
	d.remove("removed")
	now := d.until(map[string]string{"stays": "zero", "changed": "two", "added": "one"})
	if was["stays"].Metadata.UID != now["stays"].Metadata.UID || now["stays"].Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the unchanged pod was restarted or replaced: %+v", now["stays"].Status)
	}
	d.MustRun("daemon", "stop")
	if !rig.IsAlive(process) {
		t.Error("a container ended with the daemon")
	}
	d.write("stays", "image = ")
	d.until(map[string]string{"stays": "zero", "changed": "two", "added": "one"})
	d.Await(func() error {
		if out := d.MustRun("events",
			"stays"); !strings.Contains(out, "Pod file is invalid, the pod keeps running: "+filepath.Join(d.path, "stays.toml")+":1:") {
			return fmt.Errorf("events do not contain the error of the file: %s", out)
		}
		return nil
	})
	if out := d.MustRun("doctor"); !strings.Contains(out, filepath.Join(d.path, "stays.toml")+":1:") {
		t.Errorf("doctor does not report the file:\n%s", out)
	}
	if got := d.process("marker=zero"); got != process {
		t.Errorf("the process was %d, is %d", process, got)
	}
}
