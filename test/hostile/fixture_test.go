//go:build e2e

package hostile

import (
	"cmp"
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
type fixture struct{ *rig.Fixture }

// options of a fixture; the zero value is the default configuration.
type options struct {
	env  []string // settings of the daemon
	disk string   // how small the disk of the state is, as options of a tmpfs
}

func newFixture(t *testing.T, o options) *fixture {
	t.Helper()
	f := &fixture{rig.NewFixture(t, deadline, "testserver", "intruder")}
	f.Env = append([]string{"PODSTEAD_ENGINE_RUNTIME=" + f.runtime(), markVariable + "=" + secret}, o.env...)
	f.makeVictim() // which is looked at after leftovers
	f.CheckLeftovers(deadline, "daemon", "stop", "--pods")
	if o.disk != "" {
		f.SmallDisk(o.disk)
	}
	f.MustRun("get") // there is a daemon from here on
	f.guardNeighbour()
	return f
}

// runtime is a copy of the OCI runtime, which an intruder may overwrite if it can.
func (f *fixture) runtime() (path string) {
	f.Helper()
	original, err := exec.LookPath("runc")
	f.Check(err)
	in, err := os.Open(original)
	f.Check(err)
	defer in.Close()
	path = filepath.Join(f.Dir, "runc")
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755) // a program
	f.Check(err)
	_, err = io.Copy(out, in)
	f.Check(errors.Join(err, out.Close()))
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
	f.Check(os.MkdirAll(filepath.Join(f.victim(), "deep", "deeper"), 0o755)) // it is there to be found
	for _, name := range []string{"a", "content", "deep/content", "deep/deeper/b"} {
		f.Check(os.WriteFile(filepath.Join(f.victim(), name), []byte(secret), 0o644)) // it is there to be found
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

// create has the daemon run a pod until it ends or is deleted. The text is what the pod file has below its name.
func (f *fixture) create(name, text string) {
	f.Helper()
	f.MustCreate(name, "terminationGracePeriodSeconds = 2\n"+text)
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
	f.Await(func() error {
		text := f.MustRun("logs", pod, "-c", container)
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
	f.Until(name, "done", ended)
	f.compare(name, "c", tries)
	f.MustRun("delete", name)
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
