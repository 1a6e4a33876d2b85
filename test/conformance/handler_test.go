//go:build e2e

package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
)

// handlers returns probe handlers for the server, which answers only if the request has all fields.
func (p *probeServer) handlers() map[string]string {
	web := func(scheme string, port int) string {
		return fmt.Sprintf("httpGet = { host = \"127.0.0.1\", port = %d, path = %q, scheme = %q, httpHeaders = [{ name = %q, value = %q "+
			"}, { name = \"Host\", value = %q }] }",
			port, webPath, scheme, webHeader, webValue, webHost)
	}
	return map[string]string{
		"http":  web("HTTP", p.httpPort()),
		"https": web("HTTPS", p.httpsPort()),
		"tcp":   fmt.Sprintf("tcpSocket = { host = \"127.0.0.1\", port = %d }", p.tcpPort()),
		"grpc":  fmt.Sprintf("grpc = { port = %d, service = \"healthy\" }", p.grpcPort()),
	}
}

// TestProbeHandlers: each kind of probe with each handler follows the server's response. Containers are named after their handlers. The
// TCP server cannot turn unhealthy.
//
// fields: containers[].{livenessProbe,readinessProbe,startupProbe}.httpGet.{path,port,host,scheme,httpHeaders[].name,httpHeaders[].value}
// fields: containers[].{livenessProbe,readinessProbe,startupProbe}.{tcpSocket.port,tcpSocket.host,grpc.port,grpc.service}
func TestProbeHandlers(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"liveness", "readiness", "startup"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := newProbeServer(t)
			p.unhealthy.Store(kind != "liveness")
			numbers := often
			if kind == "startup" {
				numbers = strings.Replace(often, "failureThreshold = 1", "failureThreshold = 10000", 1)
			}
			var file strings.Builder
			file.WriteString("hostNetwork = true\n")
			for name, handler := range p.handlers() {
				fmt.Fprintf(&file, "[[containers]]\n@%s\n%sProbe = { %s, %s }\n", name, kind, handler, numbers)
			}
			s := runPod(t, shared, file.String())
			s.await(s.running("http", "https", "tcp", "grpc"), p.requested("http", 3), p.requested("https", 3), p.requested("tcp", 1),
				p.requested("grpc", 3))
			canFail := []string{"http", "https", "grpc"}
			switch kind {
			case "liveness":
				s.checkRestarts(0, "http", "https", "tcp", "grpc")
				p.unhealthy.Store(true)
				for _, name := range canFail {
					s.await(s.restarted(name, 1))
				}
				s.checkRestarts(0, "tcp")
				return
			case "readiness":
				s.check(s.match(func(c api.ContainerStatus) bool { return !c.Ready }, canFail...)())
			case "startup":
				s.check(s.match(func(c api.ContainerStatus) bool { return c.Started != nil && !*c.Started }, canFail...)())
			}
			p.unhealthy.Store(false)
			s.await(s.match(func(c api.ContainerStatus) bool { return c.Ready && *c.Started }, "http", "https", "tcp", "grpc"))
			s.checkRestarts(0, "http", "https", "tcp", "grpc")
		})
	}
}

// match holds when ok does for all of these containers.
func (s *testPod) match(ok func(api.ContainerStatus) bool, names ...string) func() error {
	return func() error {
		s.Helper()
		for _, name := range names {
			if c := s.container(name); !ok(c) {
				return fmt.Errorf("container %s: %s", name, text(c))
			}
		}
		return nil
	}
}

// TestHookHandlers: HTTP hooks send the whole request of the pod file, and sleep hooks take their time.
//
// fields: containers[].lifecycle.{postStart,preStop}.httpGet.{path,port,host,scheme,httpHeaders[].name,httpHeaders[].value}
// fields: containers[].lifecycle.{postStart,preStop}.sleep.seconds
func TestHookHandlers(t *testing.T) {
	t.Parallel()
	p := newProbeServer(t)
	web := p.handlers()
	hooks := func(name string) string {
		asks := strings.Replace(web[name], webPath, webPath+"&hook=", 1)
		return fmt.Sprintf("lifecycle.postStart = { %s }\nlifecycle.preStop = { %s }\n",
			strings.Replace(asks, "hook=", "hook=PostStart-"+name, 1), strings.Replace(asks, "hook=", "hook=PreStop-"+name, 1))
	}
	var s *testPod
	created := make(chan struct{}) // the first hook may run before play returns
	p.onRequest(func(r *http.Request) {
		<-created
		hook := r.FormValue("hook")
		if r.Header.Get(webHeader) != webValue || r.Host != webHost || strings.HasSuffix(hook, "https") != (r.TLS != nil) {
			t.Errorf("%s: request %s of %s with %v", hook, r.URL, r.Host, r.Header)
		}
		s.record(hook, "Starting")
		s.record(hook, "Exiting")
	})
	s = runPod(t, shared, "hostNetwork = true\nterminationGracePeriodSeconds = 100\n"+
		"[[containers]]\n@http\n"+hooks("http")+"[[containers]]\n@https\n"+hooks("https")+
		"[[containers]]\n@sleep\nlifecycle.postStart.sleep = { seconds = 2 }\nlifecycle.preStop.sleep = { seconds = 2 "+
		"}\n[[containers]]\n@after\n")
	close(created)
	s.await(s.started("http", "https", "sleep", "after"), s.running("http", "https", "sleep", "after"))
	s.stop()
	s.awaitPhase(api.PhaseSucceeded)
	all := s.timeline()
	for _, name := range []string{"http", "https"} {
		s.check(all.HasNotRestarted("PostStart-"+name), all.HasNotRestarted("PreStop-"+name), all.EndsBeforeSignal("PreStop-"+name, name))
	}
	s.check(all.ExitsBefore("PostStart-http", "https"), all.ExitsBefore("PostStart-https", "sleep"))
	if d := s.event(api.EventContainerStarted, "after").Time.Sub(s.event(api.EventContainerStarted,
		"sleep").Time); d < 1900*time.Millisecond {
		t.Errorf("the container after a postStart hook of 2 s started after %v", d)
	}
	run, err := all.first("sleep")
	s.check(err)
	if d := run.terminating.Sub(s.event(api.EventContainerStopping, "sleep").Time); d < 1900*time.Millisecond {
		t.Errorf("the signal came after %v, before the 2 s of the hook", d)
	}
}
