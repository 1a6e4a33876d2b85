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

// deadline is for operations that take seconds on an idle host.
const deadline = 40 * time.Second

// The images of test/images.
const (
	busybox    = "localhost/podstead/busybox:1"
	testserver = "localhost/podstead/testserver:1"
)

// fixture is a rig with a daemon. It checks for leftovers at the end of its test.
type fixture struct{ *rig.Fixture }

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{rig.NewFixture(t, deadline, "busybox", "testserver")}
	f.CheckLeftovers(deadline, "daemon", "stop", "--pods")
	f.MustRun("get") // starts the daemon
	return f
}

// of returns the fixture for a subtest.
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

// logs returns the output of a container's current run.
func (f *fixture) logs(pod string, more ...string) string {
	f.Helper()
	return f.MustRun(append([]string{"logs", pod}, more...)...)
}

// event waits for an event of a pod with this reason and a message that contains text.
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

// line waits until the only container of a pod has written a line with this prefix, and returns the rest of the line.
func (f *fixture) line(pod, prefix string) (rest string) {
	f.Helper()
	f.Await(func() error {
		text := f.logs(pod)
		for line := range strings.Lines(text) {
			if after, found := strings.CutPrefix(line, prefix); found && strings.HasSuffix(line, "\n") {
				rest = strings.TrimSpace(after)
				return nil
			}
		}
		return fmt.Errorf("pod %s has no line with prefix %q:\n%s", pod, prefix, text)
	})
	return rest
}

// write writes a file below the rig's directory that only root can read, and creates its parent directories.
func (f *fixture) write(name, text string) (path string) {
	f.Helper()
	path = filepath.Join(f.Dir, name)
	f.Check(os.MkdirAll(filepath.Dir(path), 0o755)) // the files are private
	f.Check(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// shell returns a container that runs a script.
func shell(name, script string) string {
	return fmt.Sprintf("\n[[containers]]\nname = %q\nimage = %q\ncommand = [\"sh\", \"-c\", %q]\n", name, busybox, script)
}

// server returns a container that runs the test server.
func server(name string) string {
	return fmt.Sprintf("\n[[containers]]\nname = %q\nimage = %q\n", name, testserver)
}

// idle keeps a shell running until SIGTERM.
const idle = "; trap 'exit 0' TERM; while :; do sleep 0.1; done"
