//go:build e2e

package faults

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/rig"
)

// engineFiles are the files of the engine that may be damaged, relative to the rig's directory.
var engineFiles = map[string]string{
	"meta.db":     "lib/engine/io.containerd.metadata.v1.bolt/meta.db",
	"metadata.db": "lib/engine/io.containerd.snapshotter.v1.overlayfs/metadata.db",
	"state.json":  "r/engine/runc/podstead/*/state.json", // of runc
	"status":      "r/engine/runc/podstead/*/status",     // of crun
}

// damages change the content of a file; nil removes it.
var damages = []struct {
	name   string
	damage func(content []byte) []byte
}{
	{"missing", func([]byte) []byte { return nil }},
	{"empty", func([]byte) []byte { return []byte{} }},
	{"garbage", func(b []byte) []byte { return bytes.Repeat([]byte("garbage!"), len(b)/8+1) }},
	{"truncated", func(b []byte) []byte { return b[:min(len(b)/2, 3*4096+100)] }},
	{"bit flips", func(b []byte) []byte {
		for i := range b {
			if i > 8192 && i%512 < 24 || len(b) < 8192 && i%64 == 0 { // the headers of pages, and what is between them
				b[i] ^= 0x15
			}
		}
		return b
	}},
}

// TestDamagedEngineFiles: a daemon starts whatever is damaged, says what, and its pods run, can be deleted, and are followed by new ones.
func TestDamagedEngineFiles(t *testing.T) {
	state := map[string]string{"runc": "state.json", "crun": "status"}[rig.RuntimeUnderTest()]
	for _, file := range []string{"meta.db", "metadata.db", state} {
		t.Run(file, func(t *testing.T) {
			f := newFixture(t)
			f.MustRun("get")
			for _, d := range damages {
				t.Run(d.name, func(t *testing.T) {
					testDamage(&fixture{f.Of(t)}, strings.ReplaceAll(d.name, " ", "-"), file, d.damage)
				})
			}
		})
	}
}

func testDamage(f *fixture, pod, file string, damage func([]byte) []byte) {
	f.MustCreate(pod, "terminationGracePeriodSeconds = 1\n"+container("c", "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done"))
	was, process := f.ready(pod), f.process("echo up")
	f.MustKillDaemon()
	damageFile(f, engineFiles[file], damage)
	f.MustRun("get")
	keeps := file == "meta.db"
	now := f.ready(pod)
	if !keeps { // until the daemon has looked at the sandbox, the pod has its old status
		now = f.Until(pod, "started again", func(p *api.Pod) bool {
			c := p.Status.ContainerStatuses
			return len(c) == 1 && c[0].State.Running != nil && c[0].ContainerID != was.Status.ContainerStatuses[0].ContainerID
		})
	}
	kept := was.Status.ContainerStatuses[0].ContainerID == now.Status.ContainerStatuses[0].ContainerID
	if kept != keeps {
		f.Errorf("container kept: %t", kept)
	}
	if restarts := now.Status.ContainerStatuses[0].RestartCount; kept && (restarts != 0 || f.process("echo up") != process) {
		f.Errorf("%d restarts, process %d was %d", restarts, f.process("echo up"), process)
	}
	if reported := f.reported(pod); reported == kept {
		f.Errorf("container kept: %t, damage reported: %t", kept, reported)
	}
	// If the daemon was killed before it had saved the first start, that does not count.
	if restarts := now.Status.ContainerStatuses[0].RestartCount; !kept && restarts > 1 {
		f.Errorf("%d restarts, want 1", restarts)
	}
	f.MustRun("delete", pod)
}

// TestAdoptedPods: after the loss of the engine's records, running containers are supervised as before: exits, restarts, image volumes,
// and the removal of everything. Without the copy of the records they are started again.
func TestAdoptedPods(t *testing.T) {
	f := newFixture(t)
	f.MustRun("get")
	script := "ls /i/bin || exit 9; trap 'exit 3' USR1; trap 'exit 0' TERM; while :; do sleep 0.1; done"
	mount := "[[containers.volumeMounts]]\nname = \"i\"\nmountPath = \"/i\"\n[[volumes]]\nname = \"i\"\nimage.reference = \"" + busybox +
		"\"\n"
	f.MustCreate("web",
		"terminationGracePeriodSeconds = 1\nrestartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }\n"+container("c", script)+mount)
	was := f.ready("web")
	f.MustKillDaemon()
	damageFile(f, engineFiles["meta.db"], func([]byte) []byte { return nil })
	f.MustRun("get")
	if now := f.ready("web"); now.Status.ContainerStatuses[0].ContainerID != was.Status.ContainerStatuses[0].ContainerID {
		t.Errorf("container %+v, was %+v", now.Status, was.Status)
	}
	f.usr1("exit 3")
	was = f.Until("web", "restarted", func(p *api.Pod) bool {
		s := p.Status.ContainerStatuses[0]
		return s.RestartCount == 1 && s.State.Running != nil && s.LastState.Terminated != nil && s.LastState.Terminated.ExitCode == 3
	})
	_, err := os.Stat(fmt.Sprintf("/proc/%d/root/i/bin/busybox", f.process("exit 3")))
	f.Check(err)
	f.MustKillDaemon()
	damageFile(f, engineFiles["meta.db"], func([]byte) []byte { return nil })
	damageFile(f, "r/engine/records.db", func([]byte) []byte { return nil })
	f.MustRun("get")
	// If the daemon was killed before it had saved the last start, that does not count.
	f.Until("web", "started again", func(p *api.Pod) bool {
		s := p.Status.ContainerStatuses[0]
		return s.RestartCount >= 1 && s.State.Running != nil && s.ContainerID != was.Status.ContainerStatuses[0].ContainerID
	})
	if !f.reported("web") {
		t.Error("the damage is not reported")
	}
	f.MustRun("delete", "web")
}

// TestLostRecordsKeepImages: images survive the loss of the engine's records, because a pod may not be able to get them again. Those whose
// content is damaged too are imported again.
func TestLostRecordsKeepImages(t *testing.T) {
	f := newFixture(t)
	f.MustRun("get")
	f.MustCreate("first", "terminationGracePeriodSeconds = 1\n"+container("c", "exec sleep 1000"))
	f.ready("first")
	f.MustRun("delete", "first")
	damageFile(f, "lib/engine/images.json", func(b []byte) []byte {
		if !strings.Contains(string(b), busybox) {
			t.Errorf("list of images: %s", b)
		}
		return b
	})
	f.MustKillDaemon()
	damageFile(f, engineFiles["meta.db"], func([]byte) []byte { return nil })
	f.MustRun("get")
	f.Await(func() error { // this daemon has imported nothing
		b, err := os.ReadFile(filepath.Join(f.StateDir(), "engine", "images.json"))
		if err == nil && !strings.Contains(string(b), busybox) {
			err = fmt.Errorf("list of images after the loss: %s", b)
		}
		return err
	})
	f.MustCreate("second", "terminationGracePeriodSeconds = 1\n"+container("c", "exec sleep 1000"))
	f.ready("second")
	f.MustRun("delete", "second")
}

// TestRepair: content of images that is damaged is found by doctor --repair and imported again. A running daemon prevents a repair.
func TestRepair(t *testing.T) {
	f := newFixture(t)
	f.MustRun("get")
	f.MustCreate("p", "terminationGracePeriodSeconds = 1\n"+container("c", "exec sleep 1000"))
	f.ready("p")
	f.MustRun("delete", "p")
	if _, err := f.Podstead(f.Ctx(), "doctor", "--repair"); err == nil || !strings.Contains(err.Error(), "hint: stop the daemon") {
		t.Errorf("repair beside a daemon: %v", err)
	}
	f.MustRun("daemon", "stop")
	damageFile(f, "lib/engine/io.containerd.content.v1.content/blobs/sha256/*", func(b []byte) []byte {
		b[len(b)/2] ^= 1
		return b
	})
	_, _ = f.Podstead(f.Ctx(), "doctor", "--repair") // other checks may fail on this host
	findings, _ := f.Podstead(f.Ctx(), "doctor")
	if !strings.Contains(findings, "content does not match its digest") {
		t.Errorf("findings:\n%s", findings)
	}
	f.MustRun("get")
	f.MustCreate("p", "terminationGracePeriodSeconds = 1\n"+container("c", "exec sleep 1000"))
	f.ready("p")
	f.MustRun("delete", "p")
}

// ready waits until the only container of a pod runs.
func (f *fixture) ready(name string) api.Pod {
	f.Helper()
	return f.Until(name, "running", func(p *api.Pod) bool {
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Running != nil
	})
}

// reported returns whether an event of the pod reports a damaged file.
func (f *fixture) reported(name string) bool {
	f.Helper()
	return strings.Contains(f.MustRun("events", name, "-o", "json"), "EngineDamaged")
}

func damageFile(f *fixture, pattern string, damage func([]byte) []byte) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join(f.Dir, pattern))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: %w", pattern, fs.ErrNotExist)
	}
	f.Check(err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		f.Check(err)
		if content = damage(content); content == nil {
			err = os.Remove(file)
		} else {
			err = os.WriteFile(file, content, 0o600)
		}
		f.Check(errors.Join(err))
	}
}
