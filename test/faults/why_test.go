//go:build e2e

package faults

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
)

// TestEphemeralContainer: an ephemeral container shares the pod's namespaces and volumes, does not restart, keeps running while the
// daemon is killed, and stays in the status.
func TestEphemeralContainer(t *testing.T) {
	f := newFixture(t)
	r := f.start(f.PodFile("web", "terminationGracePeriodSeconds = 2\nvolumes = [{ name = \"data\", emptyDir = {} }]\n"+
		container("app", "trap 'exit 0' TERM; echo 42 > /data/answer; hostname > /data/name; echo up; while :; do sleep 0.1; done")+
		"volumeMounts.data = \"/data\"\n"))
	r.line("app", 1)
	add := func(name, script string) {
		f.Helper()
		text := fmt.Sprintf("name = %q\nimage = %q\ncommand = [\"sh\", \"-c\", %q]\nvolumeMounts.data = \"/seen\"\n", name, busybox, script)
		if _, err := f.Client().AddEphemeral(f.Ctx(), "web", api.EphemeralRequest{File: name + ".toml", Text: text}); err != nil {
			f.Fatal(err)
		}
	}
	code := func(name string) int {
		f.Helper()
		code := -1
		f.Await(func() error {
			for _, c := range f.get("web").Status.EphemeralContainerStatuses {
				if c.Name == name && c.State.Terminated != nil && c.RestartCount == 0 {
					code = c.State.Terminated.ExitCode
					return nil
				}
			}
			return errors.New(name + " has not terminated")
		})
		return code
	}
	add("look", `[ "$(cat /seen/name)" = "$(hostname)" ] || exit 1; exit $(cat /seen/answer)`)
	if got := code("look"); got != 42 {
		t.Errorf("exit code %d, want the number that the regular container wrote", got)
	}
	add("stays", "trap 'exit 5' TERM; echo staying > /seen/stays; until [ -e /seen/go ]; do sleep 0.1; done; exit 6")
	add("ready", "until [ -e /seen/stays ]; do sleep 0.1; done")
	if got := code("ready"); got != 0 {
		t.Errorf("the second container did not start: %d", got)
	}
	f.MustKillDaemon()
	if got := code("look"); got != 42 {
		t.Errorf("exit code of the first container after the daemon was killed: %d", got)
	}
	add("go", "touch /seen/go")
	if got := code("stays"); got != 6 {
		t.Errorf("exit code of the container that ran while the daemon was killed: %d", got)
	}
	if app := f.get("web").Status.ContainerStatuses[0]; app.RestartCount != 0 || !app.Ready {
		t.Errorf("regular container: %+v", app)
	}
	add("deaf", "trap '' TERM; while :; do sleep 0.1; done")
	r.interrupt()
	if code := r.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestWhyAfterKills: an explanation survives the daemon that saw the events, and each event has its cause.
func TestWhyAfterKills(t *testing.T) {
	f := newFixture(t)
	r := f.start(f.PodFile("web", "terminationGracePeriodSeconds = 2\n"+
		container("app", "trap 'exit 9' TERM; echo up; while :; do sleep 0.1; done")+
		container("crash", "sleep 1; exit 3")))
	r.line("app", 1)
	r.nth(api.EventContainerFailed, 1)
	before := f.MustRun("why", "web")
	if !strings.Contains(before, "exited with code 3") {
		t.Errorf("the explanation is\n%s", before)
	}
	f.MustKillDaemon()
	f.Await(func() error {
		after := f.MustRun("why", "web")
		for _, want := range []string{"exited with code 3", "Recovered after a restart of the daemon"} {
			if !strings.Contains(after, want) {
				return fmt.Errorf("without %q the explanation is\n%s", want, after)
			}
		}
		return nil
	})
	known := map[uint64]bool{}
	for e, err := range f.Client().Events(f.Ctx(), &client.EventQuery{Pod: "web"}) {
		f.Check(err)
		if e.Cause > 0 && !known[e.Cause] {
			t.Errorf("the cause of %+v is not known", e)
		}
		if known[e.Seq] = true; e.Kind == api.EventPodRecovered && e.Cause == 0 {
			t.Errorf("%+v has no cause", e)
		}
	}
	r.interrupt()
	r.exitCode()
	if gone := f.MustRun("why", "web"); !strings.Contains(gone, "web was deleted") {
		t.Errorf("the explanation of a deleted pod is\n%s", gone)
	}
}
