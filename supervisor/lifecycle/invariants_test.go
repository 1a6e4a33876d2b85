package lifecycle_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/lifecycle/lifecycletest"
)

// invariants looks at every step of a pod's life. The list is that of docs/design/lifecycle.md.
type invariants struct {
	pod    *spec.Pod
	status lifecycle.Status // the newest
	life   int
	err    error
}

func (v *invariants) wrong(format string, args ...any) {
	v.err = errors.Join(v.err, fmt.Errorf(format, args...))
}

// step checks one step and returns what is wrong with it.
func (v *invariants) step(s lifecycletest.Step) error {
	v.err = nil
	switch e := s.Event.(type) {
	case nil:
		v.decision(s)
		v.statusOf(s)
	case lifecycle.Issued:
		v.issued(s.Before, e.Action)
	}
	v.exact(s.After)
	if v.err != nil {
		return fmt.Errorf("%v: %#v: %w", s.Since, s.Event, v.err)
	}
	return nil
}

// decision: the same arguments give the same answer and are left as they were, and no wake is in the past or now.
func (v *invariants) decision(s lifecycletest.Step) {
	before := text(s.Before) + text(v.pod)
	again := lifecycle.Decide(v.pod, s.Before, s.Now)
	if !reflect.DeepEqual(again, s.Decision) {
		v.wrong("decided %v, and then %v", s.Decision, again)
	}
	if after := text(s.Before) + text(v.pod); after != before {
		v.wrong("Decide changed its arguments")
	}
	if w := s.Decision.Wake; !w.IsZero() && !s.Now.Before(w) {
		v.wrong("wake at %v, now is %v", w, s.Now)
	}
	seen := map[lifecycle.Action]bool{}
	for _, a := range s.Decision.Actions {
		if seen[a] {
			v.wrong("%#v twice in one decision", a)
		}
		seen[a] = true
	}
}

// issued: what may be asked for in the light of the facts.
func (v *invariants) issued(f lifecycle.Facts, a lifecycle.Action) {
	stopping := !f.Stop.Asked.IsZero()
	switch a := a.(type) {
	case lifecycle.StartSandbox:
		if stopping {
			v.wrong("a stopping pod gets a sandbox")
		}
	case lifecycle.PullImage:
		if stopping {
			v.wrong("a stopping pod pulls an image")
		}
	case lifecycle.StartContainer:
		if stopping {
			v.wrong("a stopping pod starts a container")
		}
		v.start(f, a)
	case lifecycle.StopContainer:
		v.signal(f, a.Ref)
	case lifecycle.KillContainer:
		v.signal(f, a.Ref)
	case lifecycle.RemoveContainer:
		if r := attempt(f, a.Ref); r == nil || r.Exited.IsZero() {
			v.wrong("%v is removed and not over", a.Ref)
		}
	}
}

// start: never two live attempts of a container, none without a sandbox, no app container before init is done.
func (v *invariants) start(f lifecycle.Facts, a lifecycle.StartContainer) {
	newest := f.Containers[a.Container].Newest
	live := newest.Attempt > 0 && newest.Exited.IsZero() && newest.Refused.IsZero()
	switch again := a.Ref == newest.Ref; {
	case again && newest.Retry.IsZero():
		v.wrong("%v is asked for twice", a.Ref)
	case !again && live:
		v.wrong("%v is asked for while %v lives", a.Ref, newest.Ref)
	case !again && a.Attempt != newest.Attempt+1:
		v.wrong("%v comes after %v", a.Ref, newest.Ref)
	case a.Sandbox != f.SandboxReady() || a.Round != f.Round:
		v.wrong("%v is asked for in sandbox %d and round %d", a, f.SandboxReady(), f.Round)
	}
	for i := range v.pod.InitContainers {
		c := &v.pod.InitContainers[i]
		if c.Name == a.Container {
			return
		}
		r := f.Containers[c.Name].Newest
		if r.Round != f.Round || r.Exited.IsZero() || r.Exit.Code != 0 || r.Exit.Reason == lifecycle.ReasonOOMKilled {
			v.wrong("%v is asked for before %s is done", a.Ref, c.Name)
		}
	}
}

func (v *invariants) signal(f lifecycle.Facts, ref lifecycle.Ref) {
	r := attempt(f, ref)
	if r == nil || !r.Exited.IsZero() || !r.Refused.IsZero() || (r.Started.IsZero() && r.Retry.IsZero()) {
		v.wrong("a signal to %v, which does not run", ref)
	}
}

func attempt(f lifecycle.Facts, ref lifecycle.Ref) *lifecycle.Attempt {
	c := f.Containers[ref.Container]
	for _, a := range []*lifecycle.Attempt{&c.Newest, &c.Previous} {
		if a.Ref == ref {
			return a
		}
	}
	return nil
}

// exact: facts are the same after a round trip through JSON.
func (v *invariants) exact(f lifecycle.Facts) {
	var again lifecycle.Facts
	data := text(f)
	if err := json.Unmarshal([]byte(data), &again); err != nil {
		v.wrong("read facts: %w", err)
	}
	if len(f.Containers) == 0 {
		f.Containers = nil
	}
	if !reflect.DeepEqual(f, again) {
		v.wrong("facts %s\nread back as %s", data, text(again))
	}
}

// statusOf: what the status says is so, and it does not go back on what it said.
func (v *invariants) statusOf(s lifecycletest.Step) {
	old, now := v.status, lifecycle.StatusOf(v.pod, s.After, s.Now)
	if s.Life != v.life { // what was not saved is learned again
		old.InitContainerStatuses, old.ContainerStatuses = nil, nil
	}
	v.status, v.life = now, s.Life
	if old.Phase.Terminal() && now.Phase != old.Phase {
		v.wrong("the phase was %s and is %s", old.Phase, now.Phase)
	}
	if now.Phase == lifecycle.PhaseSucceeded {
		for i := range v.pod.Containers {
			h := s.After.Containers[v.pod.Containers[i].Name]
			r := h.Newest
			if !r.Refused.IsZero() { // it was no run: the one before counts
				r = h.Previous
			}
			if r.Exited.IsZero() || r.Exit.Code != 0 {
				v.wrong("the pod has succeeded, and %s has not: %+v", v.pod.Containers[i].Name, r)
			}
		}
	}
	v.containers(s.After, now.Phase, old.InitContainerStatuses, now.InitContainerStatuses)
	v.containers(s.After, now.Phase, old.ContainerStatuses, now.ContainerStatuses)
}

func (v *invariants) containers(f lifecycle.Facts, phase lifecycle.Phase, old, now []lifecycle.ContainerStatus) {
	for i := range now {
		c, state := &now[i], now[i].State
		r := f.Containers[c.Name].Newest
		runs := !r.Started.IsZero() && r.Exited.IsZero()
		states := 0
		for _, set := range []bool{state.Waiting != nil, state.Running != nil, state.Terminated != nil} {
			if set {
				states++
			}
		}
		switch {
		case states != 1:
			v.wrong("%s is in %d states", c.Name, states)
		case runs != (state.Running != nil):
			v.wrong("%s: running is %v, the status says %+v", c.Name, runs, state)
		case runs && phase.Terminal():
			v.wrong("%s runs in a pod that is %s", c.Name, phase)
		case len(old) > 0 && c.RestartCount < old[i].RestartCount:
			v.wrong("%s had %d restarts and has %d", c.Name, old[i].RestartCount, c.RestartCount)
		}
	}
}

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// TestWorlds lets random pods live in random worlds: events come late and twice, the engine is away and does not say what
// it did, the supervisor crashes, the machine boots, sandboxes die, somebody stops and deletes. When the world comes to
// rest, so does the pod.
func TestWorlds(t *testing.T) { rapid.Check(t, world) }

// FuzzWorlds is [TestWorlds] for go test -fuzz; with -fuzzminimizetime 1x it does not spend its time on shorter worlds.
func FuzzWorlds(f *testing.F) {
	seed(f)
	f.Fuzz(rapid.MakeFuzz(world))
}

// seed gives the fuzzer inputs that are long enough for a whole life.
func seed(f *testing.F) {
	for n := range 8 {
		r := rand.New(rand.NewPCG(uint64(n), 3))
		data := make([]byte, 8192)
		for i := range data {
			data[i] = byte(r.IntN(256))
		}
		f.Add(data)
	}
}

const (
	troubleEnds = 5 * time.Minute
	longEnough  = 3 * time.Hour
)

func world(t *rapid.T) {
	pod := drawPod(t)
	w := lifecycletest.New(pod, drawScript(t, pod))
	v := invariants{pod: pod}
	w.Observe = func(s lifecycletest.Step) {
		if err := v.step(s); err != nil {
			w.Wrong(err)
		}
	}
	trouble(t, w)
	for range rapid.IntRange(0, 6).Draw(t, "happenings") {
		at := drawDuration(t, troubleEnds)
		do := drawHappening(t, w)
		w.At(at, do)
	}
	w.At(troubleEnds, func() { w.Away(false) })
	if err := w.Run(longEnough); err != nil {
		t.Fatal(err)
	}
	if err := atRest(w, v.status); err != nil {
		t.Fatalf("after %v: %v\n%s", longEnough, err, text(w.Facts))
	}
}

// trouble makes the world unreliable for a while.
func trouble(t *rapid.T, w *lifecycletest.World) {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	begin := w.Now()
	bad := func(percent int) bool { return w.Now().Wall.Sub(begin.Wall) < troubleEnds && r.IntN(100) < percent }
	late, twice, away := drawPercent(t, "late"), drawPercent(t, "twice"), drawPercent(t, "away")
	some := func() time.Duration { return time.Duration(r.Int64N(int64(3 * time.Second))) }
	w.Lag = func() time.Duration {
		if bad(late) {
			return some()
		}
		return 0
	}
	w.Echo = func() (time.Duration, bool) { return 10 * some(), bad(twice) }
	w.Fault = func(lifecycle.Action) lifecycletest.Fault {
		if bad(away) {
			return lifecycletest.Fault(r.IntN(3))
		}
		return lifecycletest.NoFault
	}
}

// atRest reports what is left to be done in a world that has been quiet for long.
func atRest(w *lifecycletest.World, s lifecycle.Status) error {
	stopped := !w.Facts.Stop.Asked.IsZero()
	d := lifecycle.Decide(w.Pod, w.Facts, w.Now())
	switch {
	case len(d.Actions) > 0 || !d.Wake.IsZero():
		return fmt.Errorf("there is more to do: %+v", d)
	case !w.Gone() && len(w.Facts.Unresolved()) > 0:
		return fmt.Errorf("unresolved: %#v", w.Facts.Unresolved())
	case w.Gone() != w.Facts.Stop.Delete:
		return fmt.Errorf("gone is %v", w.Gone())
	case stopped && !s.Phase.Terminal():
		return fmt.Errorf("a stopped pod is %s", s.Phase)
	case s.Phase.Terminal() && (w.Processes() > 0 || w.Sandboxes() > 0 || !w.Facts.AtRest()):
		return fmt.Errorf("%d processes and %d sandboxes of a pod that is %s", w.Processes(), w.Sandboxes(), s.Phase)
	case !s.Phase.Terminal() && (s.Phase != lifecycle.PhaseRunning || w.Processes() == 0):
		return fmt.Errorf("%d processes of a pod that is %s", w.Processes(), s.Phase)
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
		Name:                          "p",
		RestartPolicy:                 rapid.SampledFrom([]spec.RestartPolicy{spec.RestartAlways, spec.RestartOnFailure, spec.RestartNever}).Draw(t, "policy"),
		TerminationGracePeriodSeconds: spec.Seconds(rapid.IntRange(0, 5).Draw(t, "grace")),
	}
	if rapid.Bool().Draw(t, "backoff") {
		pod.RestartBackoff = &spec.Backoff{InitialSeconds: 1, MaxSeconds: 4, Factor: 1.5, ResetAfterSeconds: 10}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "inits") {
		pod.InitContainers = append(pod.InitContainers, spec.Container{Name: fmt.Sprintf("init-%d", i), Image: "i"})
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "apps") {
		pod.Containers = append(pod.Containers, spec.Container{Name: fmt.Sprintf("app-%d", i), Image: "i"})
	}
	return pod
}

func drawScript(t *rapid.T, pod *spec.Pod) lifecycletest.Script {
	s := lifecycletest.Script{Pulls: map[string][]lifecycletest.Start{}, Runs: map[string][]lifecycletest.Run{}}
	for range rapid.IntRange(0, 2).Draw(t, "sandboxes") {
		s.Sandboxes = append(s.Sandboxes, drawStart(t, "", lifecycle.FailureRetry, lifecycle.FailureUnavailable))
	}
	for _, list := range [][]spec.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			name := list[i].Name
			for range rapid.IntRange(0, 3).Draw(t, "pulls") {
				reason := rapid.SampledFrom([]lifecycle.Reason{"", lifecycle.ReasonErrImagePull, lifecycle.ReasonErrImageNeverPull}).Draw(t, "reason")
				s.Pulls[name] = append(s.Pulls[name], drawStart(t, reason, lifecycle.FailureRetry, lifecycle.FailureUnavailable))
			}
			for range rapid.IntRange(0, 4).Draw(t, "runs") {
				s.Runs[name] = append(s.Runs[name], drawRun(t))
			}
		}
	}
	return s
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
		Start:  drawStart(t, "", lifecycle.FailureRetry, lifecycle.FailureRefused),
		Lasts:  drawDuration(t, 20*time.Second),
		Exit:   lifecycle.Exit{Code: rapid.SampledFrom([]int{0, 0, 1, 137}).Draw(t, "code")},
		Deaf:   rapid.Bool().Draw(t, "deaf"),
		Ends:   drawDuration(t, 3*time.Second),
		Wedged: rapid.IntRange(0, 1).Draw(t, "wedged"),
	}
	switch rapid.IntRange(0, 9).Draw(t, "special") {
	case 0:
		r.Exit.Reason = lifecycle.ReasonOOMKilled
	case 1:
		r.Lasts = 11 * time.Minute
	}
	return r
}

func drawHappening(t *rapid.T, w *lifecycletest.World) func() {
	off := drawDuration(t, 20*time.Second)
	flag := rapid.Bool().Draw(t, "flag")
	do := map[string]func(){
		"stop":   func() { w.Stop(nil, flag) },
		"grace":  func() { w.Stop(&off, flag) },
		"lose":   func() { w.LoseSandbox(flag) },
		"crash":  func() { w.Crash(off) },
		"reboot": func() { w.Reboot(off) },
		"away":   func() { w.Away(flag) },
		"leap":   func() { w.Leap(off - 10*time.Second) },
		"exit":   func() { w.Exit("app-0", lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonError}) },
	}
	return do[rapid.SampledFrom([]string{"lose", "crash", "reboot", "away", "leap", "exit", "stop", "grace"}).Draw(t, "what")]
}
