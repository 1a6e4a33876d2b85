//go:build e2e

package faults

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/rig"
)

// stackImage is the image of Debian packages that .ci/deps makes.
const stackImage = ".cache/stack/image.tar"

// stackDeadline is for waits of the stacks on a loaded host.
const stackDeadline = 5 * time.Minute

// stack is an application that needs a database and a cache, behind a proxy, in the files of another tool.
type stack struct {
	*fixture
	dir    string // of the files
	app    string // name of the pod of the application
	url    string
	client http.Client
}

// newStackFixture returns a fixture that has the image of PostgreSQL, Redis and nginx.
func newStackFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{rig.NewFixture(t, stackDeadline)}
	f.CheckLeftovers(stackDeadline, "daemon", "stop", "--pods")
	root, err := rig.Repository()
	f.Check(err)
	if _, err := os.Stat(filepath.Join(root, stackImage)); err != nil {
		t.Fatalf("%v: run sudo .ci/deps faults", err)
	}
	f.MustRun("image", "import", filepath.Join(root, stackImage))
	return f
}

// TestStacks runs PostgreSQL, Redis, an application and nginx from the files of other tools. They come up in order, survive a restart of
// the daemon and a loss of power, are updated and rolled back, and go down without a rest.
func TestStacks(t *testing.T) {
	f := newStackFixture(t)
	t.Run("compose", func(t *testing.T) {
		s := newStack(&fixture{f.Of(t)}, "compose.txtar", "app", "http://127.0.0.1:18080/")
		file := filepath.Join(s.dir, "compose.yaml")
		s.run(
			func() { s.MustRun("up", "-d", "--wait", "--timeout", stackDeadline.String(), file) },
			func(version string) {
				s.replace("compose.yaml", `VERSION: "1"`, `VERSION: "`+version+`"`)
				s.MustRun("up", "-d", "--wait", "--timeout", stackDeadline.String(), file)
			},
			func() { s.MustRun("down", "--volumes", file) },
		)
	})
	t.Run("quadlet", func(t *testing.T) {
		s := newStack(&fixture{f.Of(t)}, "quadlet.txtar", "app", "http://127.0.0.1:18080/")
		secret := filepath.Join(s.Dir, "etc/secrets/key/key")
		s.Check(os.MkdirAll(filepath.Dir(secret), 0o700))
		s.Check(os.WriteFile(secret, []byte("sesame\n"), 0o600))
		pods := filepath.Join(s.dir, "pods")
		apply := func() {
			s.Check(os.RemoveAll(pods))
			s.MustRun("convert", s.dir, "--output-dir", pods)
			s.MustRun("apply", pods, "--wait", "--timeout", stackDeadline.String())
		}
		s.run(
			apply,
			func(version string) {
				s.replace("app.container", "VERSION=1", "VERSION="+version)
				apply()
			},
			func() {
				s.MustRun("down", pods)
				s.MustRun("volume", "rm", "data")
			},
		)
	})
	t.Run("kubernetes", func(t *testing.T) {
		s := newStack(&fixture{f.Of(t)}, "kubernetes.txtar", "app-0", "http://127.0.0.1:30080/")
		file := filepath.Join(s.dir, "stack.yaml")
		apply := func() { s.MustRun("apply", file, "--wait", "--timeout", stackDeadline.String()) }
		s.run(
			apply,
			func(version string) {
				s.replace("stack.yaml", `name: VERSION, value: "1"`, `name: VERSION, value: "`+version+`"`)
				apply()
			},
			func() {
				s.MustRun("down", file)
				s.MustRun("volume", "rm", "data")
			},
		)
	})
	if !t.Failed() {
		f.MustRun("image", "rm", "localhost/stack:1")
	}
}

// newStack writes the files of an archive.
func newStack(f *fixture, archive, app, url string) *stack {
	f.Helper()
	s := &stack{
		fixture: f, dir: filepath.Join(f.Dir, strings.TrimSuffix(archive, ".txtar")), app: app, url: url,
		client: http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	a, err := txtar.ParseFile(filepath.Join("testdata/stack", archive))
	s.Check(err)
	conf, err := os.ReadFile("testdata/stack/nginx.conf")
	s.Check(err)
	for _, file := range append(a.Files, txtar.File{Name: "nginx.conf", Data: conf}) {
		path := filepath.Join(s.dir, file.Name)
		s.Check(os.MkdirAll(filepath.Dir(path), 0o755)) // the files are those of a test
		s.Check(os.WriteFile(path, file.Data, 0o644))
	}
	return s
}

// replace changes a file of the stack.
func (s *stack) replace(name, from, to string) {
	s.Helper()
	path := filepath.Join(s.dir, name)
	text, err := os.ReadFile(path)
	s.Check(err)
	if strings.Count(string(text), from) != 1 {
		s.Fatalf("%s has no %q", path, from)
	}
	s.Check(os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o644))
}

// run brings a stack up, changes and interrupts it, and brings it down.
func (s *stack) run(up func(), update func(version string), down func()) {
	s.Helper()
	up()
	s.answers("1", 1)
	first := s.pods()
	if restarts := restartsOf(first); restarts > 0 {
		s.Errorf("%d restarts: a pod was started before what it needs was ready", restarts)
	}
	s.inOrder(first)

	s.MustKillDaemon()
	s.MustRun("get") // starts the next one
	s.answers("1", 2)
	if again := s.pods(); restartsOf(again) > 0 {
		s.Errorf("the restart of the daemon restarted containers:\n%s", s.MustRun("get"))
	}

	update("2")
	s.answers("2", 3)
	for name, p := range s.pods() {
		if before := first[name]; name != s.app && started(&before) != started(&p) {
			s.Errorf("the update of %s restarted pod %s", s.app, name)
		}
	}
	s.MustRun("rollout", "undo", s.app)
	s.MustRun("wait", s.app, "--for=condition=Ready", "--timeout", stackDeadline.String())
	s.answers("1", 4)

	s.Check(s.CutPower(s.Ctx()))
	s.MustRun("get")
	s.answers("1", 5)

	down()
	if rest := s.MustRun("get", "-o", "name") + s.MustRun("volume", "ls", "-o", "name"); rest != "" {
		s.Errorf("after going down, there are still\n%s", rest)
	}
}

// answers waits until the proxy answers with the version of the application. The key comes from a secret, and the rows from the database,
// which has at least those of the earlier answers: none is lost.
func (s *stack) answers(version string, rows int) {
	s.Helper()
	s.Await(func() error {
		res, err := s.client.Get(s.url)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		var gotVersion, key string
		var got int
		if _, err := fmt.Sscanf(string(body), "version %1s, key %6s, rows %d", &gotVersion, &key, &got); err != nil {
			return fmt.Errorf("status %s: %w: %q", res.Status, err, body)
		}
		if gotVersion != version || key != "sesame" || got < rows {
			return fmt.Errorf("got %q, want version %s and at least %d rows", body, version, rows)
		}
		return nil
	})
}

// pods returns the pods by name.
func (s *stack) pods() map[string]api.Pod {
	s.Helper()
	list, err := s.Client().Pods(s.Ctx())
	s.Check(err)
	pods := map[string]api.Pod{}
	for _, p := range list.Items {
		s.Saw(p.Metadata.UID)
		pods[p.Metadata.Name] = p
	}
	if len(pods) != 4 {
		s.Fatalf("%d pods:\n%s", len(pods), s.MustRun("get"))
	}
	return pods
}

func restartsOf(pods map[string]api.Pod) (n int) {
	for _, p := range pods {
		for _, c := range p.Status.ContainerStatuses {
			n += c.RestartCount
		}
	}
	return n
}

// started returns when the container of a pod was started.
func started(p *api.Pod) time.Time {
	if r := p.Status.ContainerStatuses[0].State.Running; r != nil {
		return r.StartedAt
	}
	return time.Time{}
}

// inOrder checks that the application started after the database and the cache, and before the proxy. The times are in whole seconds.
func (s *stack) inOrder(pods map[string]api.Pod) {
	s.Helper()
	rank := func(name string) int { return slices.Index([]string{"app", "proxy"}, strings.TrimSuffix(name, "-0")) }
	for first, a := range pods {
		for second, b := range pods {
			if rank(first) < rank(second) && started(&a).After(started(&b)) {
				s.Errorf("pod %s was started before pod %s", second, first)
			}
		}
	}
}
