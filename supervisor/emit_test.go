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
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// emitted has the kinds that a scenario must emit.
type emitted []api.EventKind

// troubled is a host on which one method of the engine can fail.
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
		Exec: w.program, Fetch: importing(4*time.Second, "a.tar"), Shadowed: []string{"shadowed"},
	})
	w.journal, w.dial = w.kept, plain
	w.start()
	return w
}

func (w *troubled) fail(method string, why lifecycle.Failure) { w.fails.Store(&trouble{method, why}) }

// plain connects to an HTTP server without TLS that redirects all requests.
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

// with returns a pod with one container, after change.
func with(change func(*spec.Pod, *spec.Container)) *spec.Pod {
	p := pod("p", spec.RestartAlways, "trap 'exit 0' TERM; sleep 100000 & wait")
	change(p, &p.Containers[0])
	return p
}

func nothing(*spec.Pod, *spec.Container) {}

// elsewhere are the kinds that TestEscalationOfPod and the tests of packages podfiles, schedule, daemon, imagefile and images emit.
var elsewhere = []api.EventKind{
	api.EventFileInvalid, api.EventFileRejected, api.EventFileAccepted, api.EventUpdateWaiting, api.EventPodsDirLost, api.EventPodsDirFound,
	api.EventUpdateCompleted, api.EventUpdateFailed, api.EventRollbackStarted, api.EventRollbackCompleted, api.EventRolloutUndone,
	api.EventRolloutResumed, api.EventScheduleStarted, api.EventScheduleFailed, api.EventScheduleMissed, api.EventScheduleWaiting,
	api.EventScheduleClockSetBack,
	api.EventDaemonCrashed,
	api.EventConfigReloaded, api.EventConfigRestartRequired, api.EventConfigInvalid, api.EventImageArchiveImported,
	api.EventImageArchiveFailed,
	api.EventPodEscalated, api.EventRebootRequested, api.EventRebootHeldBack, api.EventRebootFailed,
	api.EventImageRemoved, api.EventImageGCFailed, api.EventFreeDiskSpaceFailed, api.EventDiskSpaceAvailable, api.EventLogsRemoved,
	api.EventCgroupCleared, api.EventMonitorRestarted, api.EventMonitorUnavailable, api.EventMonitorAvailable,
	api.EventMonitorReplaced, api.EventMonitorNotReplaced,
}

// TestEveryKindIsEmitted emits each kind of the event table, and checks the causes.
func TestEveryKindIsEmitted(t *testing.T) {
	minute := spec.Seconds(60)
	get := func(scheme string) *spec.HTTPGetAction {
		return &spec.HTTPGetAction{Port: spec.Port{Number: 80}, Path: "/", Scheme: scheme}
	}
	failing := func(method string, why lifecycle.Failure, want ...api.EventKind) scenario {
		return scenario{
			method + " " + string(why.Reason) + string(why.Kind), with(nothing), func(w *troubled) { w.fail(method, why) }, nil, want,
		}
	}
	ending := func(w *troubled) { w.delete("p") }
	scenarios := []scenario{
		{"pod succeeds", pod("p", spec.RestartNever, "sleep 1"), nil, ending, emitted{
			api.EventPodAccepted, api.EventSandboxReady, api.EventImagePulling, api.EventImagePulled, api.EventContainerStarted,
			api.EventContainerSucceeded, api.EventPodSucceeded, api.EventPodRemoved,
		}},
		{
			"pull secret missing",
			with(func(p *spec.Pod, _ *spec.Container) { p.ImagePullSecrets = []spec.ObjectReference{{Name: "none"}} }), nil, nil,
			emitted{api.EventPullSecretsMissing},
		},
		{
			"archive imported, with another image of a name",
			with(func(p *spec.Pod, c *spec.Container) { p.ImageArchives, c.Image = []string{"a.tar"}, "shadowed" }), nil, nil,
			emitted{api.EventImageImporting, api.EventImageShadowed},
		},
		{
			"container crashes", pod("p", spec.RestartAlways, "sleep 1; exit 1"), nil, nil,
			emitted{api.EventContainerFailed, api.EventContainerBackOff, api.EventImagePresent},
		},
		{"pod fails", pod("p", spec.RestartNever, "exit 1"), nil, nil, emitted{api.EventPodFailed}},
		{
			"container ignores the stop signal", pod("p", spec.RestartAlways, "sleep 100000"), nil, ending,
			emitted{api.EventPodStopping, api.EventContainerStopping, api.EventContainerKilled},
		},
		{"daemon restarts", with(nothing), nil, func(w *troubled) { w.leave(); w.start() }, emitted{api.EventPodRecovered}},
		{"host reboots", with(nothing), nil, func(w *troubled) {
			w.crash()
			w.engine.Reboot()
			w.boot = "boot-2"
			w.start()
		}, emitted{api.EventHostRebooted}},
		{"host loses power", with(nothing), nil, func(w *troubled) {
			w.crash()
			w.engine.Reboot()
			w.boot, w.unclean = "boot-2", "boot-1"
			w.start()
		}, emitted{api.EventUncleanShutdown, api.EventHostRebooted}},
		{"file of the engine damaged", with(nothing), nil, func(w *troubled) {
			w.crash()
			w.damaged = []lifecycle.Damage{{File: "meta.db", Error: "bad page"}, {UID: "another pod", File: "state.json"}}
			w.start()
		}, emitted{api.EventEngineDamaged}},
		{"state files unreadable or of a later version", with(nothing), nil, func(w *troubled) {
			w.crash()
			clear(w.disk.files)
			w.disk.bad = []state.Unusable{
				{Name: "p", File: "f", Err: errors.New("broken")}, {Name: "q", File: "f", Err: errors.New("later"), Kept: true},
			}
			w.start()
		}, emitted{api.EventStateLost, api.EventStateUnsupported}},
		{"orphaned containers", with(nothing), nil, func(w *troubled) {
			w.crash()
			clear(w.disk.files)
			w.start()
		}, emitted{api.EventOrphanFound}},
		{
			"sandbox lost, exit of the container not seen", with(nothing),
			func(w *troubled) { w.fail("WaitContainer", lifecycle.Failure{Message: "no"}) }, func(w *troubled) {
				s, _ := w.Pod("p")
				w.engine.LoseSandbox(s.Facts.UID)
			},
			emitted{api.EventSandboxChanged, api.EventContainerSandboxChanged},
		},
		{
			"condition met", with(func(p *spec.Pod, _ *spec.Container) { p.WaitFor = []string{"path:/a"} }), nil,
			func(w *troubled) { w.host.set("path", true) },
			emitted{api.EventPodWaiting, api.EventConditionMet},
		},
		{
			"device unplugged and plugged in",
			with(func(_ *spec.Pod, c *spec.Container) { c.Devices = []spec.Device{{Path: "/dev/a"}} }), nil,
			func(w *troubled) {
				w.engine.SetDevice("/dev/a", false)
				time.Sleep(55 * time.Second) // not when it is tried again
				w.engine.SetDevice("/dev/a", true)
			},
			emitted{api.EventDeviceRemoved, api.EventDeviceAdded},
		},
		{"pod evicted", with(nothing), nil, func(w *troubled) {
			s, _ := w.Pod("p")
			w.engine.Evict(s.Facts.UID, "too much")
		}, emitted{api.EventPodEvicted}},
		{
			"host shuts down", with(nothing), nil,
			func(w *troubled) { w.ShutDown(context.Background(), time.Minute, lifecycle.ByShutdown) },
			emitted{api.EventNodeShutdown},
		},
		{
			"activeDeadlineSeconds exceeded", with(func(p *spec.Pod, _ *spec.Container) { p.ActiveDeadlineSeconds = &minute }), nil, nil,
			emitted{api.EventPodDeadlineExceeded},
		},
		{
			"backoffLimit exceeded", with(func(p *spec.Pod, c *spec.Container) {
				p.RestartPolicy, p.BackoffLimit = spec.RestartOnFailure, new(int32)
				c.Command = []string{"sh", "-c", "sleep 100; exit 1"}
			}), nil, nil,
			emitted{api.EventPodBackoffExceeded},
		},
		{
			"maxRestarts reached", with(func(_ *spec.Pod, c *spec.Container) {
				c.MaxRestarts = new(int32)
				c.Command = []string{"sh", "-c", "sleep 100; exit 1"}
			}), nil, nil,
			emitted{api.EventMaxRestartsReached},
		},
		{"all containers restarted", with(func(_ *spec.Pod, c *spec.Container) {
			c.Command = []string{"sh", "-c", "sleep 100; exit 42"}
			c.RestartPolicy = spec.RestartNever
			c.RestartPolicyRules = []spec.RestartRule{
				{Action: "RestartAllContainers", ExitCodes: &spec.ExitCodes{Operator: "In", Values: []int32{42}}},
			}
		}), nil, nil, emitted{api.EventPodRestarting}},
		{
			"liveness probe fails", with(func(_ *spec.Pod, c *spec.Container) { c.LivenessProbe = execProbe("bad") }), nil, nil,
			emitted{api.EventProbeFailed, api.EventContainerLivenessFailed},
		},
		{
			"startup probe fails", with(func(_ *spec.Pod, c *spec.Container) { c.StartupProbe = execProbe("bad") }), nil, nil,
			emitted{api.EventContainerStartupFailed},
		},
		{"probe cannot run", with(func(_ *spec.Pod, c *spec.Container) { c.ReadinessProbe = execProbe("good") }), func(w *troubled) {
			w.fails.Store(&trouble{"Exec", errors.New("no such container")})
		}, nil, emitted{api.EventProbeErrored}},
		{
			"postStart hook fails",
			with(func(_ *spec.Pod, c *spec.Container) { c.Lifecycle = &spec.Lifecycle{PostStart: execHook("bad")} }), nil, nil,
			emitted{api.EventPostStartFailed, api.EventContainerPostStartFailed},
		},
		{
			"preStop hook fails", with(func(_ *spec.Pod, c *spec.Container) { c.Lifecycle = &spec.Lifecycle{PreStop: execHook("bad")} }),
			nil, ending,
			emitted{api.EventPreStopFailed},
		},
		{"probe redirected, HTTPS hook falls back to HTTP", with(func(p *spec.Pod, c *spec.Container) {
			p.HostNetwork = true
			c.ReadinessProbe = execProbe("")
			c.ReadinessProbe.Exec, c.ReadinessProbe.HTTPGet = nil, get("")
			c.Lifecycle = &spec.Lifecycle{PostStart: &spec.LifecycleHandler{HTTPGet: get("HTTPS")}}
		}), nil, nil, emitted{api.EventHookWarned, api.EventProbeWarned}},
		{"ephemeral container added", with(nothing), nil, func(w *troubled) {
			if err := w.AddEphemeral(w.t.Context(), "p", "", &spec.Container{Name: "d", Image: "image", Command: []string{"true"}},
				"test"); err != nil {
				t.Error(err)
			}
		}, emitted{api.EventContainerAdded}},
		{"image of an ephemeral container cannot be pulled", with(nothing), nil, func(w *troubled) {
			w.fail("PullImage", lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull, Message: "connection refused"})
			c := &spec.Container{Name: "d", Image: "none", ImagePullPolicy: spec.PullAlways, Command: []string{"true"}}
			if err := w.AddEphemeral(w.t.Context(), "p", "", c, "test"); err != nil {
				t.Error(err)
			}
		}, emitted{api.EventImagePullFailed, api.EventContainerGivenUp}},
		{"pod stopped and started", with(nothing), nil, func(w *troubled) {
			w.stop("p")
			w.startAgain("p")
		}, emitted{api.EventPodStartRequested}},
		{"pod and container restarted", with(nothing), nil, func(w *troubled) {
			w.restart("p", "")
			time.Sleep(time.Minute)
			w.restart("p", "c0")
		}, emitted{api.EventPodRestartRequested, api.EventRestartRequested}},
		{"definition changed", pod("p", spec.RestartAlways, "sleep 100000", "sleep 100000", "sleep 100000"), nil, func(w *troubled) {
			to := pod("p", spec.RestartAlways, "sleep 100000", "sleep 200000")
			w.redefine(to)
		}, emitted{api.EventDefinitionChanged, api.EventContainerChanged, api.EventContainerDropped}},
		{"pod resized, after a failure", with(nothing), nil, func(w *troubled) {
			w.fail("ResizePod", lifecycle.Failure{Message: "cannot decrease memory limits"})
			p, _ := w.Pod("p")
			to := *p.Pod
			to.Containers = slices.Clone(to.Containers)
			to.Containers[0].Resources.Requests = spec.ResourceList{spec.ResourceCPU: resource.MustParse("20m")}
			w.redefine(&to)
		}, emitted{api.EventDefinitionChanged, api.EventResizeStarted, api.EventResizeError}},
		{"pod resized", with(nothing), nil, func(w *troubled) {
			p, _ := w.Pod("p")
			to := *p.Pod
			to.Containers = slices.Clone(to.Containers)
			to.Containers[0].Resources.Requests = spec.ResourceList{spec.ResourceCPU: resource.MustParse("20m")}
			w.redefine(&to)
		}, emitted{api.EventDefinitionChanged, api.EventResizeStarted, api.EventResizeCompleted}},
		{"pod rejected", with(nothing), nil, func(w *troubled) {
			if _, err := w.Add(&spec.Pod{Name: "q", SecurityContext: unsafeContext}, state.Owner{}); err == nil {
				t.Error("a forbidden sysctl was accepted")
			}
		}, emitted{api.EventPodRejected}},
		{
			"condition set", with(func(p *spec.Pod, _ *spec.Container) { p.ReadinessGates = []spec.ReadinessGate{{ConditionType: "a"}} }),
			nil, func(w *troubled) {
				if err := w.SetCondition(w.t.Context(), "p", "", "a", lifecycle.SetCondition{Status: "True"}, "test"); err != nil {
					t.Error(err)
				}
			},
			emitted{api.EventConditionChanged},
		},
		{
			"disk full, then not", with(nothing), func(w *troubled) { w.disk.fail(errors.New("full")) },
			func(w *troubled) { w.disk.fail(nil) },
			emitted{api.EventStateNotDurable, api.EventStateDurable},
		},
		{"shim does not respond, then does", with(nothing), nil, func(w *troubled) {
			for _, hung := range []bool{true, false} {
				p, _ := w.Pod("p")
				w.engine.HangShim(p.Facts.UID, hung)
				synctest.Wait()
			}
		}, emitted{api.EventMonitorUnresponsive, api.EventMonitorResponding}},
		{"volumes are not updated, then are", podWithSecret(), nil, func(w *troubled) {
			for _, why := range []string{"tls.key is missing", ""} {
				p, _ := w.Pod("p")
				w.engine.HoldVolumes(p.Facts.UID, why)
				synctest.Wait()
			}
		}, emitted{api.EventVolumesNotUpdated, api.EventVolumesUpdated}},
		{
			"journal fails", with(nothing), func(w *troubled) { w.kept.set(nil, errors.New("full")) }, nil,
			emitted{api.EventJournalNotDurable},
		},
		{"panic in a turn", with(nothing), nil, func(w *troubled) { w.bug.Store(true) }, emitted{api.EventInternalError}},
		failing("StartSandbox", lifecycle.Failure{Message: "no"}, api.EventSandboxFailed),
		failing("StartSandbox", lifecycle.Failure{Reason: lifecycle.ReasonFailedMount}, api.EventVolumeFailed),
		failing("StartSandbox", lifecycle.Failure{Reason: lifecycle.ReasonRuntimeClassUnavailable}, api.EventSandboxFailed),
		failing("StartSandbox", lifecycle.Failure{Kind: lifecycle.FailureUnavailable}, api.EventEngineUnavailable),
		failing("PullImage", lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull}, api.EventImagePullFailed, api.EventImageBackOff,
			api.EventImageError),
		failing("PullImage", lifecycle.Failure{Reason: lifecycle.ReasonErrImageNeverPull}, api.EventImageNeverPull),
		failing("PullImage", lifecycle.Failure{Reason: lifecycle.ReasonInvalidImageName}, api.EventImageInspectFailed),
		failing("PullImage", lifecycle.Failure{Reason: lifecycle.ReasonImageInspectError}, api.EventImageInspectFailed),
		failing("StartContainer", lifecycle.Failure{Kind: lifecycle.FailureNotCreated}, api.EventContainerCreateFailed),
		failing("StartContainer", lifecycle.Failure{Message: "no"}, api.EventContainerStartFailed),
		{"signal cannot be sent", with(nothing), nil, func(w *troubled) {
			w.fail("StopContainer", lifecycle.Failure{Message: "no"})
			w.delete("p")
		}, emitted{api.EventSignalFailed}},
		{"pod cannot be removed", pod("p", spec.RestartNever, "true"), nil, func(w *troubled) {
			w.fail("RemovePod", lifecycle.Failure{Message: "no"})
			if err := w.Stop(w.t.Context(), "p", supervisor.StopOptions{Delete: true}); err != nil {
				t.Error(err)
			}
		}, emitted{api.EventRemovalFailed}},
	}
	seen := map[api.EventKind]bool{}
	for _, c := range scenarios {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for kind := range c.run(t) {
					seen[kind] = true
				}
			})
		})
	}
	seen[api.EventPodQuarantined] = true // needs a crash: TestPodThatCrashesTheDaemonIsQuarantined
	seen[api.EventPodJobEnded] = true    // needs several pods: TestJob
	seen[api.EventPodCollected] = true   // needs limits: TestFinishedPodTTL
	for _, kind := range elsewhere {
		seen[kind] = true
	}
	for _, e := range api.EventEntries() {
		if !seen[e.Kind] {
			t.Errorf("no scenario emits %s", e.Kind)
		}
	}
}

// scenario is the life of a pod that emits events of some kinds.
type scenario struct {
	name  string
	pod   *spec.Pod
	first func(*troubled) // before the pod is added; may be nil
	then  func(*troubled) // 90s after the pod was added; may be nil
	want  emitted
}

// run runs the scenario and returns the kinds that it emitted. It checks that every cause is an earlier event or, for some kinds, missing.
func (c *scenario) run(t *testing.T) map[api.EventKind]bool {
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
	seen, earlier := map[api.EventKind]bool{}, map[uint64]bool{0: true}
	first := []api.EventKind{
		api.EventPodAccepted, api.EventStateLost, api.EventStateUnsupported, api.EventJournalNotDurable, api.EventPodRejected,
		api.EventUncleanShutdown,
	}
	// also the first event of a pod whose state was lost
	later := map[api.EventKind]bool{api.EventPodRecovered: true, api.EventOrphanFound: true}
	for _, e := range events {
		if (e.Cause == 0) != slices.Contains(first, e.Kind) && !later[e.Kind] {
			t.Errorf("the cause of %+v is %d", e, e.Cause)
		}
		if !earlier[e.Cause] {
			t.Errorf("the cause of %+v is not in the ring", e)
		}
		seen[e.Kind], earlier[e.Seq] = true, true
	}
	for _, kind := range c.want {
		if !seen[kind] {
			t.Errorf("%s is not emitted; the events are %v", kind, kinds(events))
		}
	}
	w.fails.Store(nil)
	return seen
}

// TestKubeletReasons compares the event table with the reasons of the kubelet (kubernetes/pkg/kubelet/events). Each reason is in the
// table, or the test has an explanation.
func TestKubeletReasons(t *testing.T) {
	const (
		noCluster = "not supported on a single host"
		noResize  = "the definition is rejected"
	)
	absent := map[string]string{
		"FailedPodSandBoxStatus": "emitted as EngineUnavailable or SandboxChanged",
		"FailedSync":             "each failure has an event of its own", "NetworkNotReady": "the network is created with the sandbox",
		"FailedCreatePodContainer": "emitted as FailedCreatePodSandBox", "ExceededGracePeriod": "emitted as Killing, with the type Warning",
		"Preempting": noCluster, "ResizeDeferred": noResize, "ResizeInfeasible": noResize,
		"DNSConfigForming": "resolver files over the limits are rejected", "MissingClusterDNS": noCluster,
	}
	have := map[string]bool{}
	for _, e := range api.EventEntries() {
		have[e.Reason] = true
	}
	for _, reason := range []string{
		"Pulling", "Pulled", "Created", "Started", "Failed", "Killing", "BackOff", "Unhealthy", "ProbeWarning", "FailedPostStartHook",
		"FailedPreStopHook", "LifecycleHTTPFallback", "InspectFailed", "ErrImageNeverPull", "FailedToRetrieveImagePullSecret",
		"SandboxChanged",
		"FailedCreatePodSandBox", "FailedPodSandBoxStatus", "FailedKillPod", "FailedSync", "NetworkNotReady", "FailedMount",
		"FailedCreatePodContainer", "ExceededGracePeriod", "DeadlineExceeded", "Evicted", "Preempting", "ResizeStarted", "ResizeCompleted",
		"ResizeDeferred", "ResizeInfeasible", "ResizeError", "DNSConfigForming", "MissingClusterDNS",
	} {
		if have[reason] == (absent[reason] != "") {
			t.Errorf("%s: in the table: %v; explanation: %q", reason, have[reason], absent[reason])
		}
	}
}

// TestEventsOfPullFailures expects the reasons and messages of the kubelet for a container that cannot start, with their causes.
func TestEventsOfPullFailures(t *testing.T) {
	refused := lifecycle.Failure{
		Kind: lifecycle.FailureNotCreated, Reason: lifecycle.ReasonCreateConfigError, Message: "configmap \"x\" not found",
	}
	for method, c := range map[string]struct {
		why  lifecycle.Failure
		want []string
	}{
		"registry refuses": {lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull, Message: "refused"}, []string{
			`Normal Pulling: Pulling image "localhost/i:1"`,
			`Warning Failed: Failed to pull image "localhost/i:1": refused`,
			"Warning Failed: Error: ErrImagePull",
			`Normal BackOff: Back-off pulling image "localhost/i:1" for 10s`,
			"Warning Failed: Error: ImagePullBackOff",
		}},
		"image not present, pull policy Never": {lifecycle.Failure{Reason: lifecycle.ReasonErrImageNeverPull, Message: "no"}, []string{
			`Warning ErrImageNeverPull: Container image "localhost/i:1" is not present with pull policy of Never`,
			"Warning Failed: Error: ErrImageNeverPull",
		}},
		"config map missing": {refused, []string{
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
					if e.Kind == api.EventImageBackOff &&
						events[slices.IndexFunc(events,
							func(o event.Event) bool { return o.Seq == e.Cause })].Kind != api.EventImagePullFailed {
						t.Errorf("the cause of the back-off is %d", e.Cause)
					}
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestStopAfterCompletion expects that stopping a completed pod changes nothing.
func TestStopAfterCompletion(t *testing.T) {
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
			t.Errorf("pod (-before +after the stop):\n%s", diff)
		}
		if err := m.Stop(t.Context(), "p", supervisor.StopOptions{By: "a test", Delete: true}); err != nil {
			t.Fatal(err)
		}
		m.untilRemoved("p")
	})
}

// TestSandboxLost expects in the event of a lost sandbox whether the sandbox is re-created.
func TestSandboxLost(t *testing.T) {
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
			i := slices.IndexFunc(events, func(e event.Event) bool { return e.Kind == api.EventSandboxChanged })
			if i < 0 && policy == spec.RestartNever {
				return // the exit of the container was reported first, and completed the pod
			}
			if i < 0 || !strings.HasPrefix(events[i].Message, "Pod sandbox changed, "+then+": ") {
				t.Errorf("%s: want an event with %q; the events are %+v", policy, then, events)
			}
		})
	}
}
