//go:build e2e

package scenario

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/rig"
)

// deadline is for what comes within seconds on an idle machine.
const deadline = 40 * time.Second

// The images of test/images.
const (
	busybox    = "localhost/podstead/busybox:1"
	testserver = "localhost/podstead/testserver:1"
)

// fixture is a rig with a daemon that looks for leftovers at the end of its test.
type fixture struct{ *rig.Fixture }

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{rig.NewFixture(t, deadline, "busybox", "testserver")}
	f.CheckLeftovers(deadline, "daemon", "stop", "--pods")
	f.MustRun("get") // there is a daemon from here on
	return f
}

// of is the fixture for a part of its test.
func (f *fixture) of(t *testing.T) *fixture { return &fixture{f.Of(t)} }

// running waits until all containers of a pod run.
func (f *fixture) running(name string) api.Pod {
	f.Helper()
	return f.Until(name, "running", runs)
}

func runs(p *api.Pod) bool {
	return !slices.ContainsFunc(p.Status.ContainerStatuses, func(c containerStatus) bool { return c.State.Running == nil })
}

// start creates a pod and waits until it runs.
func (f *fixture) start(name, text string) api.Pod {
	f.Helper()
	f.MustCreate(name, text)
	return f.running(name)
}

// logs is what a container has written in its present run.
func (f *fixture) logs(pod string, more ...string) string {
	f.Helper()
	return f.MustRun(append([]string{"logs", pod}, more...)...)
}

// event waits for an event of a pod with a reason, and a message that has the text.
func (f *fixture) event(pod, reason, text string) {
	f.Helper()
	f.Await(func() error {
		list := f.MustRun("events", pod, "-o", "json")
		for line := range strings.Lines(list) {
			var e api.Event
			f.Check(json.Unmarshal([]byte(line), &e))
			if e.Reason == reason && strings.Contains(e.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("no event %s of pod %s with %q:\n%s", reason, pod, text, list)
	})
}

// line waits until a pod of one container has written a line that begins so, and returns the rest of it.
func (f *fixture) line(pod, beginning string) (rest string) {
	f.Helper()
	f.Await(func() error {
		text := f.logs(pod)
		for line := range strings.Lines(text) {
			if after, found := strings.CutPrefix(line, beginning); found && strings.HasSuffix(line, "\n") {
				rest = strings.TrimSpace(after)
				return nil
			}
		}
		return fmt.Errorf("pod %s has no line that begins with %q, but:\n%s", pod, beginning, text)
	})
	return rest
}

// write writes a file below the rig's folder that only root reads, and the folders that it lies in.
func (f *fixture) write(name, text string) (path string) {
	f.Helper()
	path = filepath.Join(f.Dir, name)
	f.Check(os.MkdirAll(filepath.Dir(path), 0o755)) // what is secret is the file
	f.Check(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// shell is a container of a pod file that runs a script.
func shell(name, script string) string {
	return fmt.Sprintf("\n[[containers]]\nname = %q\nimage = %q\ncommand = [\"sh\", \"-c\", %q]\n", name, busybox, script)
}

// server is a container of a pod file that is the test server.
func server(name string) string {
	return fmt.Sprintf("\n[[containers]]\nname = %q\nimage = %q\n", name, testserver)
}

// idle keeps a shell alive until it is told to end.
const idle = "; trap 'exit 0' TERM; while :; do sleep 0.1; done"
