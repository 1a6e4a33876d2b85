//go:build e2e

package faults

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/podstead/podstead/api"
)

// probeKinds are the fields of a container that contain probes.
var probeKinds = []string{"livenessProbe", "readinessProbe", "startupProbe"}

// calls records the requests to servers, by their content.
type calls struct {
	mu    sync.Mutex
	times map[string][]time.Time
}

func (c *calls) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.times == nil {
		c.times = map[string][]time.Time{}
	}
	c.times[what] = append(c.times[what], time.Now())
}

func (c *calls) of(what string) []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.times[what])
}

// awaitCalls waits for each of these requests.
func (f *fixture) awaitCalls(c *calls, want ...string) {
	f.Helper()
	f.Await(func() error {
		for _, what := range want {
			if len(c.of(what)) == 0 {
				c.mu.Lock()
				defer c.mu.Unlock()
				return fmt.Errorf("no request %q among %v", what, c.times)
			}
		}
		return nil
	})
}

// secureServer records the path and the header X-From of each request.
func (c *calls) secureServer(t *testing.T) (port int) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c.add("http " + r.URL.Path + " " + r.Header.Get("X-From"))
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr).Port
}

// acceptor records each connection.
func (c *calls) acceptor(t *testing.T, what string) (port int) {
	l := listen(t)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.add(what)
			_ = conn.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// healthServer records the service of each request, and reports all of them as serving.
func (c *calls) healthServer(t *testing.T) (port int) {
	l, states := listen(t), health.NewServer()
	for _, kind := range probeKinds {
		states.SetServingStatus(kind, grpc_health_v1.HealthCheckResponse_SERVING)
	}
	rpc := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, q any, _ *grpc.UnaryServerInfo,
		next grpc.UnaryHandler,
	) (any, error) {
		if check, ok := q.(*grpc_health_v1.HealthCheckRequest); ok {
			c.add("grpc " + check.GetService())
		}
		return next(ctx, q)
	}))
	grpc_health_v1.RegisterHealthServer(rpc, states)
	go func() { _ = rpc.Serve(l) }()
	t.Cleanup(rpc.Stop)
	return l.Addr().(*net.TCPAddr).Port
}

// say is a script that writes a line to the log of its container. The OCI runtime does not let it in until it has started the program.
func say(line string) string {
	return "until echo " + line + " 2>/dev/null >/proc/1/fd/1; do sleep 0.1; done"
}

// TestFieldsProbeHandlers: what each probe requests, and where. The servers listen on the host, so probes set host: without it they
// would connect to the pod.
//
// fields: containers[].{livenessProbe,readinessProbe,startupProbe}.exec.command
// fields: containers[].{livenessProbe,readinessProbe,startupProbe}.httpGet.{path,port,host,scheme}
// fields: containers[].{livenessProbe,readinessProbe,startupProbe}.httpGet.httpHeaders[].{name,value}
// fields: containers[].{livenessProbe,readinessProbe,startupProbe}.{tcpSocket.port,tcpSocket.host,grpc.port,grpc.service}
// fields: containers[].ports[].name
func TestFieldsProbeHandlers(t *testing.T) {
	f := newFixture(t)
	var c calls
	web, rpc := c.secureServer(t), c.healthServer(t)
	text, hosted := "terminationGracePeriodSeconds = 2\n", "terminationGracePeriodSeconds = 2\nhostNetwork = true\n"
	var want []string
	for i, kind := range probeKinds {
		const often = ", periodSeconds = 0.3, timeoutSeconds = 20"
		name := strings.ToLower(strings.TrimSuffix(kind, "Probe"))
		text += container("http-"+name, idle) + fmt.Sprintf("ports = [{ name = \"web\", containerPort = %d }]\n", web) +
			fmt.Sprintf(`%s = { httpGet = { path = "/%s", port = "web", host = "127.0.0.1", scheme = "HTTPS", httpHeaders = [{ name = `+
				`"X-From", value = "%d" }] }%s }`,
				kind, kind, i, often)
		text += container("tcp-"+name, idle) +
			fmt.Sprintf(`%s = { tcpSocket = { port = %d, host = "127.0.0.1" }%s }`, kind, c.acceptor(t, "tcp "+kind), often)
		text += container("exec-"+name, idle) + fmt.Sprintf(`%s = { exec = { command = ["sh", "-c", "%s"] }%s }`, kind, say(kind), often)
		hosted += container("grpc-"+name, idle) + fmt.Sprintf(`%s = { grpc = { port = %d, service = "%s" }%s }`, kind, rpc, kind, often)
		want = append(want, fmt.Sprintf("http /%s %d", kind, i), "tcp "+kind, "grpc "+kind)
	}
	r := f.start(f.PodFile("handlers", text), f.PodFile("hosted", hosted))
	f.awaitCalls(&c, want...)
	for _, kind := range probeKinds {
		name := "exec-" + strings.ToLower(strings.TrimSuffix(kind, "Probe"))
		r.until("the command of "+name, func() bool { return slices.Contains(r.lines(name), kind) })
	}
	f.awaitReady("hosted", "grpc-liveness grpc-readiness grpc-startup")
	if failed := r.events(api.EventProbeFailed); len(failed) > 0 {
		t.Errorf("a probe failed: %+v", failed)
	}
	r.interrupt()
	r.exitCode()
}

// numbered returns a container that only SIGKILL stops, with a probe that requests a path of its own.
func numbered(name, kind string, port int, numbers string) string {
	return container(name, "trap '' TERM; echo up; while :; do sleep 0.1; done") +
		fmt.Sprintf("%s = { httpGet = { path = \"/%s\", port = %d, host = \"127.0.0.1\" }, %s }\n", kind, name, port, numbers)
}

// TestFieldsProbeNumbers: the timing and the thresholds of probes. No number is the default, with which the test would fail or take too
// long.
//
// fields: containers[].{livenessProbe,readinessProbe,startupProbe}.{initialDelaySeconds,periodSeconds,timeoutSeconds}
// fields: containers[].{livenessProbe,readinessProbe,startupProbe}.{successThreshold,failureThreshold}
// fields: containers[].{livenessProbe,startupProbe}.terminationGracePeriodSeconds
func TestFieldsProbeNumbers(t *testing.T) {
	f := newFixture(t)
	var c calls
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.add(r.URL.Path)
		kind, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "-")
		n := len(c.of(r.URL.Path))
		switch {
		case kind == "slow" && n == 1: // longer than the default timeout
			select {
			case <-time.After(1500 * time.Millisecond):
			case <-r.Context().Done():
			}
		case kind == "fails", kind == "unready" && n > 4:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(s.Close)
	port := s.Listener.Addr().(*net.TCPAddr).Port
	const pace = "initialDelaySeconds = 1, periodSeconds = 0.3, timeoutSeconds = 20, "
	text := "terminationGracePeriodSeconds = 600\nrestartBackoff.maxSeconds = 0.1\n" +
		numbered("fails-liveness", "livenessProbe", port,
			pace+"successThreshold = 1, failureThreshold = 5, terminationGracePeriodSeconds = 2") +
		numbered("fails-startup", "startupProbe", port,
			pace+"successThreshold = 1, failureThreshold = 5, terminationGracePeriodSeconds = 2") +
		numbered("unready-c", "readinessProbe", port, pace+"successThreshold = 4, failureThreshold = 8") +
		numbered("slow-liveness", "livenessProbe", port, pace+"failureThreshold = 1, terminationGracePeriodSeconds = 2") +
		numbered("slow-startup", "startupProbe", port, pace+"failureThreshold = 1, terminationGracePeriodSeconds = 2") +
		numbered("slow-readiness", "readinessProbe", port, pace+"failureThreshold = 1")
	began := time.Now()
	r := f.start(f.PodFile("numbers", text))
	for kind, ended := range map[string]api.EventKind{
		"fails-liveness": api.EventContainerLivenessFailed, "fails-startup": api.EventContainerStartupFailed,
	} {
		r.until("a restart of "+kind, func() bool { return r.starts(kind) >= 2 }) // long before the end of the pod's own grace period
		failures := 0
		for _, i := range r.all() {
			if i.Kind == ended && i.Container == kind {
				break
			}
			if i.Kind == api.EventProbeFailed && i.Container == kind {
				failures++
			}
		}
		if failures != 5 {
			t.Errorf("%s was stopped after %d failures, want 5", kind, failures)
		}
	}
	r.until("eight failures of readiness", func() bool { return len(c.of("/unready-c")) >= 12 })
	r.until("a second request of slow-liveness", func() bool { return len(c.of("/slow-liveness")) >= 2 }) // the first has been answered
	f.Await(func() error {
		ready := strings.Fields(f.readyContainers("numbers"))
		for name, want := range map[string]bool{"slow-liveness": true, "slow-startup": true, "slow-readiness": true, "unready-c": false} {
			if slices.Contains(ready, name) != want {
				return fmt.Errorf("ready containers: %q", ready)
			}
		}
		return nil
	})
	for _, i := range r.all() {
		if strings.HasPrefix(i.Container, "slow-") && i.Kind == api.EventProbeFailed {
			t.Errorf("probe of %s failed before its timeout: %s", i.Container, i.Message)
		}
	}
	for _, name := range []string{"fails-liveness", "fails-startup", "unready-c"} {
		asked := c.of("/" + name)
		if first := asked[0].Sub(began); first < time.Second {
			t.Errorf("first probe of %s after %v, want its initial delay of 1 s", name, first)
		}
		if took := asked[4].Sub(asked[0]); took > 35*time.Second { // 40 s by default
			t.Errorf("four periods of %s took %v, want 1.2 s", name, took)
		}
	}
	f.MustRun("delete", "numbers", "--force")
	r.exitCode()
}

// TestFieldsReadiness: successThreshold and failureThreshold count consecutive results. A readiness probe has no grace period.
//
// fields: containers[].readinessProbe.{successThreshold,failureThreshold}
func TestFieldsReadiness(t *testing.T) {
	f := newFixture(t)
	var c calls
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.add(r.URL.Path)
		if n := len(c.of(r.URL.Path)); r.URL.Path == "/fails" && n%3 != 0 || r.URL.Path == "/broken" && n > 1 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(s.Close)
	probe := func(name, numbers string) string {
		return container(name, idle) +
			fmt.Sprintf("readinessProbe = { httpGet = { path = \"/%s\", port = %d, host = \"127.0.0.1\" }, periodSeconds = 0.2, "+
				"timeoutSeconds = 20, %s }\n",
				name, s.Listener.Addr().(*net.TCPAddr).Port, numbers)
	}
	r := f.start(f.PodFile("p", "terminationGracePeriodSeconds = 2\n"+
		probe("fails", "successThreshold = 2")+probe("broken", "failureThreshold = 1000")+probe("good", "successThreshold = 3")))
	f.Await(func() error {
		if n := min(len(c.of("/fails")), len(c.of("/broken"))); n < 20 {
			return fmt.Errorf("%d requests", n)
		}
		return nil
	})
	f.awaitReady("p", "broken good")
	r.interrupt()
	r.exitCode()
	file := f.PodFile("refused", probe("c", "terminationGracePeriodSeconds = 5"))
	if _, err := f.Podstead(f.Ctx(), "validate", file); err == nil ||
		!strings.Contains(err.Error(), "must not be set for readinessProbes") {
		t.Errorf("a readiness probe with a grace period: %v", err)
	}
}

// TestFieldsHooks: the handlers of hooks, and what waits for them.
//
// fields: containers[].lifecycle.{postStart,preStop}.{exec.command,sleep.seconds}
// fields: containers[].lifecycle.{postStart,preStop}.httpGet.{path,port,host,scheme}
// fields: containers[].lifecycle.{postStart,preStop}.httpGet.httpHeaders[].{name,value}
func TestFieldsHooks(t *testing.T) {
	f := newFixture(t)
	var c calls
	web := c.secureServer(t)
	asks := func(hook string) string {
		return fmt.Sprintf(`lifecycle.%s.httpGet = { path = "/%s", port = "web", host = "127.0.0.1", scheme = "HTTPS", httpHeaders = [{ `+
			`name = "X-From", value = "us" }] }`+
			"\n",
			hook, hook)
	}
	const traps = "trap 'echo term; exit 0' TERM; echo up; while :; do sleep 0.05; done"
	r := f.start(f.PodFile("hooks", "terminationGracePeriodSeconds = 60\n"+
		container("asks", traps)+fmt.Sprintf("ports = [{ name = \"web\", containerPort = %d }]\n", web)+asks("postStart")+asks("preStop")+
		container("sleeps", traps)+"lifecycle.postStart.sleep.seconds = 1.5\nlifecycle.preStop.sleep.seconds = 1.5\n"+
		container("runs", traps)+`lifecycle.postStart.exec.command = ["sh", "-c", "echo post >/proc/1/fd/1"]`+"\n"+
		`lifecycle.preStop.exec.command = ["sh", "-c", "echo pre >/proc/1/fd/1"]`+"\n"))
	r.line("runs", 2)
	f.awaitCalls(&c, "http /postStart us")
	started := func(name string) time.Time {
		r.until("the start of "+name, func() bool { return r.starts(name) > 0 })
		all := r.events(api.EventContainerStarted)
		return all[slices.IndexFunc(all, func(i item) bool { return i.Container == name })].Time
	}
	if waited := started("runs").Sub(started("sleeps")); waited < 1400*time.Millisecond {
		t.Errorf("the container after a postStart hook of 1.5 s started after %v", waited)
	}
	r.interrupt()
	if code := r.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	f.awaitCalls(&c, "http /preStop us")
	stopped := r.event(api.EventPodStopping).Time
	for _, i := range r.all() {
		if i.Container == "sleeps" && i.Line == "term" && i.Time.Sub(stopped) < 1400*time.Millisecond {
			t.Errorf("the signal came %v after the stop, the preStop hook takes 1.5 s", i.Time.Sub(stopped))
		}
	}
	if got := r.lines("runs"); !slices.Equal(got[len(got)-2:], []string{"pre", "term"}) || !slices.Contains(got, "post") {
		t.Errorf("output: %q", got)
	}
}
