//go:build e2e

package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const forever = "trap 'exit 0' TERM; while :; do sleep 0.1; done"

// waitsFor waits until a pod waits with a message.
func (f *fixture) waitsFor(name, message string) {
	f.Helper()
	f.Until(name, message, func(p *api.Pod) bool {
		return p.Status.Phase == api.PhasePending && p.Status.Reason == api.ReasonWaitingFor && p.Status.Message == message
	})
}

// awaitSaved waits until the state file of a pod has a condition that was met. It is written in the background.
func (f *fixture) awaitSaved(name, condition string) {
	f.Helper()
	f.Await(func() error {
		var file struct {
			Facts struct {
				Wait lifecycle.Wait `json:"wait"`
			} `json:"facts"`
		}
		text, err := os.ReadFile(filepath.Join(f.StateDir(), "pods", name+".json"))
		if err == nil {
			err = json.Unmarshal(text, &file)
		}
		if err == nil && file.Facts.Wait.Conditions[condition].Met.IsZero() {
			err = fmt.Errorf("condition %s is not saved: %+v", condition, file.Facts.Wait)
		}
		return err
	})
}

func podReady(p *api.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c api.Condition) bool { return c.Type == api.PodReady && c.Status == "True" })
}

// TestFieldsWaitFor: a pod waits for a path, a mount, another pod and a host name before it starts, over a restart of the daemon. A
// condition that is lost has no effect, neither while the pod waits for others nor when a container restarts.
//
// fields: waitFor
func TestFieldsWaitFor(t *testing.T) {
	f := newFixture(t)
	path, mount, state := filepath.Join(f.Dir, "flag"), filepath.Join(f.Dir, "disk"), filepath.Join(f.Dir, "state")
	f.Check(errors.Join(os.Mkdir(mount, 0o755), os.Mkdir(state, 0o755)))
	db := fmt.Sprintf("[[volumes]]\nname = \"state\"\nhostPath = { path = %q }\n", state) + container("db", forever) +
		"volumeMounts.state = \"/state\"\nreadinessProbe = { exec = { command = [\"test\", \"-f\", \"/state/ready\"] }, periodSeconds " +
		"= 0.2 }\n"
	web := fmt.Sprintf("waitFor = [%q, %q, \"pod:db:ready\", \"dns:localhost\"]\n", "path:"+path, "mount:"+mount) +
		container("web", forever)
	r := f.start("--rm=false", f.PodFile("web", web), f.PodFile("db", db))
	f.waitsFor("web", fmt.Sprintf("waiting for path %s: not found, mount %s: not mounted, pod db: not ready", path, mount))
	if table := f.MustRun("get", "web"); !strings.Contains(table, " Waiting ") {
		t.Errorf("get:\n%s", table)
	}
	if why := f.MustRun("why", "web"); !strings.HasPrefix(why, "web is waiting for path "+path+": not found, ") {
		t.Errorf("why:\n%s", why)
	}
	f.Check(os.WriteFile(path, nil, 0o600))
	f.waitsFor("web", fmt.Sprintf("waiting for mount %s: not mounted, pod db: not ready", mount))
	f.awaitSaved("web", "path:"+path)
	f.Check(os.Remove(path))
	f.MustKillDaemon()
	f.get("web") // starts the next daemon
	f.waitsFor("web", fmt.Sprintf("waiting for mount %s: not mounted, pod db: not ready", mount))
	f.Check(unix.Mount("wait", mount, "tmpfs", 0, "size=4k"))
	unmount := func() { _ = unix.Unmount(mount, unix.MNT_DETACH) }
	t.Cleanup(unmount)
	f.waitsFor("web", "waiting for pod db: not ready")
	unmount()
	if p := f.get("web"); p.Status.PodIP != "" {
		t.Errorf("the sandbox of a waiting pod has the address %s", p.Status.PodIP)
	}
	f.Check(os.WriteFile(filepath.Join(state, "ready"), nil, 0o600))
	f.Until("web", "ready", podReady)
	var met []string
	for _, e := range r.events(api.EventConditionMet) {
		met = append(met, e.Fields["condition"])
	}
	if want := []string{
		"dns:localhost", "path:" + path, "mount:" + mount, "pod:db:ready",
	}; !slices.Equal(slices.Sorted(slices.Values(met)), slices.Sorted(slices.Values(want))) {
		t.Errorf("met: %v, want %v", met, want)
	}
	f.Check(os.Remove(filepath.Join(state, "ready")))
	f.Until("db", "not ready", func(p *api.Pod) bool { return !podReady(p) })
	r.interrupt()
	r.exitCode()
	f.MustRun("delete", "web", "db")
}

// TestWaitForSucceededPod: a pod starts after another one has succeeded. One that is stopped while it waits has no error.
func TestWaitForSucceededPod(t *testing.T) {
	f := newFixture(t)
	r := f.start(
		f.PodFile("app", "restartPolicy = \"Never\"\nwaitFor = [\"pod:migrate:succeeded\"]\n"+container("app", "echo app")),
		f.PodFile("migrate", "restartPolicy = \"Never\"\n"+container("migrate", "sleep 1; echo migrated")),
	)
	if code := r.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if met, started := r.event(api.EventConditionMet), r.events(api.EventContainerStarted); met.Pod != "app" || len(started) != 2 ||
		started[1].Pod != "app" || started[1].Seq < met.Seq {
		t.Errorf("condition met: %+v, containers started: %+v", met, started)
	}
	r = f.start(f.PodFile("waiting", "waitFor = [\"pod:app:ready\", \"path:/no/such/path\"]\n"+container("c", forever)))
	f.waitsFor("waiting", "waiting for pod app: not found, path /no/such/path: not found")
	cycle := f.PodFile("app", "waitFor = [\"pod:waiting:ready\"]\n"+container("c", forever))
	if out, err := f.Podstead(f.Ctx(), "run", cycle); err == nil ||
		!strings.Contains(out+err.Error(), "pods wait for each other: app -> waiting -> app") {
		t.Errorf("pods that wait for each other: %v\n%s", err, out)
	}
	f.MustRun("delete", "waiting")
	r.exitCode()
	for _, e := range r.events(api.EventPodWaiting) {
		if e.Fields["conditions"] != "pod:app:ready, path:/no/such/path" {
			t.Errorf("event %+v", e)
		}
	}
}
