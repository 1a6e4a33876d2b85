package lifecycle_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/lifecycle/lifecycletest"
)

// TestWorlds runs random pods in random worlds: events are late or duplicated, the engine is unavailable or does not answer, the
// supervisor crashes, the host reboots, sandboxes are lost, pods are stopped and deleted. When the world has become idle, the
// pod must be in a final or a stable state.
func TestWorlds(t *testing.T) { rapid.Check(t, world) }

// FuzzWorlds is [TestWorlds] for go test -fuzz. Use -fuzzminimizetime 1x, so that no time is spent on minimizing worlds.
//
// It leaves out long lives: go test ends an input that takes 10 seconds, and one of 4,000 steps takes that long on a busy host.
func FuzzWorlds(f *testing.F) {
	seed(f)
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		steps := 0
		observedWorld(t, func(lifecycletest.Step) {
			if steps++; steps > fuzzedSteps {
				t.Skip("a long life")
			}
		})
	}))
}

// seed adds inputs to the fuzzer that are long enough for the whole life of a pod.
func seed(f *testing.F) {
	for n := range 8 {
		f.Add(input(n))
	}
}

// input returns random bytes for a life of a pod.
func input(n int) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 5))
	data := make([]byte, 1<<15)
	for i := range data {
		data[i] = byte(r.IntN(256))
	}
	return data
}

const (
	faultsEnd  = 5 * time.Minute
	longEnough = 3 * time.Hour

	fuzzedSteps = 500
)

func world(t *rapid.T) { observedWorld(t, func(lifecycletest.Step) {}) }

func observedWorld(t *rapid.T, observe func(lifecycletest.Step)) {
	pod := drawPod(t)
	w := lifecycletest.New(pod, drawScript(t, pod))
	v := invariants{}
	w.Observe = func(s lifecycletest.Step) {
		if err := v.step(s); err != nil {
			w.Violation(err)
		}
		observe(s)
	}
	injectFaults(t, w)
	if rapid.Bool().Draw(t, "trial") {
		at, within, minReady := drawDuration(t, faultsEnd), drawDuration(t, time.Minute), drawDuration(t, 20*time.Second)
		rollsBack := rapid.IntRange(0, 3).Draw(t, "rollsBack") > 0
		w.At(at, func() { w.BeginTrial(within, minReady, rollsBack) })
		for retry := range 5 { // the supervisor may be down
			w.At(faultsEnd+time.Duration(retry)*time.Minute, w.KeepTrial)
		}
	}
	for range rapid.IntRange(0, 6).Draw(t, "events") {
		at := drawDuration(t, faultsEnd)
		do := drawFault(t, w)
		w.At(at, do)
	}
	w.At(faultsEnd, func() { w.SetUnavailable(false) })
	w.At(faultsEnd, func() { w.SetDevice(stick, true) })
	for _, condition := range pod.WaitFor {
		w.At(faultsEnd, func() { w.SetCondition(condition, true) })
	}
	if err := w.Run(longEnough); err != nil {
		t.Fatal(err)
	}
	if err := checkIdle(w, v.status); err != nil {
		t.Fatalf("after %v: %v\n%s", longEnough, err, text(w.Facts))
	}
}

// injectFaults makes the world unreliable for a while.
func injectFaults(t *rapid.T, w *lifecycletest.World) {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	begin := w.Now()
	bad := func(percent int) bool { return w.Now().Wall.Sub(begin.Wall) < faultsEnd && r.IntN(100) < percent }
	late, twice, unavailable := drawPercent(t, "late"), drawPercent(t, "twice"), drawPercent(t, "unavailable")
	w.LosesOutcomes = rapid.Bool().Draw(t, "losesOutcomes")
	some := func() time.Duration { return time.Duration(r.Int64N(int64(3 * time.Second))) }
	w.Delay = func() time.Duration {
		if bad(late) {
			return some()
		}
		return 0
	}
	w.Duplicate = func() (time.Duration, bool) { return 10 * some(), bad(twice) }
	w.Fault = func(lifecycle.Action) lifecycletest.Fault {
		if bad(unavailable) {
			return lifecycletest.Fault(r.IntN(3))
		}
		return lifecycletest.NoFault
	}
}

// checkIdle returns an error if the pod is not stable in a world that has been idle for a long time.
func checkIdle(w *lifecycletest.World, s lifecycle.Status) error {
	stopped := !w.Facts.Stop.Requested.IsZero()
	d := lifecycle.Decide(w.Spec, w.Facts, w.Now())
	switch {
	case len(d.Actions) > 0 || !d.Wake.IsZero():
		return fmt.Errorf("decision of an idle world: %+v", d)
	case !w.Removed() && len(w.Facts.Unresolved()) > 0:
		return fmt.Errorf("unresolved: %#v", w.Facts.Unresolved())
	case w.Removed() != w.Facts.Stop.Delete:
		return fmt.Errorf("pod removed is %v", w.Removed())
	case stopped && !s.Phase.Terminal():
		return fmt.Errorf("stopped pod is %s", s.Phase)
	case s.Phase.Terminal() && (w.Processes() > 0 || w.Sandboxes() > 0 || !w.Facts.Idle()):
		return fmt.Errorf("%d processes and %d sandboxes of a pod in phase %s", w.Processes(), w.Sandboxes(), s.Phase)
	case !s.Phase.Terminal() && (s.Phase != lifecycle.PhaseRunning || w.Processes() == 0):
		return fmt.Errorf("%d processes of a pod in phase %s", w.Processes(), s.Phase)
	}
	return nil
}

func drawPercent(t *rapid.T, label string) int {
	return rapid.SampledFrom([]int{0, 0, 5, 30}).Draw(t, label)
}

func drawDuration(t *rapid.T, limit time.Duration) time.Duration {
	return time.Duration(rapid.Int64Range(0, int64(limit/(100*time.Millisecond))).Draw(t, "100ms")) * 100 * time.Millisecond
}

func drawPod(t *rapid.T) *spec.Pod {
	pod := &spec.Pod{
		Name: "p",
		RestartPolicy: rapid.SampledFrom([]spec.RestartPolicy{spec.RestartAlways, spec.RestartOnFailure, spec.RestartNever}).Draw(t,
			"policy"),
		TerminationGracePeriodSeconds: spec.Seconds(rapid.IntRange(0, 5).Draw(t, "grace")),
	}
	if rapid.Bool().Draw(t, "backoff") {
		pod.RestartBackoff = &spec.Backoff{InitialSeconds: 1, MaxSeconds: 4, Factor: 1.5, ResetAfterSeconds: 10}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "inits") {
		c := spec.Container{Name: fmt.Sprintf("init-%d", i), Image: "i"}
		c.RestartPolicy = rapid.SampledFrom([]spec.RestartPolicy{
			"", spec.RestartAlways, spec.RestartAlways, spec.RestartOnFailure, spec.RestartNever,
		}).Draw(t,
			"own policy")
		if c.IsSidecar() {
			drawExtras(t, &c)
		}
		drawRules(t, &c)
		pod.InitContainers = append(pod.InitContainers, c)
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "apps") {
		pod.Containers = append(pod.Containers, spec.Container{Name: fmt.Sprintf("app-%d", i), Image: "i"})
		drawExtras(t, &pod.Containers[i])
		pod.Containers[i].RestartPolicy = rapid.SampledFrom([]spec.RestartPolicy{
			"", "", spec.RestartAlways, spec.RestartOnFailure, spec.RestartNever,
		}).Draw(t,
			"own policy")
		drawRules(t, &pod.Containers[i])
		if rapid.IntRange(0, 2).Draw(t, "limited") == 0 {
			limit := rapid.Int32Range(1, 3).Draw(t, "maxRestarts")
			pod.Containers[i].MaxRestarts = &limit
		}
	}
	for c := range pod.EveryContainer() {
		drawDevices(t, c)
	}
	if rapid.Bool().Draw(t, "waitFor") {
		pod.WaitFor = waitConditions[:rapid.IntRange(1, len(waitConditions)).Draw(t, "conditions")]
	}
	if rapid.IntRange(0, 3).Draw(t, "unhealthy") == 0 {
		pod.OnUnhealthy = rapid.SampledFrom([]spec.UnhealthyStep{
			spec.UnhealthyRestart, spec.UnhealthyReplace, spec.UnhealthyReboot,
		}).Draw(t,
			"onUnhealthy")
		// Longer than a start until the first success of a probe: a shorter one restarts the pod forever.
		pod.UnhealthyAfterSeconds = spec.Seconds(rapid.IntRange(120, 300).Draw(t, "unhealthyAfterSeconds"))
	}
	if pod.RestartPolicy != spec.RestartAlways && rapid.Bool().Draw(t, "job") {
		limit := rapid.Int32Range(0, 3).Draw(t, "backoffLimit")
		pod.BackoffLimit = &limit
		retryAll(pod)
	}
	if rapid.IntRange(0, 5).Draw(t, "deadline") == 0 {
		limit := spec.Seconds(rapid.IntRange(1, 300).Draw(t, "activeDeadlineSeconds"))
		pod.ActiveDeadlineSeconds = &limit
	}
	return pod
}

// retryAll adds the rule by which a pod that is retried restarts all containers, as the pod file gets it.
func retryAll(pod *spec.Pod) {
	for _, list := range [][]spec.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			if pod.Retries() && list[i].RestartPolicy == "" {
				own(spec.RestartNever, rule("RestartAllContainers", "NotIn", 0))(&list[i])
			}
		}
	}
}

// stick is a device of containers.
const stick = "/dev/stick"

// drawDevices adds a device to a container.
func drawDevices(t *rapid.T, c *spec.Container) {
	if rapid.IntRange(0, 2).Draw(t, "device") == 0 {
		c.Devices = []spec.Device{{
			Path: stick, Optional: rapid.Bool().Draw(t, "optional"),
			OnRemove: rapid.SampledFrom([]spec.DeviceRemoval{"", spec.DeviceRestart, spec.DeviceKeep}).Draw(t, "onRemove"),
		}}
	}
}

// waitConditions are conditions that pods wait for.
var waitConditions = []string{dbReady, disk}

// drawRules adds restart rules to a container that has a restart policy of its own.
func drawRules(t *rapid.T, c *spec.Container) {
	if c.RestartPolicy == "" || rapid.IntRange(0, 2).Draw(t, "rules") > 0 {
		return
	}
	c.RestartPolicyRules = []spec.RestartRule{{
		Action:    rapid.SampledFrom([]string{"Restart", "RestartAllContainers"}).Draw(t, "action"),
		ExitCodes: &spec.ExitCodes{Operator: "In", Values: []int32{42}},
	}}
}

// drawExtras adds probes and hooks to a container.
func drawExtras(t *rapid.T, c *spec.Container) {
	for _, kind := range kinds {
		if rapid.IntRange(0, 3).Draw(t, "probe") > 0 {
			continue
		}
		p := &spec.Probe{
			PeriodSeconds:       spec.Seconds(rapid.IntRange(5, 30).Draw(t, "period")),
			InitialDelaySeconds: spec.Seconds(rapid.IntRange(0, 10).Draw(t, "delay")),
			SuccessThreshold:    1, FailureThreshold: int32(rapid.IntRange(1, 3).Draw(t, "failures")),
		}
		if kind != readiness && rapid.Bool().Draw(t, "own grace") {
			ownGrace(spec.Seconds(rapid.IntRange(1, 40).Draw(t, "grace")))(p)
		}
		probe(kind, func(own *spec.Probe) { *own = *p })(c)
	}
	for _, kind := range []lifecycle.HookKind{lifecycle.PostStart, lifecycle.PreStop} {
		if rapid.IntRange(0, 3).Draw(t, "hook") == 0 {
			hook(kind)(c)
		}
	}
}

var kinds = []lifecycle.ProbeKind{startup, liveness, readiness}

func drawScript(t *rapid.T, pod *spec.Pod) lifecycletest.Script {
	s := lifecycletest.Script{Pulls: map[string][]lifecycletest.Start{}, Runs: map[string][]lifecycletest.Run{}}
	for range rapid.IntRange(0, 2).Draw(t, "sandboxes") {
		s.Sandboxes = append(s.Sandboxes, drawStart(t, "", lifecycle.FailureRetry, lifecycle.FailureUnavailable))
	}
	for _, list := range [][]spec.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			name := list[i].Name
			for range rapid.IntRange(0, 3).Draw(t, "pulls") {
				reason := rapid.SampledFrom([]lifecycle.Reason{"", lifecycle.ReasonErrImagePull, lifecycle.ReasonErrImageNeverPull}).Draw(t,
					"reason")
				s.Pulls[name] = append(s.Pulls[name], drawStart(t, reason, lifecycle.FailureRetry, lifecycle.FailureUnavailable))
			}
			for range rapid.IntRange(0, 4).Draw(t, "runs") {
				s.Runs[name] = append(s.Runs[name], drawRun(t))
			}
		}
	}
	if limited(pod) && rapid.Bool().Draw(t, "never starts") {
		s.Then = map[string]lifecycletest.Run{"app-0": {Start: lifecycletest.Start{Failure: &lifecycle.Failure{Message: "no"}}}}
	}
	return s
}

// limited reports whether a container of the pod cannot fail without end.
func limited(pod *spec.Pod) bool {
	return pod.BackoffLimit != nil && pod.OnUnhealthy == "" // a restart of the pod begins at 0 failures
}

func drawStart(t *rapid.T, reason lifecycle.Reason, kinds ...lifecycle.FailureKind) lifecycletest.Start {
	s := lifecycletest.Start{Takes: drawDuration(t, 5*time.Second)}
	if rapid.IntRange(0, 2).Draw(t, "fails") == 0 {
		s.Failure = &lifecycle.Failure{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Reason: reason, Message: "no"}
	}
	return s
}

func drawRun(t *rapid.T) lifecycletest.Run {
	r := lifecycletest.Run{
		Start:        drawStart(t, "", lifecycle.FailureRetry, lifecycle.FailureNotCreated),
		Lasts:        drawDuration(t, 20*time.Second),
		Exit:         lifecycle.Exit{Code: rapid.SampledFrom([]int{0, 0, 1, 42, 137}).Draw(t, "code")},
		IgnoresStop:  rapid.Bool().Draw(t, "ignoresStop"),
		StopTakes:    drawDuration(t, 3*time.Second),
		IgnoresKills: rapid.IntRange(0, 1).Draw(t, "wedged"),
	}
	r.PostStart = drawStart(t, "", lifecycle.FailureRetry, lifecycle.FailureUnavailable)
	r.PreStop = drawStart(t, "", lifecycle.FailureRetry, lifecycle.FailureUnavailable)
	r.Probes = map[lifecycle.ProbeKind][]lifecycle.ProbeOutcome{}
	for _, kind := range kinds {
		r.Probes[kind] = rapid.SliceOfN(rapid.SampledFrom([]lifecycle.ProbeOutcome{
			lifecycle.ProbeSuccess, lifecycle.ProbeFailure, lifecycle.ProbeFailure, lifecycle.ProbeError, lifecycle.ProbeWarning,
		}), 0, 6).Draw(t, string(kind))
	}
	switch rapid.IntRange(0, 9).Draw(t, "special") {
	case 0:
		r.Exit.Reason = lifecycle.ReasonOOMKilled
	case 1:
		r.Lasts = 11 * time.Minute
	}
	return r
}

func drawFault(t *rapid.T, w *lifecycletest.World) func() {
	off := drawDuration(t, 20*time.Second)
	flag := rapid.Bool().Draw(t, "flag")
	number, change := rapid.IntRange(0, 5).Draw(t, "number"), rapid.SampledFrom(changes).Draw(t, "change")
	do := map[string]func(){
		"stop":         func() { w.Stop(nil, flag) },
		"grace":        func() { w.Stop(&off, flag) },
		"loseSandbox":  func() { w.LoseSandbox(flag) },
		"crash":        func() { w.Crash(off) },
		"reboot":       func() { w.Reboot(off) },
		"unavailable":  func() { w.SetUnavailable(flag) },
		"jumpClock":    func() { w.JumpClock(off - 10*time.Second) },
		"addEphemeral": func() { w.AddEphemeral(fmt.Sprintf("debug-%d", off)) },
		"restart":      func() { w.Restart() },
		"collect":      func() { w.Collect() },
		"container":    func() { w.RestartContainer(containerOf(w.Spec, number)) },
		"redefine": func() {
			to, restarted := redefined(w.Spec, change, number)
			w.Redefine(to, flag, restarted...)
		},
		"condition": func() { w.SetCondition(waitConditions[int(off/(100*time.Millisecond))%2], flag) },
		"device":    func() { w.SetDevice(stick, flag) },
		"exit":      func() { w.Exit("app-0", lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonError}) },
	}
	return do[rapid.SampledFrom([]string{
		"loseSandbox", "crash", "reboot", "unavailable", "jumpClock", "exit", "addEphemeral", "stop", "grace", "restart", "collect",
		"container", "redefine", "redefine", "condition", "condition",
		"device", "device",
	}).Draw(t,
		"what")]
}
