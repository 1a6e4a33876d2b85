package lifecycle_test

import (
	"reflect"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// The words in which the tables of this package are written. A history is a list of events; every event is at the instant
// of the nearest [tick] before it.

// at is the instant a number of seconds after the boot.
func at(seconds float64) lifecycle.Instant {
	d := time.Duration(seconds * float64(time.Second))
	return lifecycle.Instant{Boot: "1", Mono: d, Wall: time.Unix(1_000_000_000, 0).UTC().Add(d)}
}

// tick is the time that a history has come to, in seconds after the boot.
type tick float64

// history is a mixture of ticks, events, actions (issued), and lists of these.
type history []any

// fold makes facts of a history.
func fold(h history) lifecycle.Facts {
	facts := lifecycle.Facts{UID: "uid", Accepted: at(1)}
	now := at(1)
	var add func(history)
	add = func(h history) {
		for _, item := range h {
			switch item := item.(type) {
			case tick:
				now = at(float64(item))
			case history:
				add(item)
			case lifecycle.Action:
				facts = facts.Apply(lifecycle.Issued{Action: item, At: now})
			case happened:
				facts = facts.Apply(item(now))
			}
		}
	}
	add(h)
	return facts
}

// happened makes an event of a function of its instant.
type happened func(lifecycle.Instant) lifecycle.Event

func run(name string, n int) lifecycle.Ref {
	return lifecycle.Ref{Container: name, Round: 1, Attempt: n}
}

// up is a ready first sandbox.
func up() history {
	return history{lifecycle.StartSandbox{Sandbox: 1, Round: 1}, happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.SandboxStarted{Sandbox: 1, IPs: []string{"10.0.0.2", "fd00::2"}, At: t}
	})}
}

func lost(sandbox int) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.SandboxLost{Sandbox: sandbox, Message: "killed", At: t}
	}
}

func sandboxRemoved(sandbox int) history {
	return history{lifecycle.RemoveSandbox{Sandbox: sandbox}, happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.SandboxRemoved{Sandbox: sandbox, At: t}
	})}
}

func pulled(name string, n int) history {
	return history{lifecycle.PullImage{Container: name, For: n, Level: 1}, happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ImagePulled{Container: name, For: n, Pulled: true, At: t}
	})}
}

func pullFailed(name string, n, level int, reason lifecycle.Reason) history {
	a := lifecycle.PullImage{Container: name, For: n, Level: level}
	return history{a, failed(a, lifecycle.Failure{Reason: reason, Message: "no"})}
}

// asked is a run that was asked for, with the restart count that is usual for it.
func asked(name string, n int) history {
	return history{lifecycle.StartContainer{Ref: run(name, n), Sandbox: 1, Restarts: n - 1, Backoff: n - 1}}
}

func started(name string, n int) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerStarted{Ref: run(name, n), ID: name + "-id", Image: name + ":1", ImageID: "sha256:" + name, At: t}
	}
}

func running(name string, n int) history {
	return history{pulled(name, n), asked(name, n), started(name, n)}
}

func exited(name string, n, code int) happened {
	reason := lifecycle.ReasonCompleted
	if code != 0 {
		reason = lifecycle.ReasonError
	}
	return exitedFor(name, n, code, reason)
}

func exitedFor(name string, n, code int, reason lifecycle.Reason) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerExited{Ref: run(name, n), Exit: lifecycle.Exit{Code: code, Reason: reason}, At: t}
	}
}

// ran is a run from beginning to end at one instant.
func ran(name string, n, code int) history { return history{running(name, n), exited(name, n, code)} }

func failed(a lifecycle.Action, f lifecycle.Failure) happened {
	return func(t lifecycle.Instant) lifecycle.Event { return lifecycle.ActionFailed{Action: a, Failure: f, At: t} }
}

// away is the failure of an engine that is not there.
var away = lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "away"}

func failing(a lifecycle.Action, f lifecycle.Failure) history { return history{a, failed(a, f)} }

func sent(name string, n int, kill bool) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.SignalSent{Ref: run(name, n), Kill: kill, At: t}
	}
}

func stop(name string, n int, grace time.Duration) lifecycle.StopContainer {
	return lifecycle.StopContainer{Ref: run(name, n), Grace: grace, Reason: lifecycle.ReasonStopped}
}

func kill(name string, n int) lifecycle.KillContainer {
	return lifecycle.KillContainer{Ref: run(name, n)}
}

func reap(name string, n int) lifecycle.RemoveContainer {
	return lifecycle.RemoveContainer{Ref: run(name, n)}
}

func postStart(name string, n int) lifecycle.RunPostStart {
	return lifecycle.RunPostStart{Ref: run(name, n)}
}

func preStop(name string, n int, limit time.Duration, why lifecycle.Reason) lifecycle.RunPreStop {
	return lifecycle.RunPreStop{Ref: run(name, n), Limit: limit, Reason: why}
}

// await is a sidecar that waits for its turn.
func await(name string, limit time.Duration, why lifecycle.Reason) lifecycle.WaitForTurn {
	return lifecycle.WaitForTurn{Ref: run(name, 1), Limit: limit, Reason: why}
}

func cancel(name string, n int, hook lifecycle.HookKind) lifecycle.CancelHook {
	return lifecycle.CancelHook{Ref: run(name, n), Hook: hook}
}

// hooked is the good end of a hook.
func hooked(name string, n int, hook lifecycle.HookKind) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.HookFinished{Ref: run(name, n), Hook: hook, At: t}
	}
}

// Short names of the probes' kinds and verdicts.
const (
	startup, liveness, readiness = lifecycle.ProbeStartup, lifecycle.ProbeLiveness, lifecycle.ProbeReadiness
	good, bad                    = lifecycle.VerdictSuccess, lifecycle.VerdictFailure
)

func probed(name string, n int, kind lifecycle.ProbeKind, v lifecycle.Verdict) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ProbeChanged{
			ProbeRef: lifecycle.ProbeRef{Ref: run(name, n), Kind: kind}, Verdict: v, Message: "no good", Count: 3, At: t,
		}
	}
}

func endPod(grace time.Duration) lifecycle.FailPod {
	return lifecycle.FailPod{
		Reason: lifecycle.ReasonDeadlineExceeded, Message: "Pod was active on the node longer than the specified deadline", Grace: grace,
	}
}

var (
	engineLost  happened = func(t lifecycle.Instant) lifecycle.Event { return lifecycle.EngineUnavailable{At: t} }
	engineFound happened = func(t lifecycle.Instant) lifecycle.Event { return lifecycle.EngineAvailable{At: t} }
)

// gate sets a condition that a readiness gate waits for.
func gate(kind lifecycle.ConditionType, status string) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ConditionSet{Type: kind, Status: status, Reason: "Why", Message: "because", At: t}
	}
}

func stopped(grace time.Duration) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.StopRequested{Grace: lifecycle.Grace{Period: grace}, By: "a test", At: t}
	}
}

func deleted(grace time.Duration) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.StopRequested{Grace: lifecycle.Grace{Period: grace}, Delete: true, By: "a test", At: t}
	}
}

var forced happened = func(t lifecycle.Instant) lifecycle.Event {
	return lifecycle.StopRequested{Grace: lifecycle.Grace{Force: true}, By: "a test", At: t}
}

// podOf makes a pod: containers whose names begin with "init" are init containers, and with "side" sidecars.
func podOf(policy spec.RestartPolicy, names ...string) *spec.Pod {
	pod := &spec.Pod{Name: "p", RestartPolicy: policy, TerminationGracePeriodSeconds: 30}
	for _, name := range names {
		c := spec.Container{Name: name, Image: "localhost/" + name}
		switch name[:min(4, len(name))] {
		case "side":
			c.RestartPolicy = spec.RestartAlways
			pod.InitContainers = append(pod.InitContainers, c)
		case "init":
			pod.InitContainers = append(pod.InitContainers, c)
		default:
			pod.Containers = append(pod.Containers, c)
		}
	}
	return pod
}

// with changes the first app container of a pod, and returns the pod.
func with(pod *spec.Pod, change ...func(*spec.Container)) *spec.Pod {
	for _, c := range change {
		c(&pod.Containers[0])
	}
	return pod
}

// within changes the container of a name, and returns the pod.
func within(pod *spec.Pod, name string, change ...func(*spec.Container)) *spec.Pod {
	for _, list := range [][]spec.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			for _, c := range change {
				if list[i].Name == name {
					c(&list[i])
				}
			}
		}
	}
	return pod
}

// own gives a container a restart policy of its own, and rules.
func own(policy spec.RestartPolicy, rules ...spec.RestartRule) func(*spec.Container) {
	return func(c *spec.Container) { c.RestartPolicy, c.RestartPolicyRules = policy, rules }
}

func rule(action, operator string, codes ...int32) spec.RestartRule {
	return spec.RestartRule{Action: action, ExitCodes: &spec.ExitCodes{Operator: operator, Values: codes}}
}

// probe gives a container a probe: every 10 s, three failures, one success.
func probe(kind lifecycle.ProbeKind, change ...func(*spec.Probe)) func(*spec.Container) {
	p := &spec.Probe{PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}
	for _, c := range change {
		c(p)
	}
	return func(c *spec.Container) {
		switch kind {
		case startup:
			c.StartupProbe = p
		case liveness:
			c.LivenessProbe = p
		case readiness:
			c.ReadinessProbe = p
		}
	}
}

// ownGrace is a probe's own grace period.
func ownGrace(seconds spec.Seconds) func(*spec.Probe) {
	return func(p *spec.Probe) { p.TerminationGracePeriodSeconds = &seconds }
}

// hook gives a container a hook.
func hook(kind lifecycle.HookKind) func(*spec.Container) {
	return func(c *spec.Container) {
		if c.Lifecycle == nil {
			c.Lifecycle = &spec.Lifecycle{}
		}
		handler := &spec.LifecycleHandler{Sleep: &spec.SleepAction{}}
		if kind == lifecycle.PreStop {
			c.Lifecycle.PreStop = handler
		} else {
			c.Lifecycle.PostStart = handler
		}
	}
}

// visitInstants calls do with every instant that facts hold, found by reflection.
func visitInstants(f lifecycle.Facts, do func(path string, i lifecycle.Instant)) {
	var visit func(path string, v reflect.Value)
	visit = func(path string, v reflect.Value) {
		if i, ok := reflect.TypeAssert[lifecycle.Instant](v); ok {
			do(path, i)
			return
		}
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				visit(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case reflect.Map:
			for _, key := range v.MapKeys() {
				visit(path+"."+key.String(), v.MapIndex(key))
			}
		default:
		}
	}
	visit("facts", reflect.ValueOf(f))
}
