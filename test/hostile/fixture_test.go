//go:build e2e

package hostile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/test/internal/rig"
)

// deadline is for what comes within seconds on an idle machine.
const deadline = 60 * time.Second

// The images of test/images.
const (
	testserver = "localhost/podstead/testserver:1"
	intruder   = "localhost/podstead/intruder:1"
)

// fixture is a rig with a daemon, a neighbour and a folder of the machine that nobody may touch, all of which are as they were
// when the test is over, or it fails.
type fixture struct {
	*testing.T
	*rig.Rig
	images string // the folder of their archives
}

// options of a fixture; the zero value is the default configuration.
type options struct {
	env   []string               // settings of the daemon
	state func(dir string) error // makes the folder of the state, for one that is no plain folder
	quiet func(f *fixture)       // runs before leftovers are looked for
}

func newFixture(t *testing.T, o options) *fixture {
	t.Helper()
	repository, err := rig.Repository()
	if err != nil {
		t.Fatal(err)
	}
	r, err := rig.New(repository)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t, r, filepath.Join(repository, "examples", "images")}
	r.Env = append([]string{
		"PODSTEAD_CONFIG_DIR=" + filepath.Join(r.Dir, "etc"), "PODSTEAD_ENGINE_RUNTIME=" + f.runtime(), markVariable + "=" + secret,
	}, o.env...)
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
	if o.state != nil {
		f.check(o.state(r.StateDir()))
	}
	f.makeVictim()
	t.Cleanup(func() { f.checkLeftovers(o.quiet) })
	f.podstead("get") // there is a daemon from here on
	f.guardNeighbour()
	return f
}

// runtime is a copy of the OCI runtime, which an intruder may overwrite if it can.
func (f *fixture) runtime() (path string) {
	f.Helper()
	original, err := exec.LookPath("runc")
	f.check(err)
	in, err := os.Open(original)
	f.check(err)
	defer in.Close()
	path = filepath.Join(f.Dir, "runc")
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755) //nolint:gosec // a program
	f.check(err)
	_, err = io.Copy(out, in)
	f.check(errors.Join(err, out.Close()))
	return path
}

// secret is what must not be found in a container, and markVariable is where the daemon has it.
const (
	secret       = "swordfish-of-the-machine"
	markVariable = "HOSTILE_TEST_SECRET"
)

// victim is a folder of the machine that a container has no way to.
func (f *fixture) victim() string { return filepath.Join(f.Dir, "victim") }

// makeVictim makes the folder, and has the test look at its end whether it and the runtime are as they were.
func (f *fixture) makeVictim() {
	f.Helper()
	f.check(os.MkdirAll(filepath.Join(f.victim(), "deep", "deeper"), 0o755)) //nolint:gosec // it is there to be found
	for _, name := range []string{"a", "content", "deep/content", "deep/deeper/b"} {
		f.check(os.WriteFile(filepath.Join(f.victim(), name), []byte(secret), 0o644)) //nolint:gosec // it is there to be found
	}
	before := f.tree(f.victim()) + f.tree(filepath.Join(f.Dir, "runc"))
	f.Cleanup(func() {
		if diff := gocmp.Diff(before, f.tree(f.victim())+f.tree(filepath.Join(f.Dir, "runc"))); diff != "" {
			f.Errorf("files of the machine were changed:\n%s", diff)
		}
	})
}

// tree tells of everything below a path what a change of it would change.
func (f *fixture) tree(path string) string {
	var b strings.Builder
	err := filepath.WalkDir(path, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err == nil {
			fmt.Fprintln(&b, path, info.Mode(), info.Size(), info.ModTime())
		}
		return err
	})
	if err != nil {
		fmt.Fprintln(&b, err)
	}
	return b.String()
}

// tell logs what a person wants to know of a test that failed.
func (f *fixture) tell() {
	text, err := os.ReadFile(f.DaemonLog())
	lines := strings.Split(string(text), "\n")
	f.Logf("the end of the daemon's log (%v):\n%s", err, strings.Join(lines[max(0, len(lines)-40):], "\n"))
}

// checkLeftovers ends the pods and the daemon, and fails the test where anything is left.
func (f *fixture) checkLeftovers(before func(*fixture)) {
	if f.Failed() {
		return // what there is then is the failure's
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), deadline, errors.New("it does not go"))
	defer cancel()
	if _, err := f.Podstead(ctx, "daemon", "stop", "--pods"); err != nil {
		f.Error(err)
		return
	}
	if before != nil {
		before(f)
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
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(f.Context()), deadline, errors.New("the test waited too long"))
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

// create asks the daemon for a pod, which runs until it ends or is deleted. The text is what the pod file has below its name.
func (f *fixture) create(name, text string) {
	f.Helper()
	f.check(f.add(f.ctx(), name, text))
}

// add is create for any goroutine.
func (f *fixture) add(ctx context.Context, name, text string) error {
	text = fmt.Sprintf("name = %q\nimageArchives = [%q, %q]\nterminationGracePeriodSeconds = 2\n", name,
		filepath.Join(f.images, "testserver.tar"), filepath.Join(f.images, "intruder.tar")) + text
	path, err := f.WritePod(name, text)
	if err != nil {
		return err
	}
	made, err := f.Client().Create(ctx, api.CreateRequest{File: path, Text: text})
	if answer, is := errors.AsType[*api.Error](err); is {
		err = fmt.Errorf("%w: %v", err, answer.Problems)
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	f.Saw(made.Pod.Metadata.UID)
	return nil
}

// until waits for a state of a pod, which ok reports, and returns the pod.
func (f *fixture) until(name, what string, ok func(p *api.Pod) bool) (p api.Pod) {
	f.Helper()
	f.await(func() (err error) {
		p, err = f.Client().Pod(f.ctx(), name)
		if err == nil && !ok(&p) {
			err = fmt.Errorf("pod %s is not %s: %+v", name, what, p.Status)
		}
		return err
	})
	return p
}

func ended(p *api.Pod) bool { return p.Status.AtRest && p.Status.Phase.Terminal() }

func isReady(p *api.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c lifecycle.Condition) bool {
		return c.Type == "Ready" && c.Status == "True"
	})
}

// play is a container that makes attempts and ends, or with stay goes on.
func play(container, how string, attempts ...string) string {
	quoted := make([]string, len(attempts))
	for i, a := range attempts {
		quoted[i] = fmt.Sprintf("%q", a)
	}
	return fmt.Sprintf("\n[[containers]]\nname = %q\nimage = %q\nargs = [%q, %s]\n", container, intruder, how, strings.Join(quoted, ", "))
}

// outcomes are what a container's attempts have come to, by attempt.
func (f *fixture) outcomes(pod, container string) map[string]string {
	f.Helper()
	all := map[string]string{}
	f.await(func() error {
		text := f.podstead("logs", pod, "-c", container)
		if !strings.HasSuffix(text, "that was all\n") {
			return fmt.Errorf("pod %s is not done:\n%s", pod, text)
		}
		for line := range strings.Lines(text) {
			attempt, outcome, _ := strings.Cut(strings.TrimSpace(line), ": ")
			all[attempt] = outcome
		}
		return nil
	})
	return all
}

// try is an attempt and what must come of it, one of several with "|" between them.
type try struct{ attempt, want string }

// intrude makes attempts in a pod of their own and holds what came of them against what must. The text is what the pod file has
// after the container.
func (f *fixture) intrude(name, text string, tries []try) {
	f.Helper()
	attempts := make([]string, len(tries))
	for i, t := range tries {
		attempts[i] = t.attempt
	}
	f.create(name, "restartPolicy = \"Never\"\n"+play("c", "try", attempts...)+text)
	f.until(name, "done", ended)
	f.compare(name, "c", tries)
	f.podstead("delete", name)
}

// compare holds what a container has told against what must have come of its attempts.
func (f *fixture) compare(pod, container string, tries []try) {
	f.Helper()
	got := f.outcomes(pod, container)
	for _, t := range tries {
		if outcome := cmp.Or(got[t.attempt], "nothing was told"); !slices.Contains(strings.Split(t.want, "|"), outcome) {
			f.Errorf("%s: %s, want %s", t.attempt, outcome, t.want)
		}
	}
}
