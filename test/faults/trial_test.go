//go:build e2e

package faults

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/ocitar"
)

// trial is a pod whose bad version never becomes ready, and fails when the file /control/fail exists. The version is an environment
// variable or a file of the image.
func trial(name, archive, image, control string, bad bool) string {
	version := ""
	if bad {
		version = "env.BAD = \"yes\"\n"
	}
	return fmt.Sprintf(`name = %q
imageArchives = [%q]
terminationGracePeriodSeconds = 1
update = { readyWithinSeconds = 3600, minReadySeconds = 0, onFailure = "rollback" }
volumes = [{ name = "control", hostPath = { path = %q } }]
[[containers]]
name = "c"
image = %q
volumeMounts.control = "/control"
command = ["sh", "-c", """
trap 'exit 0' TERM
while :; do
	if [ -e /bad -o -n "$BAD" ] && [ -e /control/fail ]; then exit 7; fi
	sleep 0.1
done"""]
readinessProbe = { exec = { command = ["sh", "-c", '[ ! -e /bad -a -z "$BAD" ]'] }, periodSeconds = 1, timeoutSeconds = 60 }
%s`, name, archive, control, image, version)
}

// trialImage writes an archive with the image of a version of [trial]. It replaces the file.
func (d *podsDir) trialImage(path string, bad bool) {
	d.Helper()
	busybox, err := exec.LookPath("busybox")
	d.Check(err)
	program, err := os.ReadFile(busybox)
	d.Check(err)
	layer := ocitar.Layer{{Path: "bin", Mode: fs.ModeDir | 0o755}, {Path: "bin/busybox", Mode: 0o755, Data: program}}
	for _, command := range []string{"sh", "sleep"} {
		layer = append(layer, ocitar.File{Path: "bin/" + command, Link: "busybox"})
	}
	if bad {
		layer = append(layer, ocitar.File{Path: "bad", Mode: 0o644})
	}
	var archive bytes.Buffer
	d.Check(ocitar.WriteOCI(&archive, ocitar.Image{Name: "localhost/trial:1", Layers: []ocitar.Layer{layer}}))
	d.Check(errors.Join(os.WriteFile(path+".new", archive.Bytes(), 0o600), os.Rename(path+".new", path)))
}

// waiting is a command that has requested something of a pod, and waits.
type waiting struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

// waits starts a command with --wait, and returns when it has printed what it has done with a pod.
func (d *podsDir) waits(done string, args ...string) *waiting {
	d.Helper()
	w := &waiting{cmd: d.Command(d.Ctx(), append(args, "--wait", "--timeout", "0")...)}
	w.cmd.Stderr = &w.stderr
	out, err := w.cmd.StdoutPipe()
	d.Check(err)
	d.Check(w.cmd.Start())
	d.Cleanup(func() { _ = w.cmd.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != done+"\n" {
		d.Errorf("podstead %v printed %q, want %q, %v", args, line, done, err)
	}
	return w
}

// TestWaitDuringTrial: while an update is on trial, a command with --wait that changes nothing fails if the update is rolled back. When
// the image that ran before is back under its name, the file is carried out again.
func TestWaitDuringTrial(t *testing.T) {
	d := newPodsDir(t)
	control := t.TempDir()
	archive := func(pod string) string { return filepath.Join(d.Dir, pod+".tar") }
	write := func(pod, archive, image string, bad bool) string {
		path, err := d.WritePod(pod, trial(pod, archive, image, control, bad))
		d.Check(err)
		return path
	}
	files, bundles := map[string]string{}, map[bool]string{}
	for _, pod := range []string{"image", "start"} {
		d.trialImage(archive(pod), false)
		files[pod] = write(pod, archive(pod), "localhost/trial:1", false)
	}
	for _, pod := range []string{"apply", "retry"} {
		files[pod] = write(pod, d.Archive("busybox"), busybox, false)
	}
	for _, bad := range []bool{true, false} {
		bundles[bad] = filepath.Join(d.Dir, fmt.Sprintf("%v.bundle", bad))
		d.MustRun("bundle", "create", write("bundle", d.Archive("busybox"), busybox, bad), "-o", bundles[bad])
	}
	d.MustRun("apply", files["image"], files["start"], files["apply"], files["retry"], "--wait")
	d.MustRun("bundle", "apply", bundles[false], "--wait")
	for _, pod := range []string{"image", "start", "apply", "retry", "bundle"} {
		d.get(pod) // for the check for leftovers
	}

	for _, pod := range []string{"image", "start"} {
		d.trialImage(archive(pod), true)
	}
	for _, pod := range []string{"apply", "retry"} {
		write(pod, d.Archive("busybox"), busybox, true)
	}
	d.MustRun("apply", files["image"], files["start"], files["apply"])
	d.MustRun("bundle", "apply", bundles[true])
	killed := d.waits("pod/retry configured", "apply", files["retry"])
	d.Check(killed.cmd.Process.Kill())
	_ = killed.cmd.Wait()
	commands := map[string]*waiting{
		"apply":  d.waits("pod/apply unchanged", "apply", files["apply"]),
		"retry":  d.waits("pod/retry unchanged", "apply", files["retry"]),
		"image":  d.waits("pod/image unchanged", "apply", files["image"]),
		"start":  d.waits("pod/start started", "start", "start"),
		"bundle": d.waits("pod/bundle unchanged", "bundle", "apply", bundles[true]),
	}
	d.Check(os.WriteFile(filepath.Join(control, "fail"), nil, 0o600))
	for pod, w := range commands {
		exit, failed := errors.AsType[*exec.ExitError](w.cmd.Wait())
		const why = `generation 2 was rolled back: container "c" exited with code 7`
		if !failed || exit.ExitCode() != 1 || !strings.Contains(w.stderr.String(), why) {
			t.Errorf("%s: %v, %s\nwant exit code 1 and %q", pod, exit, &w.stderr, why)
		}
	}

	d.awaitEvent("image", api.EventRollbackCompleted)
	const hint = "hint: replace the image, or try it again with podstead rollout undo image --to-generation 2"
	if _, err := d.Podstead(d.Ctx(), "apply", files["image"], "--wait"); err == nil || !strings.Contains(err.Error(), hint) {
		t.Errorf("apply with the image that was rolled back: %v, want %q", err, hint)
	}
	d.trialImage(archive("image"), false)
	if got := d.MustRun("apply", files["image"], "--wait"); got != "pod/image unchanged\n" {
		t.Errorf("apply with the good image: %q", got)
	}
	d.MustRun("rollout", "status", "image")
	d.MustRun("delete", "image", "start", "apply", "retry", "bundle")
	d.MustRun("image", "rm", busybox) // that of the bundle is kept for an hour
}
