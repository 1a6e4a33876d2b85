//go:build e2e || soak

package faults

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/podstead/podstead/api"
)

// idle is a script that does nothing until SIGTERM.
const idle = "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done"

// watched returns an idle container with probes.
func watched(name string, probes ...string) string {
	return container(name, idle) + strings.Join(probes, "\n") + "\n"
}

// readyContainers returns the names of the ready containers.
func (f *fixture) readyContainers(pod string) string {
	f.Helper()
	var names []string
	for _, c := range f.get(pod).Status.ContainerStatuses {
		if c.Ready {
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, " ")
}

func (f *fixture) awaitReady(pod, want string) {
	f.Helper()
	f.Await(func() error {
		if got := f.readyContainers(pod); got != want {
			return fmt.Errorf("ready containers %q, want %q", got, want)
		}
		return nil
	})
}

// servers listen on the host, for the probes of pods with hostNetwork.
type servers struct {
	web    *httptest.Server
	health *health.Server
	tcp    net.Listener
	rpc    net.Listener
}

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func newServers(t *testing.T, web http.HandlerFunc) *servers {
	s := &servers{web: httptest.NewServer(web), health: health.NewServer(), tcp: listen(t), rpc: listen(t)}
	t.Cleanup(s.web.Close)
	rpc := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(rpc, s.health)
	go func() { _ = rpc.Serve(s.rpc) }()
	t.Cleanup(rpc.Stop)
	return s
}

// TestProbeKinds: a readiness probe with each handler makes its container ready, and not ready when it fails.
func TestProbeKinds(t *testing.T) {
	f := newFixture(t)
	broken := filepath.Join(f.Dir, "broken")
	s := newServers(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(broken); err == nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	often := "periodSeconds = 0.2, failureThreshold = 1, timeoutSeconds = 20"
	r := f.start(f.PodFile("kinds", "hostNetwork = true\nterminationGracePeriodSeconds = 5\n"+
		watched("a", fmt.Sprintf("readinessProbe = { httpGet = { port = %d }, %s }", port(s.web.Listener), often))+
		watched("b", fmt.Sprintf("readinessProbe = { tcpSocket = { port = %d }, %s }", port(s.tcp), often))+
		watched("c", fmt.Sprintf("readinessProbe = { grpc = { port = %d }, %s }", port(s.rpc), often))+
		watched("d", "readinessProbe = { exec = { command = ['sh', '-c', '! test -e /tmp/broken'] }, "+often+" }",
			"startupProbe = { exec = { command = ['true'] }, "+often+" }")))
	r.line("d", 1)
	f.awaitReady("kinds", "a b c d")
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.awaitReady("kinds", "b c d")
	s.health.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	f.awaitReady("kinds", "b d")
	if err := s.tcp.Close(); err != nil {
		t.Fatal(err)
	}
	f.awaitReady("kinds", "d")
	for _, want := range []string{
		"Readiness probe failed: HTTP probe failed with statuscode: 500",
		`Readiness probe failed: service unhealthy (responded with "NOT_SERVING")`,
		"connect: connection refused",
	} {
		r.until(want, func() bool {
			return slices.ContainsFunc(r.events(api.EventProbeFailed), func(i item) bool { return strings.Contains(i.Message, want) })
		})
	}
	r.interrupt()
	if code := r.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestLivenessRestarts: a container that fails its liveness probe is stopped with its preStop hook and restarts.
func TestLivenessRestarts(t *testing.T) {
	f := newFixture(t)
	r := f.start(f.PodFile("unhealthy", "terminationGracePeriodSeconds = 10\n"+
		container("c", "trap 'echo term; exit 0' TERM; echo up; sleep 1; touch /tmp/unhealthy; while :; do sleep 0.1; done")+`
livenessProbe = { exec = { command = ["sh", "-c", "if [ -e /tmp/unhealthy ]; then echo unhealthy; exit 3; fi"] }, periodSeconds = 0.3, failureThreshold = 2, timeoutSeconds = 20 }
lifecycle = { preStop = { exec = { command = ["sh", "-c", "echo hook >/proc/1/fd/1"] } } }
`))
	r.nth(api.EventContainerStarted, 1)
	r.line("c", 4)
	if diff := cmp.Diff([]string{"up", "hook", "term", "up"}, r.lines("c")[:4]); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if failed := r.event(api.EventProbeFailed); failed.Message != "Liveness probe failed: unhealthy" {
		t.Errorf("probe event %q", failed.Message)
	}
	r.event(api.EventContainerLivenessFailed)
	r.interrupt()
	r.exitCode()
}

// TestHookOrder: the first start of a container waits for the postStart hook of the container before it. A hook runs beside its
// container. The preStop hook runs before the signal, even if it fails.
func TestHookOrder(t *testing.T) {
	f := newFixture(t)
	r := f.start(f.PodFile("hooked", "terminationGracePeriodSeconds = 10\n"+
		"volumes = [{ name = \"state\", emptyDir = {} }]\n"+
		container("a", "trap 'echo term; exit 0' TERM; echo up; touch /state/up; while :; do sleep 0.1; done")+`
volumeMounts.state = "/state"
lifecycle.postStart = { exec = { command = ["sh", "-c", "until [ -e /state/up ]; do sleep 0.1; done; echo post >/proc/1/fd/1; touch /state/post"] } }
lifecycle.preStop = { exec = { command = ["sh", "-c", "echo pre >/proc/1/fd/1; exit 1"] } }
`+container("b", "ls /state/post; "+idle)+"volumeMounts.state = \"/state\"\n"))
	if got := r.line("b", 1); got != "/state/post" {
		t.Errorf("b found %q at its start, want the file of a's postStart hook", got)
	}
	r.line("b", 2)
	r.interrupt()
	if code := r.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if diff := cmp.Diff([]string{"up", "post", "pre", "term"}, r.lines("a")); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if failed := r.event(api.EventPreStopFailed); failed.Message != "PreStopHook failed" {
		t.Errorf("hook event %q", failed.Message)
	}
}

// TestHangingHooks: a stop does not wait for a postStart hook, and waits for a preStop hook until the end of the grace period.
func TestHangingHooks(t *testing.T) {
	f := newFixture(t)
	r := f.start(f.PodFile("hangs", "terminationGracePeriodSeconds = 3\n"+container("a", idle)+`
lifecycle.postStart = { exec = { command = ["sh", "-c", "trap '' TERM; sleep 7001 & sleep 7002"] } }
`+container("b", idle)))
	r.line("a", 1)
	f.process("sleep 7002")
	stopped := time.Now()
	r.interrupt()
	r.exitCode()
	if took := time.Since(stopped); took > deadline/2 {
		t.Errorf("with a postStart hook that hangs, the pod stopped after %v", took)
	}
	r = f.start(f.PodFile("hangs", "terminationGracePeriodSeconds = 3\n"+container("a", idle)+`
lifecycle.preStop = { exec = { command = ["sh", "-c", "trap '' TERM; sleep 7003 & sleep 7004"] } }
`))
	r.line("a", 1)
	stopped = time.Now()
	r.interrupt()
	r.exitCode()
	if took := time.Since(stopped); took < 3*time.Second || took > deadline/2 {
		t.Errorf("with a preStop hook that hangs, the pod stopped after %v, want its grace period of 3 s", took)
	}
}

// TestHostileProbes: processes of probes that hang, fork, flood or ignore signals do not accumulate, and their pod stops normally. The
// check for leftovers fails the test if any are left.
func TestHostileProbes(t *testing.T) {
	f := newFixture(t)
	probe := func(script string, numbers ...float64) string { // period and timeout; 0.5 s by default
		numbers = append(numbers, 0.5, 0.5)
		return fmt.Sprintf("readinessProbe = { exec = { command = ['sh', '-c', %q] }, periodSeconds = %g, timeoutSeconds = %g }", script,
			numbers[0], numbers[1])
	}
	r := f.start(f.PodFile("hostile", "terminationGracePeriodSeconds = 5\n"+
		watched("a", probe("sleep 7101"))+
		watched("b", probe("setsid sleep 7102 & setsid sleep 7102 & exit 0", 10, 20))+
		watched("c", probe("yes"))+
		watched("d", probe("trap '' TERM INT; while :; do sleep 7103; done"))+
		watched("e", probe("(sleep 7104 &); yes & exit 1"))))
	r.nth(api.EventProbeFailed, 20)
	f.awaitReady("hostile", "b")
	left, err := f.processes("sleep 71")
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 20 {
		t.Errorf("%d processes of probes, want at most 20", len(left))
	}
	r.interrupt()
	if code := r.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestReadyAfterDaemonKilled: after the daemon is killed, started and ready do not change, and nothing restarts.
func TestReadyAfterDaemonKilled(t *testing.T) {
	f := newFixture(t)
	r := f.start(f.PodFile("steady", "terminationGracePeriodSeconds = 5\n"+watched("c",
		"startupProbe = { exec = { command = ['true'] }, timeoutSeconds = 20 }",
		"readinessProbe = { exec = { command = ['true'] }, timeoutSeconds = 20, periodSeconds = 30 }",
		"livenessProbe = { exec = { command = ['sh', '-c', 'sleep 7201 & sleep 7202'] }, timeoutSeconds = 600, periodSeconds = 1 }")))
	r.line("c", 1)
	f.awaitReady("steady", "c")
	before := f.running("steady")
	for range 3 {
		f.process("sleep 7202")
		f.MustKillDaemon()
		if got := f.readyContainers("steady"); got != "c" {
			t.Errorf("ready containers after the kill: %q", got)
		}
		if c := f.get("steady").Status.ContainerStatuses[0]; c.Started == nil || !*c.Started {
			t.Error("not started after the kill")
		}
		f.Await(func() error { // the probe of the killed daemon ends, and the next one starts
			pids, err := f.processes("sleep 7202")
			if len(pids) > 1 {
				err = errors.Join(err, fmt.Errorf("%d probes are running", len(pids)))
			}
			return err
		})
	}
	if diff := cmp.Diff(before, f.running("steady")); diff != "" {
		t.Errorf("containers (-before +after):\n%s", diff)
	}
	r.interrupt()
	if code := r.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
