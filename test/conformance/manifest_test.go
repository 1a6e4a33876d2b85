//go:build e2e

package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/test/internal/rig"
)

// manifests is a pods directory, whose pods write to a log when they start, when they receive SIGTERM, and when they exit.
type manifests struct {
	*rig.Fixture
	dir  string // the pods directory
	data string // the volume of the pods: their log, and the file whose existence lets them exit
}

func newManifests(t *testing.T) *manifests {
	t.Helper()
	f := rig.NewFixture(t, deadline, "busybox")
	f.CheckLeftovers(deadline, stopAll...)
	m := &manifests{Fixture: f, dir: filepath.Join(f.ConfigDir(), "pods.d"), data: filepath.Join(f.Dir, "data")}
	m.Check(errors.Join(os.MkdirAll(m.dir, 0o755), os.Mkdir(m.data, 0o755)))
	t.Cleanup(m.end)
	return m
}

// end removes the files, and waits until the pods are removed: the images of a pod that has a file are kept.
func (m *manifests) end() {
	if m.Failed() {
		return
	}
	m.exit(true)
	m.Check(os.RemoveAll(filepath.Join(m.dir, "other.toml")))
	m.Await(func() error {
		if out, err := m.Podstead(m.Ctx(), "get", "-o", "name"); err != nil || out != "" {
			return errors.Join(err, fmt.Errorf("the pods are %q, want none", out))
		}
		return nil
	})
}

// manifest is the file of a pod with one container, which takes as long as the grace period allows to exit, and holds a host port.
func (m *manifests) manifest(pod, container, version string) string {
	return m.PodText(pod, fmt.Sprintf(`
terminationGracePeriodSeconds = 100
volumes = [{ name = "data", hostPath.path = %q }]
[[containers]]
name = %q
ports = [{ containerPort = 8080, hostPort = 18099 }]
image = "localhost/podstead/busybox:1"
volumeMounts = [{ name = "data", mountPath = "/data" }]
command = ["sh", "-c", """
me="%[3]s/%[2]s/%[4]s"
trap 'echo stop $me >> /data/log; while [ ! -e /data/exit ]; do sleep 0.05; done; echo exit $me >> /data/log; exit 0' TERM
echo start $me >> /data/log
while :; do sleep 0.05; done"""]
`, m.data, container, pod, version))
}

// write replaces a file at once, as editors do.
func (m *manifests) write(pod, text string) {
	m.Helper()
	path := filepath.Join(m.dir, pod+".toml")
	m.Check(errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)))
}

func (m *manifests) remove(pod string) {
	m.Helper()
	m.Check(os.Remove(filepath.Join(m.dir, pod+".toml")))
}

// exit lets containers exit, or not.
func (m *manifests) exit(may bool) {
	m.Helper()
	path := filepath.Join(m.data, "exit")
	if may {
		m.Check(os.WriteFile(path, nil, 0o644))
	} else if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		m.Check(err)
	}
}

// wrote waits until the pods have written these lines, since the last call, and no others.
func (m *manifests) wrote(lines ...string) {
	m.Helper()
	log := filepath.Join(m.data, "log")
	m.Await(func() error {
		if _, err := m.Podstead(m.Ctx(), "get"); err != nil { // starts the daemon
			return err
		}
		text, err := os.ReadFile(log)
		if got := strings.Split(strings.TrimSpace(string(text)), "\n"); strings.Join(got, "\n") != strings.Join(lines, "\n") {
			return errors.Join(err, fmt.Errorf("the pods have written %q, want %q", got, lines))
		}
		return nil
	})
	for _, line := range lines {
		if pod, is := strings.CutPrefix(line, "start "); is {
			name, _, _ := strings.Cut(pod, "/")
			p, err := m.Client().Pod(m.Ctx(), name)
			m.Check(err)
			m.Saw(p.Metadata.UID)
		}
	}
	m.Check(os.Remove(log))
}

// happened waits until there are at least this many events of a kind.
func (m *manifests) happened(kind api.EventKind, times int) {
	m.Helper()
	m.Await(func() error {
		n := 0
		for e, err := range m.Client().Events(m.Ctx(), &client.EventQuery{}) {
			if err != nil {
				return err
			}
			if e.Kind == kind {
				n++
			}
		}
		if n < times {
			return fmt.Errorf("%d events %s, want at least %d", n, kind, times)
		}
		return nil
	})
}

// TestManifests edits, renames, removes and puts back files of the pods directory. The pod before always has its whole grace period, and
// nothing of the next one, which needs the same host port, starts before the end of it.
func TestManifests(t *testing.T) {
	t.Parallel()
	m := newManifests(t)
	m.write("web", m.manifest("web", "c", "1"))
	m.wrote("start web/c/1")

	m.write("web", m.manifest("web", "c", "2"))
	m.wrote("stop web/c/1")
	m.write("web", m.manifest("web", "c", "3")) // the second edit during the grace period
	m.happened(api.EventDefinitionChanged, 2)
	m.exit(true)
	m.wrote("exit web/c/1", "start web/c/3")

	m.write("web", "name = \"web\"\ncontainers = 1\n")
	m.happened(api.EventFileInvalid, 1) // and changes nothing
	m.exit(false)
	m.write("web", m.manifest("web", "renamed", "3"))
	m.wrote("stop web/c/3")
	m.exit(true)
	m.wrote("exit web/c/3", "start web/renamed/3")

	m.exit(false)
	m.remove("web")
	m.wrote("stop web/renamed/3")
	m.write("other", m.manifest("other", "c", "1")) // another pod with the same host port
	m.happened(api.EventSandboxFailed, 1)
	m.exit(true)
	m.wrote("exit web/renamed/3", "start other/c/1")

	m.exit(false)
	m.remove("other")
	m.wrote("stop other/c/1")
	m.write("other", m.manifest("other", "c", "1")) // the same again
	m.exit(true)
	m.wrote("exit other/c/1", "start other/c/1")
}
