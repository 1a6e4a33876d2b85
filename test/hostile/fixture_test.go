//go:build e2e

package hostile

import (
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
	"github.com/podstead/podstead/test/internal/rig"
)

// deadline is for operations that take seconds on an idle host.
const deadline = 60 * time.Second

// testserver is an image of test/images.
const testserver = "localhost/podstead/testserver:1"

// fixture is a rig with a daemon, a neighbour pod, and a directory of the host that no container may reach. The test fails if any of
// them has changed at its end.
type fixture struct{ *rig.Fixture }

// options of a fixture; the zero value is the default configuration.
type options struct {
	env  []string // environment of the daemon
	disk string   // tmpfs options of a small disk for the state
}

func newFixture(t *testing.T, o options) *fixture {
	t.Helper()
	f := &fixture{rig.NewFixture(t, deadline, "testserver", "intruder")}
	f.Env = append([]string{rig.RuntimeVariable + "=" + f.runtime(), markVariable + "=" + secret}, o.env...)
	f.makeVictim() // checked after the leftovers
	f.CheckLeftovers(deadline, "daemon", "stop", "--pods")
	if o.disk != "" {
		f.SmallDisk(o.disk)
	}
	f.MustRun("get") // starts the daemon
	f.guardNeighbour()
	return f
}

// copyOfRuntime is the path of the private copy of the OCI runtime. It has the name of the original: the name of a program tells the daemon
// whose containers it can delete.
func (f *fixture) copyOfRuntime() string {
	return filepath.Join(f.Dir, filepath.Base(rig.RuntimeUnderTest()))
}

// runtime makes a private copy of the OCI runtime under test, and returns its path.
func (f *fixture) runtime() (path string) {
	f.Helper()
	original, err := exec.LookPath(rig.RuntimeUnderTest())
	f.Check(err)
	in, err := os.Open(original)
	f.Check(err)
	defer in.Close()
	path = f.copyOfRuntime()
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755) // a program
	f.Check(err)
	_, err = io.Copy(out, in)
	f.Check(errors.Join(err, out.Close()))
	return path
}

// secret must not be found in a container. The daemon has it in the environment variable markVariable.
const (
	secret       = "swordfish-of-the-host"
	markVariable = "HOSTILE_TEST_SECRET"
)

// victim is a directory of the host that containers cannot reach.
func (f *fixture) victim() string { return filepath.Join(f.Dir, "victim") }

// makeVictim creates the directory, and checks at the end of the test that it and the OCI runtime have not changed.
func (f *fixture) makeVictim() {
	f.Helper()
	f.Check(os.MkdirAll(filepath.Join(f.victim(), "deep", "deeper"), 0o755)) // readable by everybody, if it can be reached
	for _, name := range []string{"a", "content", "deep/content", "deep/deeper/b"} {
		f.Check(os.WriteFile(filepath.Join(f.victim(), name), []byte(secret), 0o644)) // readable by everybody, if it can be reached
	}
	before := f.tree(f.victim()) + f.tree(f.copyOfRuntime())
	f.Cleanup(func() {
		if diff := gocmp.Diff(before, f.tree(f.victim())+f.tree(f.copyOfRuntime())); diff != "" {
			f.Errorf("files of the host have changed:\n%s", diff)
		}
	})
}

// tree lists the attributes of everything below a path.
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

// create runs a pod until it terminates or is deleted. The text follows the name in the pod file.
func (f *fixture) create(name, text string) {
	f.Helper()
	f.MustCreate(name, "terminationGracePeriodSeconds = 2\n"+text)
}

func ended(p *api.Pod) bool { return p.Status.AtRest && p.Status.Phase.Terminal() }

func isReady(p *api.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c api.Condition) bool {
		return c.Type == "Ready" && c.Status == "True"
	})
}

// outcomes returns the outcome of each attempt of a container.
func (f *fixture) outcomes(pod, container string) map[string]string {
	f.Helper()
	var text string
	f.Await(func() error {
		if text = f.MustRun("logs", pod, "-c", container); !strings.HasSuffix(text, "finished\n") {
			return fmt.Errorf("pod %s has not finished:\n%s", pod, text)
		}
		return nil
	})
	return Outcomes(text)
}

// intrude makes attempts in a pod of their own and compares the outcomes. The text follows the container in the pod file.
func (f *fixture) intrude(name, text string, tries []Try) {
	f.Helper()
	f.create(name, "restartPolicy = \"Never\"\n"+Play("c", "try", Attempts(tries)...)+text)
	f.Until(name, "done", ended)
	f.compare(name, "c", tries)
	f.MustRun("delete", name)
}

// compare compares the outcomes of a container's attempts with the expected ones.
func (f *fixture) compare(pod, container string, tries []Try) {
	f.Helper()
	for _, line := range Mismatches(f.outcomes(pod, container), tries) {
		f.Error(line)
	}
}
