//go:build e2e

package hostile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/rig"
)

// neighbour is a pod that must not be affected.
const neighbour = "neighbour"

// guardNeighbour starts the neighbour, and checks at the end of the test that neither it nor the daemon was affected.
func (f *fixture) guardNeighbour() {
	f.Helper()
	f.create(neighbour, fmt.Sprintf(`
[[containers]]
name = "c"
image = %q
env.NEIGHBOUR_SECRET = %q
volumeMounts = { data = "/data" }
  [containers.readinessProbe]
  httpGet = { path = "/whoami", port = 8080 }
  periodSeconds = 1
  timeoutSeconds = 30
  [containers.livenessProbe]
  httpGet = { path = "/whoami", port = 8080 }
  periodSeconds = 1
  timeoutSeconds = 30
[[volumes]]
name = "data"
emptyDir = {}
`, testserver, secret))
	p := f.Until(neighbour, "ready", isReady)
	f.checkRuntime(&p)
	daemon, err := f.DaemonPID(f.Ctx())
	f.Check(err)
	before := f.stateOf(&p)
	f.Cleanup(func() {
		if f.Failed() {
			return
		}
		if now, err := f.DaemonPID(f.Ctx()); err != nil || now != daemon {
			f.Errorf("PID of the daemon was %d, is %d (%v)", daemon, now, err)
		}
		now, err := f.Client().Pod(f.Ctx(), neighbour)
		f.Check(err)
		if diff := gocmp.Diff(before, f.stateOf(&now)); diff != "" {
			f.Errorf("the neighbour was affected:\n%s", diff)
		}
		if got, err := f.ask("/whoami"); err != nil || !strings.HasPrefix(got, neighbour) {
			f.Errorf("the neighbour answered %q, %v", got, err)
		}
	})
}

// checkRuntime checks that the OCI runtime under test has created the neighbour's container, and that the daemon uses the private copy of
// it.
func (f *fixture) checkRuntime(p *api.Pod) {
	f.Helper()
	v, err := f.Client().Version(f.Ctx())
	f.Check(err)
	if v.Runtime != f.copyOfRuntime() {
		f.Fatalf("the daemon uses the OCI runtime %s, want %s", v.Runtime, f.copyOfRuntime())
	}
	creator, err := f.Creator(p.Status.ContainerStatuses[0].ContainerID)
	f.Check(err)
	if want := filepath.Base(rig.RuntimeUnderTest()); creator != want {
		f.Fatalf("%s has created the container, want %s", creator, want)
	}
}

// stateOf returns the parts of a pod's status that show whether it was disturbed, and its warning events.
func (f *fixture) stateOf(p *api.Pod) string {
	f.Helper()
	var b strings.Builder
	for _, part := range []any{p.Metadata.UID, p.Status.Phase, p.Status.Conditions, p.Status.PodIPs, p.Status.ContainerStatuses} {
		text, err := json.Marshal(part)
		f.Check(err)
		b.Write(append(text, '\n'))
	}
	for line := range strings.Lines(f.MustRun("events", p.Metadata.Name, "-o", "json")) {
		var e api.Event
		f.Check(json.Unmarshal([]byte(line), &e))
		if e.Level != "Normal" {
			b.WriteString(line)
		}
	}
	return b.String()
}

// ask requests a page from the neighbour's test server.
func (f *fixture) ask(path string, query ...string) (string, error) {
	values := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	page := "http://" + net.JoinHostPort(f.addressOf(neighbour), "8080") + path + "?" + values.Encode()
	ctx, cancel := context.WithTimeout(f.Ctx(), deadline/4)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %d: %s", page, res.StatusCode, text)
	}
	return string(text), err
}

// addressOf returns the IPv4 address of a pod.
func (f *fixture) addressOf(pod string) string {
	f.Helper()
	return f.Until(pod, "in the network", func(p *api.Pod) bool { return p.Status.PodIP != "" }).Status.PodIP
}

// processOf returns the PID of a program in a pod.
func (f *fixture) processOf(pod, program string) (pid int) {
	f.Helper()
	uid := f.Until(pod, "created", func(*api.Pod) bool { return true }).Metadata.UID
	f.Await(func() error {
		processes, err := f.Processes()
		for _, p := range processes {
			groups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.PID))
			if strings.Contains(string(groups), uid) && strings.HasPrefix(p.Command, program) {
				pid = p.PID
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("pod %s has no process %s", pod, program))
	})
	return pid
}
