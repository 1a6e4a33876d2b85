//go:build e2e

package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
)

// release is one definition of a pod that rolls back.
type release struct {
	number  int
	within  int    // seconds
	image   string // default busybox
	pod     string // more lines of the pod
	command string // default: runs until it is stopped
	probe   string // default "true"
	more    string // more lines of the container
}

// rolling returns the text of a pod file.
func (d *podsDir) rolling(name string, r release) string {
	if r.image == "" {
		r.image = busybox
	}
	if r.command == "" {
		r.command = fmt.Sprintf(`["sh", "-c", "echo release %d token=$TOKEN file=$(cat /secret/token); trap 'exit 0' TERM; while :; do `+
			`sleep 0.1; done"]`,
			r.number)
	}
	if r.probe == "" {
		r.probe = "true"
	}
	return d.PodText(name, fmt.Sprintf(`labels.release = "%d"
terminationGracePeriodSeconds = 2
restartBackoff = { initialSeconds = 0.1, maxSeconds = 0.2 }
update = { readyWithinSeconds = %d, onFailure = "rollback" }
%s
[[volumes]]
name = "secret"
secret.secretName = %[4]q

[[containers]]
name = "c"
image = %[5]q
command = %[6]s
readinessProbe = { exec = { command = [%[7]q] }, periodSeconds = 1, timeoutSeconds = 60 }
volumeMounts.secret = "/secret"
env.TOKEN.secretKeyRef = { name = %[4]q, key = "token" }
%[8]s`, r.number, r.within, r.pod, name, r.image, r.command, r.probe, r.more))
}

// secret writes the secret of a pod.
func (d *podsDir) secret(name, value string) {
	d.Helper()
	dir := filepath.Join(d.ConfigDir(), "secrets", name)
	d.Check(errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "token"), []byte(value), 0o600)))
}

// releaseReady waits until a pod is ready with a release, and the file is accepted or not for a reason.
func (d *podsDir) releaseReady(name string, number int, refused string) api.Pod {
	d.Helper()
	var p api.Pod
	d.Await(func() error {
		if _, err := d.Podstead(d.Ctx(), "get"); err != nil { // starts the daemon if none runs
			return err
		}
		var err error
		if p, err = d.Client().Pod(d.Ctx(), name); err != nil {
			return err
		}
		d.Saw(p.Metadata.UID)
		reason := ""
		for _, c := range p.Status.Conditions {
			if c.Type == api.FileAccepted {
				reason = string(c.Reason)
			}
		}
		if got := p.Metadata.Labels["release"]; got != fmt.Sprint(number) || !podReady(&p) || reason != refused {
			return fmt.Errorf("pod %s has the release %s, FileAccepted %q, status %+v", name, got, reason, p.Status)
		}
		return nil
	})
	return p
}

// happened returns the events of a pod of a kind.
func (d *podsDir) happened(name string, kind api.EventKind) (found []api.Event, err error) {
	for e, err := range d.Client().Events(d.Ctx(), &client.EventQuery{Pod: name}) {
		if err != nil {
			return nil, err
		}
		d.Saw(e.UID)
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found, nil
}

// awaitEvent waits until a pod has an event.
func (d *podsDir) awaitEvent(name string, kind api.EventKind) {
	d.Helper()
	d.Await(func() error {
		found, err := d.happened(name, kind)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("pod %s has no event %s", name, kind)
		}
		return err
	})
}

// logged waits until the log of the container that runs ends with a line.
func (d *podsDir) logged(name, line string) {
	d.Helper()
	d.Await(func() error {
		out, err := d.Podstead(d.Ctx(), "logs", name)
		if err == nil && !strings.HasSuffix(strings.TrimSpace(out), line) {
			err = fmt.Errorf("log of pod %s: %q, want %q at its end", name, out, line)
		}
		return err
	})
}

// rolledBack checks that a pod runs its first release again, with the image and the secret that it had, and that this happened once.
func (d *podsDir) rolledBack(name string, before *api.Pod, why string) {
	d.Helper()
	p := d.releaseReady(name, 1, string(api.ReasonRolledBack))
	d.awaitEvent(name, api.EventRollbackCompleted)
	if got, want := p.Status.ContainerStatuses[0].ImageID, before.Status.ContainerStatuses[0].ImageID; got != want || got == "" {
		d.Errorf("%s runs the image %q, want %q", name, got, want)
	}
	if p.Metadata.UID != before.Metadata.UID {
		d.Errorf("%s: UID %s, was %s", name, p.Metadata.UID, before.Metadata.UID)
	}
	d.logged(name, "release 1 token=old file=old")
	text := d.MustRun("get", name, "-o", "yaml")
	if !strings.Contains(text, "release: \"1\"") || !strings.Contains(text, "reason: "+string(api.ReasonRolledBack)) {
		d.Errorf("%s: get -o yaml:\n%s", name, text)
	}
	r, err := d.Client().Rollout(d.Ctx(), name)
	d.Check(err)
	if failed := r.RolledBack(); r.Running != 1 || failed == nil || failed.Generation != 2 || !strings.Contains(failed.Message, why) ||
		r.Generations[0].Outcome != api.GenerationReady {
		d.Errorf("%s: generations %+v, want generation 2 rolled back because of %q", name, r, why)
	}
	for _, kind := range []api.EventKind{api.EventRollbackStarted, api.EventRollbackCompleted} {
		found, err := d.happened(name, kind)
		lost := len(found) == 0 && kind == api.EventRollbackStarted // its newest event is not written yet when a daemon is killed
		if err != nil || len(found) != 1 && !lost {
			d.Errorf("%s: events %s: %+v, %v, want one", name, kind, found, err)
		}
	}
}

// broken are releases that do not become ready, and why.
var broken = map[string]struct {
	release
	why string
}{
	"crash":   {release{within: 100, command: `["sh", "-c", "exit 3"]`}, "exited with code 3"},
	"missing": {release{within: 100, command: `["/no/such/command"]`}, "could not be started"},
	"unready": {release{within: 10, probe: "false"}, "was not ready within 10s"},
}

// TestRollback: releases that fail return to the first one, with its secret and image, whether containers or the pod restart, although
// the daemon is killed during the update and during the rollback. An image that cannot be pulled stops nothing. Another change of the file
// runs.
func TestRollback(t *testing.T) {
	d := newPodsDir(t)
	effects := map[string]string{"container": "", "pod": "hostname = \"other\"\n"}
	before := map[string]api.Pod{}
	each := func(do func(kind, effect, name string)) {
		for effect := range effects {
			for kind := range broken {
				do(kind, effect, kind+"-"+effect)
			}
			do("pull", effect, "pull-"+effect)
		}
	}
	each(func(_, _, name string) {
		d.secret(name, "old")
		d.write(name, d.rolling(name, release{number: 1, within: 100}))
	})
	each(func(_, _, name string) {
		before[name] = d.releaseReady(name, 1, "")
	})
	each(func(kind, effect, name string) {
		r := broken[kind].release
		if kind == "pull" {
			r = release{within: 10, image: "registry.invalid/none:2"}
		}
		r.number, r.pod = 2, effects[effect]
		d.secret(name, "new")
		d.write(name, d.rolling(name, r))
	})
	d.Until("unready-pod", "changed", func(p *api.Pod) bool { d.Saw(p.Metadata.UID); return p.Metadata.Labels["release"] == "2" })
	d.MustKillDaemon()
	d.MustRun("get")
	d.awaitEvent("unready-pod", api.EventRollbackStarted)
	d.MustKillDaemon()
	each(func(kind, effect, name string) {
		was := before[name]
		if kind != "pull" {
			d.rolledBack(name, &was, broken[kind].why)
			return
		}
		if p := d.releaseReady(name, 1, string(api.ReasonUpdatePending)); p.Metadata.UID != was.Metadata.UID ||
			p.Status.ContainerStatuses[0].ContainerID != was.Status.ContainerStatuses[0].ContainerID {
			t.Errorf("%s was restarted: %+v, was %+v", name, p.Status, was.Status)
		}
	})
	each(func(_, _, name string) { d.write(name, d.rolling(name, release{number: 3, within: 100})) })
	each(func(_, _, name string) {
		d.releaseReady(name, 3, "")
		d.logged(name, "release 3 token=new file=new")
	})
}

// TestRollbackWithoutRegistry: an image that has another content under the same name is rolled back to the content that it had, although
// the registry does not respond any more and the daemon was killed.
func TestRollbackWithoutRegistry(t *testing.T) {
	for effect, more := range map[string]string{"container": "", "pod": "hostname = \"other\"\n"} {
		t.Run(effect, func(t *testing.T) {
			d := newPodsDir(t)
			d.keep("fixed") // imports the image of the archive
			registry := newLayoutRegistry(t, d.Archive("busybox"))
			always := "imagePullPolicy = \"Always\"\n"
			d.secret("web", "old")
			d.write("web", d.rolling("web", release{number: 1, within: 100, image: registry.image(), more: always}))
			was := d.releaseReady("web", 1, "")
			registry.repoint()
			d.write("web",
				d.rolling("web", release{number: 2, within: 10, image: registry.image(), more: always, pod: more, probe: "false"}))
			d.Until("web", "with the other image", func(p *api.Pod) bool {
				d.Saw(p.Metadata.UID)
				return p.Metadata.Labels["release"] == "2" &&
					slices.ContainsFunc(p.Status.ContainerStatuses, func(c api.ContainerStatus) bool {
						return c.State.Running != nil && c.ImageID != was.Status.ContainerStatuses[0].ImageID
					})
			})
			registry.close()
			d.MustKillDaemon()
			d.rolledBack("web", &was, "was not ready within 10s")
		})
	}
}

// TestRollbackRunsOnce: the command of a release that fails runs once, also if the daemon is killed while it runs: it is not started again
// before the rollback.
func TestRollbackRunsOnce(t *testing.T) {
	d := newPodsDir(t)
	dir := t.TempDir()
	pod, mount := fmt.Sprintf("[[volumes]]\nname = \"count\"\nhostPath.path = %q\n", dir), "volumeMounts.count = \"/count\"\n"
	bad := release{number: 2, within: 60, pod: pod, more: mount, command: `["sh", "-c", "echo $TOKEN >> /count/runs; sleep 3; exit 9"]`}
	d.secret("web", "old")
	d.write("web", d.rolling("web", release{number: 1, within: 100, pod: pod, more: mount}))
	was := d.releaseReady("web", 1, "")
	d.write("web", d.rolling("web", bad))
	runs := func() string {
		text, err := os.ReadFile(filepath.Join(dir, "runs"))
		if err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
		return string(text)
	}
	d.Await(func() error {
		if runs() == "" {
			return errors.New("the release has not run")
		}
		return nil
	})
	d.MustKillDaemon()
	d.rolledBack("web", &was, "exited with code 9")
	if got := runs(); got != "old\n" {
		t.Errorf("runs of the release that failed: %q, want one", got)
	}
}
