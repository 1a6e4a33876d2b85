package supervisor_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// told are the kinds that a world must have told.
type told []supervisor.Kind

// troubled is a machine on which calls of one method fail.
type troubled struct {
	*machine
	*answers
	fails atomic.Pointer[trouble]
	kept  *journal
}

type trouble struct {
	method string
	why    error
}

func newTroubled(t *testing.T) *troubled {
	w := &troubled{answers: newAnswers(map[string]string{"good": "true", "bad": "exit 1"}), kept: &journal{}}
	w.machine = newMachine(t, fakeruntime.Options{
		Before: func(_ context.Context, c fakeruntime.Call) error {
			if f := w.fails.Load(); f != nil && f.method == c.Method {
				return f.why
			}
			return nil
		},
		Exec: w.program,
	})
	w.journal, w.dial = w.kept, plain
	w.start()
	return w
}

func (w *troubled) fail(method string, why lifecycle.Failure) { w.fails.Store(&trouble{method, why}) }

// plain connects to a server that speaks no TLS and sends whoever asks elsewhere.
func plain(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		if _, err := http.ReadRequest(bufio.NewReader(server)); err != nil {
			_, _ = io.WriteString(server, "HTTP/1.0 400 Bad Request\r\n\r\n")
			return
		}
		_, _ = io.WriteString(server, "HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n")
	}()
	return client, nil
}

// with is a pod of one server, changed.
func with(change func(*spec.Pod, *spec.Container)) *spec.Pod {
	p := pod("p", spec.RestartAlways, "trap 'exit 0' TERM; sleep 100000 & wait")
	change(p, &p.Containers[0])
	return p
}

func calm(*spec.Pod, *spec.Container) {}

// TestEveryKindIsCaused causes each kind of the table of events. What follows from something says from what.
func TestEveryKindIsCaused(t *testing.T) {
	minute := spec.Seconds(60)
	get := func(scheme string) *spec.HTTPGetAction {
		return &spec.HTTPGetAction{Port: spec.Port{Number: 80}, Path: "/", Scheme: scheme}
	}
	failing := func(method string, why lifecycle.Failure, want ...supervisor.Kind) cause {
		return cause{method + " " + string(why.Reason) + string(why.Kind), with(calm), func(w *troubled) { w.fail(method, why) }, nil, want}
	}
	ending := func(w *troubled) { w.delete("p") }
	causes := []cause{
		{"a success", pod("p", spec.RestartNever, "sleep 1"), nil, ending, told{
			supervisor.PodAccepted, supervisor.SandboxReady, supervisor.ImagePulling, supervisor.ImagePulled, supervisor.ContainerStarted,
			supervisor.ContainerSucceeded, supervisor.PodSucceeded, supervisor.PodRemoved,
		}},
		{"a crash loop", pod("p", spec.RestartAlways, "sleep 1; exit 1"), nil, nil, told{supervisor.ContainerFailed, supervisor.ContainerBackOff, supervisor.ImagePresent}},
		{"a failure", pod("p", spec.RestartNever, "exit 1"), nil, nil, told{supervisor.PodFailed}},
		{"a stop in vain", pod("p", spec.RestartAlways, "sleep 100000"), nil, ending, told{supervisor.PodStopping, supervisor.ContainerStopping, supervisor.ContainerKilled}},
		{"a restart of the supervisor", with(calm), nil, func(w *troubled) { w.leave(); w.start() }, told{supervisor.PodRecovered}},
		{"a boot", with(calm), nil, func(w *troubled) {
			w.crash()
			w.engine.Reboot()
			w.boot = "boot-2"
			w.start()
		}, told{supervisor.HostRebooted}},
		{"state that is lost, and state of later versions", with(calm), nil, func(w *troubled) {
			w.crash()
			clear(w.disk.files)
			w.disk.bad = []state.Unusable{{Name: "p", File: "f", Err: errors.New("broken")}, {Name: "q", File: "f", Err: errors.New("later"), Kept: true}}
			w.start()
		}, told{supervisor.StateLost, supervisor.StateUnsupported}},
		{"a pod that nobody asked for", with(calm), nil, func(w *troubled) {
			w.crash()
			clear(w.disk.files)
			w.start()
			w.untilGone("p")
		}, told{supervisor.OrphanFound}},
		{"a sandbox that is lost, with an end that is not seen", with(calm), func(w *troubled) { w.fail("WaitContainer", lifecycle.Failure{Message: "no"}) }, func(w *troubled) {
			s, _ := w.Pod("p")
			w.engine.LoseSandbox(s.Facts.UID)
		}, told{supervisor.SandboxChanged, supervisor.ContainerSandboxChanged}},
		{"eviction", with(calm), nil, func(w *troubled) {
			s, _ := w.Pod("p")
			w.engine.Overuse(s.Facts.UID, "too much")
		}, told{supervisor.PodEvicted}},
		{"a deadline", with(func(p *spec.Pod, _ *spec.Container) { p.ActiveDeadlineSeconds = &minute }), nil, nil, told{supervisor.PodDeadlineExceeded}},
		{"a restart of all", with(func(_ *spec.Pod, c *spec.Container) {
			c.Command = []string{"sh", "-c", "sleep 100; exit 42"}
			c.RestartPolicy = spec.RestartNever
			c.RestartPolicyRules = []spec.RestartRule{{Action: "RestartAllContainers", ExitCodes: &spec.ExitCodes{Operator: "In", Values: []int32{42}}}}
		}), nil, nil, told{supervisor.PodRestarting}},
		{"liveness", with(func(_ *spec.Pod, c *spec.Container) { c.LivenessProbe = execProbe("bad") }), nil, nil, told{supervisor.ProbeFailed, supervisor.ContainerLivenessFailed}},
		{"startup", with(func(_ *spec.Pod, c *spec.Container) { c.StartupProbe = execProbe("bad") }), nil, nil, told{supervisor.ContainerStartupFailed}},
		{"a probe without a program", with(func(_ *spec.Pod, c *spec.Container) { c.ReadinessProbe = execProbe("good") }), func(w *troubled) {
			w.fails.Store(&trouble{"Exec", errors.New("no such container")})
		}, nil, told{supervisor.ProbeErrored}},
		{"postStart", with(func(_ *spec.Pod, c *spec.Container) { c.Lifecycle = &spec.Lifecycle{PostStart: execHook("bad")} }), nil, nil, told{supervisor.PostStartFailed, supervisor.ContainerPostStartFailed}},
		{"preStop", with(func(_ *spec.Pod, c *spec.Container) { c.Lifecycle = &spec.Lifecycle{PreStop: execHook("bad")} }), nil, ending, told{supervisor.PreStopFailed}},
		{"redirects and HTTPS that is HTTP", with(func(p *spec.Pod, c *spec.Container) {
			p.HostNetwork = true
			c.ReadinessProbe = execProbe("")
			c.ReadinessProbe.Exec, c.ReadinessProbe.HTTPGet = nil, get("")
			c.Lifecycle = &spec.Lifecycle{PostStart: &spec.LifecycleHandler{HTTPGet: get("HTTPS")}}
		}), nil, nil, told{supervisor.HookWarned, supervisor.ProbeWarned}},
		{"an ephemeral container", with(calm), nil, func(w *troubled) {
			if err := w.AddEphemeral(w.t.Context(), "p", "", &spec.Container{Name: "d", Image: "image", Command: []string{"true"}}, "test"); err != nil {
				t.Error(err)
			}
		}, told{supervisor.ContainerAdded}},
		{"a refusal", with(calm), nil, func(w *troubled) {
			if _, err := w.Add(&spec.Pod{Name: "q", SecurityContext: unsafeContext}, state.Owner{}); err == nil {
				t.Error("a forbidden sysctl was accepted")
			}
		}, told{supervisor.PodRejected}},
		{"a condition", with(func(p *spec.Pod, _ *spec.Container) { p.ReadinessGates = []spec.ReadinessGate{{ConditionType: "a"}} }), nil, func(w *troubled) {
			if err := w.SetCondition(w.t.Context(), "p", "", "a", lifecycle.SetCondition{Status: "True"}, "test"); err != nil {
				t.Error(err)
			}
		}, told{supervisor.ConditionChanged}},
		{"a disk that is full for a while", with(calm), func(w *troubled) { w.disk.fail(errors.New("full")) }, func(w *troubled) { w.disk.fail(nil) }, told{supervisor.StateNotDurable, supervisor.StateDurable}},
		{"a journal that fails", with(calm), func(w *troubled) { w.kept.set(nil, errors.New("full")) }, nil, told{supervisor.JournalNotDurable}},
		{"a bug", with(calm), nil, func(w *troubled) { w.bug.Store(true) }, told{supervisor.InternalError}},
		failing("StartSandbox", lifecycle.Failure{Message: "no"}, supervisor.SandboxFailed),
		failing("StartSandbox", lifecycle.Failure{Reason: lifecycle.ReasonFailedMount}, supervisor.VolumeFailed),
		failing("StartSandbox", lifecycle.Failure{Kind: lifecycle.FailureUnavailable}, supervisor.EngineUnavailable),
		failing("PullImage", lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull}, supervisor.ImagePullFailed, supervisor.ImageBackOff, supervisor.ImageError),
		failing("PullImage", lifecycle.Failure{Reason: lifecycle.ReasonErrImageNeverPull}, supervisor.ImageNeverPull),
		failing("PullImage", lifecycle.Failure{Reason: lifecycle.ReasonInvalidImageName}, supervisor.ImageInspectFailed),
		failing("PullImage", lifecycle.Failure{Reason: lifecycle.ReasonImageInspectError}, supervisor.ImageInspectFailed),
		failing("StartContainer", lifecycle.Failure{Kind: lifecycle.FailureNotCreated}, supervisor.ContainerCreateFailed),
		failing("StartContainer", lifecycle.Failure{Message: "no"}, supervisor.ContainerStartFailed),
		{"a signal that cannot be sent", with(calm), nil, func(w *troubled) {
			w.fail("StopContainer", lifecycle.Failure{Message: "no"})
			w.delete("p")
		}, told{supervisor.SignalFailed}},
		{"what cannot be removed", pod("p", spec.RestartNever, "true"), nil, func(w *troubled) {
			w.fail("RemovePod", lifecycle.Failure{Message: "no"})
			if err := w.Stop(w.t.Context(), "p", supervisor.StopOptions{Delete: true}); err != nil {
				t.Error(err)
			}
		}, told{supervisor.RemovalFailed}},
	}
	caused := map[supervisor.Kind]bool{}
	for _, c := range causes {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for kind := range c.run(t) {
					caused[kind] = true
				}
			})
		})
	}
	for _, e := range supervisor.Entries() {
		if !caused[e.Kind] {
			t.Errorf("nothing causes %s", e.Kind)
		}
	}
}

// cause is a life of a pod that ends in events of some kinds.
type cause struct {
	name  string
	pod   *spec.Pod
	first func(*troubled) // before there is a pod; nil: nothing
	then  func(*troubled) // when it has been there for a while; nil: nothing
	want  told
}

// run lives and returns the kinds that were told, each of which must be caused by one before it, or by nothing that can be told.
func (c *cause) run(t *testing.T) map[supervisor.Kind]bool {
	w := newTroubled(t)
	if c.first != nil {
		c.first(w)
	}
	w.add(c.pod)
	time.Sleep(90 * time.Second)
	if c.then != nil {
		c.then(w)
	}
	time.Sleep(3 * time.Minute)
	synctest.Wait()
	events, _ := w.Events().Since(0)
	seen, known := map[supervisor.Kind]bool{}, map[uint64]bool{0: true}
	first := []supervisor.Kind{supervisor.PodAccepted, supervisor.StateLost, supervisor.StateUnsupported, supervisor.JournalNotDurable, supervisor.PodRejected}
	later := map[supervisor.Kind]bool{supervisor.PodRecovered: true, supervisor.OrphanFound: true} // first, of a pod that was forgotten
	for _, e := range events {
		if (e.Cause == 0) != slices.Contains(first, e.Kind) && !later[e.Kind] {
			t.Errorf("the cause of %+v is %d", e, e.Cause)
		}
		if !known[e.Cause] {
			t.Errorf("the cause of %+v is not known", e)
		}
		seen[e.Kind], known[e.Seq] = true, true
	}
	for _, kind := range c.want {
		if !seen[kind] {
			t.Errorf("%s is not told; the events are %v", kind, kinds(events))
		}
	}
	w.fails.Store(nil)
	return seen
}

// TestKubeletReasons holds the reasons of the kubelet's events (kubernetes/pkg/kubelet/events) against the table: each is there,
// or it is said why it is not.
func TestKubeletReasons(t *testing.T) {
	const (
		noPull    = "imagePullSecrets are refused"
		noCluster = "there is no cluster"
		noResize  = "there is no in-place resize"
	)
	absent := map[string]string{
		"FailedToRetrieveImagePullSecret": noPull,
		"FailedPodSandBoxStatus":          "the engine is away (EngineUnavailable), or the sandbox is lost (SandboxChanged)",
		"FailedSync":                      "there is no sync that fails as a whole: each failure is told", "NetworkNotReady": "the network is made with the sandbox",
		"FailedCreatePodContainer": "it is told as FailedCreatePodSandBox", "ExceededGracePeriod": "it is told as Killing, as a warning",
		"Preempting": noCluster, "ResizeStarted": noResize, "ResizeCompleted": noResize, "ResizeDeferred": noResize, "ResizeInfeasible": noResize,
		"ResizeError": noResize, "DNSConfigForming": "a file that would be cut is refused", "MissingClusterDNS": noCluster,
	}
	have := map[string]bool{}
	for _, e := range supervisor.Entries() {
		have[e.Reason] = true
	}
	for _, reason := range []string{
		"Pulling", "Pulled", "Created", "Started", "Failed", "Killing", "BackOff", "Unhealthy", "ProbeWarning", "FailedPostStartHook",
		"FailedPreStopHook", "LifecycleHTTPFallback", "InspectFailed", "ErrImageNeverPull", "FailedToRetrieveImagePullSecret", "SandboxChanged",
		"FailedCreatePodSandBox", "FailedPodSandBoxStatus", "FailedKillPod", "FailedSync", "NetworkNotReady", "FailedMount",
		"FailedCreatePodContainer", "ExceededGracePeriod", "DeadlineExceeded", "Evicted", "Preempting", "ResizeStarted", "ResizeCompleted",
		"ResizeDeferred", "ResizeInfeasible", "ResizeError", "DNSConfigForming", "MissingClusterDNS",
	} {
		if have[reason] == (absent[reason] != "") {
			t.Errorf("%s: in the table: %v; why it is not: %q", reason, have[reason], absent[reason])
		}
	}
}

// TestNoImageInTheKubeletsWords: the events of a container that cannot begin have the reasons and the messages of the kubelet's, and
// each follows from what led to it.
func TestNoImageInTheKubeletsWords(t *testing.T) {
	refused := lifecycle.Failure{Kind: lifecycle.FailureNotCreated, Reason: lifecycle.ReasonCreateConfigError, Message: "configmap \"x\" not found"}
	for method, c := range map[string]struct {
		why  lifecycle.Failure
		want []string
	}{
		"a registry that refuses": {lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull, Message: "refused"}, []string{
			`Normal Pulling: Pulling image "localhost/i:1"`,
			`Warning Failed: Failed to pull image "localhost/i:1": refused`,
			"Warning Failed: Error: ErrImagePull",
			`Normal BackOff: Back-off pulling image "localhost/i:1" for 10s`,
			"Warning Failed: Error: ImagePullBackOff",
		}},
		"an image that is not here": {lifecycle.Failure{Reason: lifecycle.ReasonErrImageNeverPull, Message: "no"}, []string{
			`Warning ErrImageNeverPull: Container image "localhost/i:1" is not present with pull policy of Never`,
			"Warning Failed: Error: ErrImageNeverPull",
		}},
		"a config map that is not there": {refused, []string{
			`Normal Pulling: Pulling image "localhost/i:1"`,
			`Normal Pulled: Successfully pulled image "localhost/i:1" in 0s`,
			`Warning Failed: Error: configmap "x" not found`,
		}},
	} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				at := "PullImage"
				if c.why.Kind == lifecycle.FailureNotCreated {
					at = "StartContainer"
				}
				m := newMachine(t, fakeruntime.Options{Before: func(_ context.Context, call fakeruntime.Call) error {
					if call.Method == at {
						return c.why
					}
					return nil
				}})
				m.start()
				p := pod("p", spec.RestartAlways, "true")
				p.Containers[0].Image = "localhost/i:1"
				if c.why.Reason == lifecycle.ReasonErrImageNeverPull {
					p.Containers[0].ImagePullPolicy = spec.PullNever
				}
				m.add(p)
				synctest.Wait()
				events, _ := m.Events().Since(0)
				var got []string
				for _, e := range events {
					if e.Container != "" {
						got = append(got, string(e.Level)+" "+e.Reason+": "+e.Message)
					}
					if e.Kind == supervisor.ImageBackOff && events[slices.IndexFunc(events, func(o supervisor.Event) bool { return o.Seq == e.Cause })].Kind != supervisor.ImagePullFailed {
						t.Errorf("the back-off follows from %d", e.Cause)
					}
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestStopAfterTheEnd: who asks for the end of a pod that has ended by itself has not ended it.
func TestStopAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("p", spec.RestartNever, "sleep 5; exit 3"))
		m.untilPhase("p", lifecycle.PhaseFailed)
		synctest.Wait()
		before, _ := m.Pod("p")
		if err := m.Stop(t.Context(), "p", supervisor.StopOptions{By: "a test"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		after, _ := m.Pod("p")
		if diff := cmp.Diff(before.Facts.Stop, after.Facts.Stop); diff != "" {
			t.Errorf("the pod is another (-before +after the stop):\n%s", diff)
		}
		if err := m.Stop(t.Context(), "p", supervisor.StopOptions{By: "a test", Delete: true}); err != nil {
			t.Fatal(err)
		}
		m.untilGone("p")
	})
}

// TestSandboxGone: whether the sandbox is made again is told with its loss.
func TestSandboxGone(t *testing.T) {
	for policy, then := range map[spec.RestartPolicy]string{
		spec.RestartAlways: "it will be killed and re-created", spec.RestartNever: "it is not re-created",
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t, fakeruntime.Options{})
			m.start()
			m.add(pod("p", policy, "sleep 100000"))
			s := m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
			m.engine.LoseSandbox(s.Facts.UID)
			time.Sleep(time.Minute)
			synctest.Wait()
			events, _ := m.Events().Since(0)
			i := slices.IndexFunc(events, func(e supervisor.Event) bool { return e.Kind == supervisor.SandboxChanged })
			if i < 0 && policy == spec.RestartNever {
				return // the end of the container was heard of first, and with it that of the pod
			}
			if i < 0 || !strings.HasPrefix(events[i].Message, "Pod sandbox changed, "+then+": ") {
				t.Errorf("%s: want that %s; the events are %+v", policy, then, events)
			}
		})
	}
}
