//go:build e2e

package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// handlers are those that a partner answers, if they say all that it wants to hear.
func (p *partner) handlers() map[string]string {
	web := func(scheme string, port int) string {
		return fmt.Sprintf("httpGet = { host = \"127.0.0.1\", port = %d, path = %q, scheme = %q, httpHeaders = [{ name = %q, value = %q }, { name = \"Host\", value = %q }] }",
			port, webPath, scheme, webHeader, webValue, webHost)
	}
	return map[string]string{
		"http":  web("HTTP", p.httpPort()),
		"https": web("HTTPS", p.httpsPort()),
		"tcp":   fmt.Sprintf("tcpSocket = { host = \"127.0.0.1\", port = %d }", p.tcpPort()),
		"grpc":  fmt.Sprintf("grpc = { port = %d, service = \"well\" }", p.grpcPort()),
	}
}

// TestProbeHandlers: a probe of each kind and with each handler does what the answer says. A container is named after its
// handler. The TCP port cannot be made ill, so it is there to be found well, by a startup probe once.
//
// fields: containers[].{livenessProbe,readinessProbe,startupProbe}.httpGet.{path,port,host,scheme,httpHeaders[].name,httpHeaders[].value}
// fields: containers[].{livenessProbe,readinessProbe,startupProbe}.{tcpSocket.port,tcpSocket.host,grpc.port,grpc.service}
func TestProbeHandlers(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"liveness", "readiness", "startup"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := newPartner(t)
			p.ill.Store(kind != "liveness")
			numbers := often
			if kind == "startup" {
				numbers = strings.Replace(often, "failureThreshold = 1", "failureThreshold = 10000", 1)
			}
			var file strings.Builder
			file.WriteString("hostNetwork = true\n")
			for name, handler := range p.handlers() {
				fmt.Fprintf(&file, "[[containers]]\n@%s\n%sProbe = { %s, %s }\n", name, kind, handler, numbers)
			}
			s := play(t, shared, file.String())
			s.until(s.runs("http", "https", "tcp", "grpc"), p.asked("http", 3), p.asked("https", 3), p.asked("tcp", 1), p.asked("grpc", 3))
			canBeIll := []string{"http", "https", "grpc"}
			switch kind {
			case "liveness":
				s.counts(0, "http", "https", "tcp", "grpc")
				p.ill.Store(true)
				for _, name := range canBeIll {
					s.until(s.restarted(name, 1))
				}
				s.counts(0, "tcp")
				return
			case "readiness":
				s.check(s.well(func(c lifecycle.ContainerStatus) bool { return !c.Ready }, canBeIll...)())
			case "startup":
				s.check(s.well(func(c lifecycle.ContainerStatus) bool { return c.Started != nil && !*c.Started }, canBeIll...)())
			}
			p.ill.Store(false)
			s.until(s.well(func(c lifecycle.ContainerStatus) bool { return c.Ready && *c.Started }, "http", "https", "tcp", "grpc"))
			s.counts(0, "http", "https", "tcp", "grpc")
		})
	}
}

// well holds when a condition does for containers.
func (s *scene) well(ok func(lifecycle.ContainerStatus) bool, names ...string) func() error {
	return func() error {
		s.Helper()
		for _, name := range names {
			if c := s.container(name); !ok(c) {
				return fmt.Errorf("%s is shown as %s", name, text(c))
			}
		}
		return nil
	}
}

// TestHookHandlers: hooks that ask a server ask it all that they were told to, and one that sleeps takes its time.
//
// fields: containers[].lifecycle.{postStart,preStop}.httpGet.{path,port,host,scheme,httpHeaders[].name,httpHeaders[].value}
// fields: containers[].lifecycle.{postStart,preStop}.sleep.seconds
func TestHookHandlers(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	web := p.handlers()
	hooks := func(name string) string {
		asks := strings.Replace(web[name], webPath, webPath+"&hook=", 1)
		return fmt.Sprintf("lifecycle.postStart = { %s }\nlifecycle.preStop = { %s }\n",
			strings.Replace(asks, "hook=", "hook=PostStart-"+name, 1), strings.Replace(asks, "hook=", "hook=PreStop-"+name, 1))
	}
	var s *scene
	made := make(chan struct{}) // the first hook may ask before play returns
	p.answer(func(r *http.Request) {
		<-made
		hook := r.FormValue("hook")
		if r.Header.Get(webHeader) != webValue || r.Host != webHost || strings.HasSuffix(hook, "https") != (r.TLS != nil) {
			t.Errorf("%s: request %s of %s with %v", hook, r.URL, r.Host, r.Header)
		}
		s.tell(hook, "Starting")
		s.tell(hook, "Exiting")
	})
	s = play(t, shared, "hostNetwork = true\nterminationGracePeriodSeconds = 100\n"+
		"[[containers]]\n@http\n"+hooks("http")+"[[containers]]\n@https\n"+hooks("https")+
		"[[containers]]\n@sleep\nlifecycle.postStart.sleep = { seconds = 2 }\nlifecycle.preStop.sleep = { seconds = 2 }\n[[containers]]\n@after\n")
	close(made)
	s.until(s.awake("http", "https", "sleep", "after"), s.runs("http", "https", "sleep", "after"))
	s.stop()
	s.ended(lifecycle.PhaseSucceeded)
	all := s.tale()
	for _, name := range []string{"http", "https"} {
		s.check(all.HasNotRestarted("PostStart-"+name), all.HasNotRestarted("PreStop-"+name), all.EndsBeforeSignal("PreStop-"+name, name))
	}
	s.check(all.ExitsBefore("PostStart-http", "https"), all.ExitsBefore("PostStart-https", "sleep"))
	if d := s.event(event.ContainerStarted, "after").Time.Sub(s.event(event.ContainerStarted, "sleep").Time); d < 1900*time.Millisecond {
		t.Errorf("the container after a hook of 2 s started after %v", d)
	}
	run, err := all.first("sleep")
	s.check(err)
	if d := run.terminating.Sub(s.event(event.ContainerStopping, "sleep").Time); d < 1900*time.Millisecond {
		t.Errorf("the signal came after %v, before the 2 s of the hook", d)
	}
}
