package lifecycle_test

import (
	"reflect"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Helpers of the tables in this package. A history is a list of events; every event happens at the instant of the previous
// [tick].

// at returns the instant a number of seconds after the boot.
func at(seconds float64) lifecycle.Instant {
	d := time.Duration(seconds * float64(time.Second))
	return lifecycle.Instant{Boot: "1", Mono: d, Wall: time.Unix(1_000_000_000, 0).UTC().Add(d)}
}

// tick sets the time of the following events in a history, in seconds after the boot.
type tick float64

// history is a list of ticks, events, actions (which are issued), and histories.
type history []any

// fold returns the facts of a history.
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

// happened returns an event at an instant.
type happened func(lifecycle.Instant) lifecycle.Event

func run(name string, n int) lifecycle.Ref {
	return lifecycle.Ref{Container: name, Round: 1, Attempt: n}
}

// up is the first sandbox, ready.
func up() history {
	return history{lifecycle.StartSandbox{Sandbox: 1, Round: 1}, happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.SandboxStarted{Sandbox: 1, IPs: []string{"10.0.0.2", "fd00::2"}, At: t}
	})}
}

func sandboxLost(sandbox int) happened {
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

// issued is a run that was requested with the usual restart count.
func issued(name string, n int) history {
	return history{lifecycle.StartContainer{Ref: run(name, n), Sandbox: 1, Restarts: n - 1, Backoff: n - 1}}
}

func started(name string, n int) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerStarted{Ref: run(name, n), ID: name + "-id", Image: name + ":1", ImageID: "sha256:" + name, At: t}
	}
}

func running(name string, n int) history {
	return history{pulled(name, n), issued(name, n), started(name, n)}
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

// ran is a run that started and exited at the same instant.
func ran(name string, n, code int) history { return history{running(name, n), exited(name, n, code)} }

func failed(a lifecycle.Action, f lifecycle.Failure) happened {
	return func(t lifecycle.Instant) lifecycle.Event { return lifecycle.ActionFailed{Action: a, Failure: f, At: t} }
}

// unavailable is the failure of an unavailable engine.
var unavailable = lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "unavailable"}

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

func removeContainer(name string, n int) lifecycle.RemoveContainer {
	return lifecycle.RemoveContainer{Ref: run(name, n)}
}

func postStart(name string, n int) lifecycle.RunPostStart {
	return lifecycle.RunPostStart{Ref: run(name, n)}
}

func preStop(name string, n int, limit time.Duration, why lifecycle.Reason) lifecycle.RunPreStop {
	return lifecycle.RunPreStop{Ref: run(name, n), Limit: limit, Reason: why}
}

// waitForTurn is a sidecar that waits for other containers to stop.
func waitForTurn(name string, limit time.Duration, why lifecycle.Reason) lifecycle.WaitForTurn {
	return lifecycle.WaitForTurn{Ref: run(name, 1), Limit: limit, Reason: why}
}

func cancel(name string, n int, hook lifecycle.HookKind) lifecycle.CancelHook {
	return lifecycle.CancelHook{Ref: run(name, n), Hook: hook}
}

// hookDone is the success of a hook.
func hookDone(name string, n int, hook lifecycle.HookKind) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.HookFinished{Ref: run(name, n), Hook: hook, At: t}
	}
}

// Short names of probe kinds and verdicts.
const (
	startup, liveness, readiness = lifecycle.ProbeStartup, lifecycle.ProbeLiveness, lifecycle.ProbeReadiness
	good, bad                    = lifecycle.VerdictSuccess, lifecycle.VerdictFailure
)

func probed(name string, n int, kind lifecycle.ProbeKind, v lifecycle.Verdict) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ProbeChanged{
			ProbeRef: lifecycle.ProbeRef{Ref: run(name, n), Kind: kind}, Verdict: v, Message: "failed", Count: 3, At: t,
		}
	}
}

func failPod(grace time.Duration) lifecycle.FailPod {
	return lifecycle.FailPod{
		Reason: lifecycle.ReasonDeadlineExceeded, Message: "Pod was active on the node longer than the specified deadline", Grace: grace,
	}
}

var (
	engineUnavailable happened = func(t lifecycle.Instant) lifecycle.Event { return lifecycle.EngineUnavailable{At: t} }
	engineAvailable   happened = func(t lifecycle.Instant) lifecycle.Event { return lifecycle.EngineAvailable{At: t} }
)

// setCondition sets a condition of a readiness gate.
func setCondition(kind lifecycle.ConditionType, status string) happened {
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

// podOf returns a pod. Containers whose names begin with "init" are init containers; with "side", sidecars.
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

// with changes the first app container of a pod and returns the pod.
func with(pod *spec.Pod, change ...func(*spec.Container)) *spec.Pod {
	for _, c := range change {
		c(&pod.Containers[0])
	}
	return pod
}

// within changes the named container and returns the pod.
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

// own sets a container's own restart policy and rules.
func own(policy spec.RestartPolicy, rules ...spec.RestartRule) func(*spec.Container) {
	return func(c *spec.Container) { c.RestartPolicy, c.RestartPolicyRules = policy, rules }
}

func rule(action, operator string, codes ...int32) spec.RestartRule {
	return spec.RestartRule{Action: action, ExitCodes: &spec.ExitCodes{Operator: operator, Values: codes}}
}

// probe sets a probe with a period of 10 s, failureThreshold 3 and successThreshold 1.
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

// ownGrace sets a probe's own grace period.
func ownGrace(seconds spec.Seconds) func(*spec.Probe) {
	return func(p *spec.Probe) { p.TerminationGracePeriodSeconds = &seconds }
}

// hook sets a hook.
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

// visitInstants calls do for every instant in the facts, found by reflection.
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
