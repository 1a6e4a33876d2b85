package supervisor_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/state"
)

func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers(map[string]string{"ready": "echo not yet; exit 1"})
		m := newMachine(t, fakeruntime.Options{Exec: a.program})
		m.start()
		p := pod("p", spec.RestartAlways, "sleep 100000")
		p.Containers[0].ReadinessProbe = execProbe("ready")
		m.add(p)
		time.Sleep(25 * time.Second)
		m.expectMessages(slices.Repeat([]string{"Warning Unhealthy: Readiness probe failed: not yet"}, 3)...)
		saves := m.saves()
		a.set("ready", "true")
		m.until("p", "ready", ready)
		a.set("ready", "sleep 5")
		m.until("p", "unready", func(s supervisor.Snapshot) bool { return !ready(s) })
		m.expectMessages(slices.Repeat([]string{`Warning Unhealthy: Readiness probe failed: command timed out: "ready" timed out after 1s`},
			3)...)
		a.set("ready", "/no/such/program")
		time.Sleep(10 * time.Second)
		m.expectMessages("Warning Unhealthy: Readiness probe errored and resulted in unknown state: exec in container c0: " +
			`exec: "/no/such/program": executable file not found in $PATH`)
		if now := m.saves(); now != saves {
			t.Errorf("%d writes of the state because of probes, want none", now-saves)
		}
		a.set("ready", "true")
		m.until("p", "ready", ready)
		if s, _ := m.Pod("p"); s.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Error("the readiness probe restarted the container")
		}
		m.delete("p")
		if asked := a.count("ready"); asked == 0 || len(m.checkpoints.kept) != 0 {
			t.Errorf("probed %d times; checkpoints of removed pods: %v", asked, m.checkpoints.kept)
		}
		before := a.count("ready")
		time.Sleep(time.Hour)
		if after := a.count("ready"); after != before {
			t.Errorf("probed %d times after the pod was removed", after-before)
		}
	})
}

// TestReadinessOfNewDefinition checks that the result of a readiness probe counts until another probe takes its place, also over a restart
// of the daemon.
func TestReadinessOfNewDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers(map[string]string{"ready": "true", "other": "exit 1"})
		m := newMachine(t, fakeruntime.Options{Exec: a.program})
		m.start()
		of := func(probe *spec.Probe) *spec.Pod {
			p := pod("p", spec.RestartAlways, "sleep 100000")
			p.Containers[0].ReadinessProbe = probe
			return p
		}
		m.add(of(execProbe("ready")))
		m.until("p", "ready", ready)
		slower := execProbe("ready")
		slower.PeriodSeconds, slower.FailureThreshold = spec.Seconds(3600), 5
		m.redefine(of(slower))
		if s, _ := m.Pod("p"); !ready(s) {
			t.Errorf("not ready after a change of the period: %+v", s.Status)
		}
		m.redefine(of(execProbe("other")))
		if s, _ := m.Pod("p"); ready(s) {
			t.Errorf("ready before the new probe has run: %+v", s.Status)
		}
		m.restartKilled()
		time.Sleep(time.Minute)
		if s, _ := m.Pod("p"); ready(s) {
			t.Errorf("ready although the new probe fails: %+v", s.Status)
		}
		a.set("other", "true")
		m.until("p", "ready", ready)
		m.redefine(of(nil))
		a.set("other", "exit 1")
		m.redefine(of(execProbe("other")))
		if s, _ := m.Pod("p"); ready(s) {
			t.Errorf("ready before a probe that was added has run: %+v", s.Status)
		}
		a.set("other", "true")
		m.until("p", "ready", ready)
	})
}

func TestLivenessAndStartup(t *testing.T) {
	for _, test := range []struct {
		name    string
		arrange func(*spec.Container)
		want    []string
	}{
		{
			"liveness", func(c *spec.Container) { c.LivenessProbe = execProbe("probe") },
			append(slices.Repeat([]string{"Warning Unhealthy: Liveness probe failed: oh no"}, 3),
				"Normal Killing: Container c0 failed liveness probe, will be restarted"),
		},
		{
			"startup", func(c *spec.Container) {
				c.StartupProbe = execProbe("probe")
				c.LivenessProbe, c.ReadinessProbe = execProbe("never"), execProbe("never")
			},
			append(slices.Repeat([]string{"Warning Unhealthy: Startup probe failed: oh no"}, 3),
				"Normal Killing: Container c0 failed startup probe, will be restarted"),
		},
		{
			"liveness, with a preStop hook", func(c *spec.Container) {
				c.LivenessProbe = execProbe("probe")
				c.Lifecycle = &spec.Lifecycle{PreStop: execHook("hook")}
			},
			append(slices.Repeat([]string{"Warning Unhealthy: Liveness probe failed: oh no"}, 3),
				"Normal Killing: Container c0 failed liveness probe, will be restarted"),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAnswers(map[string]string{"probe": "echo oh no; exit 1", "hook": "true"})
				m := newMachine(t, fakeruntime.Options{Exec: a.program})
				m.start()
				p := pod("p", spec.RestartAlways, "trap 'exit 0' TERM; sleep 100000 & wait")
				test.arrange(&p.Containers[0])
				for _, probe := range []*spec.Probe{p.Containers[0].LivenessProbe, p.Containers[0].StartupProbe} {
					if probe != nil {
						probe.InitialDelaySeconds = 5 // so that the second attempt is not probed yet
					}
				}
				m.add(p)
				m.until("p", "restarted", restarted)
				m.expectMessages(test.want...)
				if n := a.count("never"); n != 0 {
					t.Errorf("%d probes ran before the startup probe succeeded", n)
				}
				if hooked := p.Containers[0].Lifecycle != nil; hooked != (a.count("hook") == 1) {
					t.Errorf("the hook ran %d times", a.count("hook"))
				}
			})
		})
	}
}

// TestProbeResultsAfterDaemonRestart expects that a restart of the daemon changes neither started nor ready, and emits nothing about them.
func TestProbeResultsAfterDaemonRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers(map[string]string{"startup": "true", "ready": "true"})
		m := newMachine(t, fakeruntime.Options{Exec: a.program})
		m.start()
		p := pod("p", spec.RestartAlways, "sleep 100000")
		p.Containers[0].StartupProbe, p.Containers[0].ReadinessProbe = execProbe("startup"), execProbe("ready")
		p.Containers[0].ReadinessProbe.InitialDelaySeconds = 5 // so that nothing is probed before the check after the reboot
		m.add(p)
		m.until("p", "ready", ready)
		synctest.Wait()
		for _, end := range []func(){m.crash, m.leave, m.crash} {
			end()
			asked := a.count("startup")
			m.checkpoints.kept["gone"] = state.Checkpoint{}
			m.start()
			if _, kept := m.checkpoints.kept["gone"]; kept {
				t.Error("the checkpoint of a removed pod is kept")
			}
			for range 30 {
				s, _ := m.Pod("p")
				if c := s.Status.ContainerStatuses[0]; !c.Ready || !*c.Started {
					t.Fatalf("after the restart: ready %v, started %v", c.Ready, *c.Started)
				}
				time.Sleep(time.Second)
			}
			if now := a.count("startup"); now != asked {
				t.Error("the startup probe ran again")
			}
			m.expectEvents("PodRecovered")
		}
		m.crash()
		m.boot, m.started = "boot-2", time.Now()
		m.engine.Reboot()
		m.start()
		if s, _ := m.Pod("p"); ready(s) {
			t.Error("the pod is ready after a reboot without a probe")
		}
		m.until("p", "ready", ready)
	})
}

func TestHooks(t *testing.T) {
	for _, test := range []struct {
		name        string
		postStart   string
		preStop     string
		runsFor     time.Duration // before the stop
		grace       spec.Seconds
		takes       time.Duration // from the stop until it has stopped
		want        []string
		posts, pres int
		restarts    int
	}{
		{
			name: "both succeed", postStart: "sleep 2", preStop: "sleep 3", runsFor: time.Minute, grace: 30, takes: 3 * time.Second,
			want: []string{"Normal Killing: Stopping container c0"}, posts: 1, pres: 1,
		},
		{
			name: "postStart fails", postStart: "exit 1", preStop: "true", runsFor: 5 * time.Second, grace: 30,
			want: []string{
				"Warning FailedPostStartHook: PostStartHook failed", "Normal Killing: FailedPostStartHook",
				"Warning FailedPostStartHook: PostStartHook failed", "Normal Killing: FailedPostStartHook",
			}, posts: 2, pres: 2, restarts: 1,
		},
		{
			name: "hanging postStart does not delay the stop", postStart: "sleep 100000", preStop: "true", runsFor: time.Hour, grace: 30,
			want: []string{"Normal Killing: Stopping container c0"}, posts: 1, pres: 1,
		},
		{
			name: "hanging preStop is cancelled after the grace period", postStart: "true", preStop: "sleep 100000", runsFor: time.Minute,
			grace: 10, takes: 10 * time.Second,
			want: []string{"Normal Killing: Stopping container c0"}, posts: 1, pres: 1,
		},
		{
			name: "preStop fails", postStart: "true", preStop: "echo secret; exit 1", runsFor: time.Minute, grace: 30,
			want: []string{
				"Normal Killing: Stopping container c0", "Warning FailedPreStopHook: PreStopHook failed",
			}, posts: 1, pres: 1,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAnswers(map[string]string{"post": test.postStart, "pre": test.preStop})
				m := newMachine(t, fakeruntime.Options{Exec: a.program})
				m.start()
				p := pod("p", spec.RestartAlways, "trap 'exit 0' TERM; sleep 100000 & wait")
				p.TerminationGracePeriodSeconds = test.grace
				p.Containers[0].Lifecycle = &spec.Lifecycle{PostStart: execHook("post"), PreStop: execHook("pre")}
				m.add(p)
				time.Sleep(test.runsFor)
				started := time.Now()
				if err := m.Stop(t.Context(), "p", supervisor.StopOptions{By: "test"}); err != nil {
					t.Fatal(err)
				}
				s := m.until("p", "at rest", func(s supervisor.Snapshot) bool { return s.AtRest })
				if took := time.Since(started); took != test.takes {
					t.Errorf("the stop took %v, want %v", took, test.takes)
				}
				m.expectMessages(test.want...)
				if posts, pres := a.count("post"), a.count("pre"); posts != test.posts || pres != test.pres {
					t.Errorf("postStart ran %d times, preStop %d times; want %d and %d", posts, pres, test.posts, test.pres)
				}
				if n := s.Status.ContainerStatuses[0].RestartCount; n != test.restarts {
					t.Errorf("%d restarts, want %d", n, test.restarts)
				}
			})
		})
	}
}

// TestHookAfterCrash expects that a hook that was running when the supervisor was killed runs again.
func TestHookAfterCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers(map[string]string{"post": "sleep 60"})
		m := newMachine(t, fakeruntime.Options{Exec: a.program})
		m.start()
		p := pod("p", spec.RestartAlways, "sleep 100000")
		p.Containers[0].Lifecycle = &spec.Lifecycle{PostStart: execHook("post")}
		m.add(p)
		time.Sleep(10 * time.Second)
		m.crash()
		m.start()
		m.until("p", "ready", ready)
		if n := a.count("post"); n != 2 {
			t.Errorf("the hook ran %d times, want twice", n)
		}
		m.expectEvents("PodRecovered")
	})
}

// TestHTTPRequests expects probes and hooks at the address of the pod, or of the host for hostNetwork, with named ports.
func TestHTTPRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := map[string]int{}
		m := newMachine(t, fakeruntime.Options{})
		m.dial = func(_ context.Context, _, address string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() {
				defer server.Close()
				r, err := http.ReadRequest(bufio.NewReader(server))
				if err != nil {
					_, _ = io.WriteString(server, "HTTP/1.0 400 Bad Request\r\n\r\n")
					return
				}
				mu.Lock()
				asked[address+r.URL.Path]++
				mu.Unlock()
				answer := map[string]string{"/moved": "302 Found\r\nLocation: http://elsewhere/"}[r.URL.Path]
				_, _ = io.WriteString(server, "HTTP/1.1 "+max(answer, "200 OK")+"\r\nContent-Length: 0\r\n\r\n")
			}()
			return client, nil
		}
		m.start()
		p := pod("p", spec.RestartAlways, "trap 'exit 0' TERM; sleep 100000 & wait")
		p.HostNetwork = true
		c := &p.Containers[0]
		c.Ports = []spec.ContainerPort{{Name: "web", ContainerPort: 8080}}
		get := func(path, scheme string) *spec.HTTPGetAction {
			return &spec.HTTPGetAction{Port: spec.Port{Name: "web"}, Path: path, Scheme: scheme}
		}
		c.ReadinessProbe = execProbe("")
		c.ReadinessProbe.Exec, c.ReadinessProbe.HTTPGet = nil, get("/moved", "")
		c.Lifecycle = &spec.Lifecycle{
			PostStart: &spec.LifecycleHandler{HTTPGet: get("/post", "HTTPS")},
			PreStop:   &spec.LifecycleHandler{HTTPGet: get("/pre", "")},
		}
		m.add(p)
		m.until("p", "ready", ready)
		m.expectMessages(
			"Warning LifecycleHTTPFallback: request to HTTPS lifecycle hook 127.0.0.1:8080 got HTTP response, retry with HTTP succeeded",
			"Warning ProbeWarning: Readiness probe warning: Probe terminated redirects, Response body: ",
		)
		m.delete("p")
		mu.Lock()
		defer mu.Unlock()
		for _, want := range []string{"127.0.0.1:8080/moved", "127.0.0.1:8080/post", "127.0.0.1:8080/pre"} {
			if asked[want] != 1 {
				t.Errorf("requests %v, want each once", asked)
			}
		}
	})
}

// TestLongProbeOutput expects that the output of a probe is truncated in events.
func TestLongProbeOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers(map[string]string{"ready": "echo " + strings.Repeat("é", 5000) + "; exit 1"})
		m := newMachine(t, fakeruntime.Options{Exec: a.program})
		m.start()
		p := pod("p", spec.RestartAlways, "sleep 100000")
		p.Containers[0].ReadinessProbe = execProbe("ready")
		m.add(p)
		time.Sleep(time.Second)
		m.expectMessages("Warning Unhealthy: Readiness probe failed: " + strings.Repeat("é", 512) + "…")
	})
}

// TestProbeSoak runs ten containers with thirty probes, some failing or hanging, for six hours. It expects no more goroutines than after a
// minute.
func TestProbeSoak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers(map[string]string{"good": "true", "bad": "exit 1", "slow": "sleep 100"})
		m := newMachine(t, fakeruntime.Options{Exec: a.program})
		m.start()
		p := pod("p", spec.RestartAlways, slices.Repeat([]string{"sleep 10000000"}, 10)...)
		for i := range p.Containers {
			c := &p.Containers[i]
			c.StartupProbe, c.LivenessProbe = execProbe("good"), execProbe("good")
			c.ReadinessProbe = execProbe([]string{"good", "bad", "slow"}[i%3])
		}
		m.add(p)
		// All probes have the same period, so that only workers run in the middle of it.
		time.Sleep(time.Minute + 5*time.Second)
		synctest.Wait()
		before, asked := runtime.NumGoroutine(), a.count("good")
		time.Sleep(6 * time.Hour)
		synctest.Wait()
		if after := runtime.NumGoroutine(); after > before {
			t.Errorf("%d goroutines after six hours, %d before", after, before)
		}
		if n := a.count("good") - asked; n != 14*6*360 { // ten liveness and four readiness probes
			t.Errorf("probed %d times", n)
		}
		if s, _ := m.Pod("p"); !ready(s) || s.Status.ContainerStatuses[1].Ready {
			t.Errorf("the status is %+v", s.Status)
		}
	})
}
