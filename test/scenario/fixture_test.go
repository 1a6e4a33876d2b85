//go:build e2e

package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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

// fixture is a rig that looks for leftovers at the end of its test.
type fixture struct {
	*testing.T
	*rig.Rig
	images string // the folder of their archives
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	repository, err := rig.Repository()
	if err != nil {
		t.Fatal(err)
	}
	r, err := rig.New(repository)
	if err != nil {
		t.Fatal(err)
	}
	r.Env = []string{"PODSTEAD_CONFIG_DIR=" + filepath.Join(r.Dir, "etc")}
	f := &fixture{t, r, filepath.Join(repository, "examples", "images")}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		if f.Failed() {
			f.tell()
		}
		if err := r.Close(ctx); err != nil {
			t.Error("clear away:", err)
		}
	})
	t.Cleanup(f.checkLeftovers)
	f.podstead("get") // there is a daemon from here on
	return f
}

// of is the fixture for a part of its test.
func (f *fixture) of(t *testing.T) *fixture { return &fixture{t, f.Rig, f.images} }

// tell logs what a person wants to know of a test that failed.
func (f *fixture) tell() {
	text, err := os.ReadFile(f.DaemonLog())
	lines := strings.Split(string(text), "\n")
	f.Logf("the end of the daemon's log (%v):\n%s", err, strings.Join(lines[max(0, len(lines)-40):], "\n"))
}

// checkLeftovers ends the pods and the daemon, and fails the test where anything is left.
func (f *fixture) checkLeftovers() {
	if f.Failed() {
		return // what there is then is the failure's
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), deadline, errors.New("it does not go"))
	defer cancel()
	if _, err := f.Podstead(ctx, "daemon", "stop", "--pods"); err != nil {
		f.Error(err)
		return
	}
	err := rig.Await(ctx, func() error {
		left, err := f.Leftovers(ctx)
		if len(left) > 0 {
			err = errors.Join(err, fmt.Errorf("left behind:\n%s", strings.Join(left, "\n")))
		}
		return err
	})
	if err != nil {
		f.Error(err)
	}
}

// ctx ends with the test, and well before go test gives up on all of them.
func (f *fixture) ctx() context.Context {
	ctx, cancel := context.WithTimeoutCause(f.Context(), deadline, errors.New("the test waited too long"))
	f.Cleanup(cancel)
	return ctx
}

func (f *fixture) await(holds func() error) {
	f.Helper()
	if err := rig.Await(f.ctx(), holds); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// podstead runs a command, which must succeed.
func (f *fixture) podstead(args ...string) string {
	f.Helper()
	out, err := f.Podstead(f.ctx(), args...)
	f.check(err)
	return out
}

// file writes a pod file that has the images. The text has the rest, its top first.
func (f *fixture) file(name, text string) (path string) {
	f.Helper()
	head := fmt.Sprintf("name = %q\nimageArchives = [%q, %q]\n", name, filepath.Join(f.images, "busybox.tar"), filepath.Join(f.images, "testserver.tar"))
	path, err := f.WritePod(name, head+text)
	f.check(err)
	return path
}

// create writes a pod file and asks the daemon for the pod, which runs until it is deleted.
func (f *fixture) create(name, text string) api.Pod {
	f.Helper()
	p, err := f.add(f.ctx(), f.file(name, text))
	f.check(err)
	return p
}

// add asks for the pod of a file. It is safe for concurrent use.
func (f *fixture) add(ctx context.Context, path string) (api.Pod, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return api.Pod{}, err
	}
	made, err := f.Client().Create(ctx, api.CreateRequest{File: path, Text: string(text)})
	if answer, is := errors.AsType[*api.Error](err); is {
		err = fmt.Errorf("%w: %v", err, answer.Problems)
	}
	if err != nil {
		return api.Pod{}, fmt.Errorf("create %s: %w", filepath.Base(path), err)
	}
	f.Saw(made.Pod.Metadata.UID)
	return made.Pod, nil
}

// until waits for a state of a pod, which ok reports, and returns the pod.
func (f *fixture) until(name, what string, ok func(p *api.Pod) bool) (p api.Pod) {
	f.Helper()
	f.await(func() (err error) {
		p, err = f.Client().Pod(f.ctx(), name)
		if err == nil && !ok(&p) {
			text, _ := json.Marshal(p.Status)
			err = fmt.Errorf("pod %s is not %s: %s", name, what, text)
		}
		return err
	})
	return p
}

// running waits until all containers of a pod run.
func (f *fixture) running(name string) api.Pod {
	f.Helper()
	return f.until(name, "running", runs)
}

func runs(p *api.Pod) bool {
	return !slices.ContainsFunc(p.Status.ContainerStatuses, func(c containerStatus) bool { return c.State.Running == nil })
}

// start creates a pod and waits until it runs.
func (f *fixture) start(name, text string) api.Pod {
	f.Helper()
	f.create(name, text)
	return f.running(name)
}

// logs is what a container has written in its present run.
func (f *fixture) logs(pod string, more ...string) string {
	f.Helper()
	return f.podstead(append([]string{"logs", pod}, more...)...)
}

// event waits for an event of a pod with a reason, and a message that has the text.
func (f *fixture) event(pod, reason, text string) {
	f.Helper()
	f.await(func() error {
		list := f.podstead("events", pod, "-o", "json")
		for line := range strings.Lines(list) {
			var e api.Event
			f.check(json.Unmarshal([]byte(line), &e))
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
	f.await(func() error {
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

// killDaemon kills the daemon and returns when it is dead.
func (f *fixture) killDaemon() {
	f.Helper()
	pid, err := f.DaemonPID(f.ctx())
	f.check(err)
	f.check(syscall.Kill(pid, syscall.SIGKILL))
	f.await(func() error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if _, state, _ := strings.Cut(string(stat), ") "); err == nil && !strings.HasPrefix(state, "Z") {
			return fmt.Errorf("process %d is not dead yet", pid)
		}
		return nil
	})
}

// write writes a file below the rig's folder that only root reads, and the folders that it lies in.
func (f *fixture) write(name, text string) (path string) {
	f.Helper()
	path = filepath.Join(f.Dir, name)
	f.check(os.MkdirAll(filepath.Dir(path), 0o755)) //nolint:gosec // what is secret is the file
	f.check(os.WriteFile(path, []byte(text), 0o600))
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
