package lifecycle_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const dbReady, disk = "pod:db:ready", "path:/dev/disk"

// waiting returns a pod that waits for conditions.
func waiting(policy spec.RestartPolicy, names ...string) *spec.Pod {
	pod := podOf(policy, names...)
	pod.WaitFor = []string{dbReady, disk}
	return pod
}

func startWait(n int) lifecycle.Action { return lifecycle.StartWait{Wait: n} }

func waitRef(n int, condition string) lifecycle.WaitRef {
	return lifecycle.WaitRef{Wait: n, Condition: condition}
}

func met(n int, condition string) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ConditionMet{WaitRef: waitRef(n, condition), At: t}
	}
}

func unmet(n int, condition, message string) happened {
	return func(lifecycle.Instant) lifecycle.Event {
		return lifecycle.ConditionUnmet{WaitRef: waitRef(n, condition), Message: message}
	}
}

var rebooted happened = func(t lifecycle.Instant) lifecycle.Event { return lifecycle.Booted{Saved: t, At: t} }

func TestDecideWait(t *testing.T) {
	pod, never := waiting(spec.RestartAlways, "app"), waiting(spec.RestartNever, "app")
	both := history{startWait(1), met(1, dbReady), tick(2), met(1, disk)}
	lost := history{sandboxLost(1), sandboxRemoved(1), tick(20)}
	for _, row := range []struct {
		name  string
		pod   *spec.Pod
		past  history
		want  []lifecycle.Action
		waits []lifecycle.WaitRef
	}{
		{"a new pod starts to wait", pod, nil, do{startWait(1)}, nil},
		{"all conditions are watched", pod, history{startWait(1)}, nil, []lifecycle.WaitRef{waitRef(1, dbReady), waitRef(1, disk)}},
		{
			"a condition that is met is not watched any more", pod,
			history{startWait(1), met(1, dbReady)},
			nil,
			[]lifecycle.WaitRef{waitRef(1, disk)},
		},
		{
			"a condition that is lost again stays met", pod,
			history{startWait(1), met(1, dbReady), unmet(1, dbReady, "not ready")},
			nil,
			[]lifecycle.WaitRef{waitRef(1, disk)},
		},
		{"the sandbox is started when all conditions are met", pod, both, do{startSandbox(1)}, nil},
		{
			"a failed sandbox is retried without another wait", pod,
			history{both, failing(startSandbox(1), oops), tick(20)},
			do{startSandbox(2)},
			nil,
		},
		{
			"a lost sandbox is started again without another wait", pod,
			history{both, up(), running("app", 1), exited("app", 1, 1), lost},
			do{startSandbox(2)},
			nil,
		},
		{
			"a lost sandbox is started again without a wait for conditions that were added", pod,
			history{up(), running("app", 1), exited("app", 1, 1), lost},
			do{startSandbox(2)},
			nil,
		},
		{"a restart of a container does not wait", pod, history{both, up(), ran("app", 1, 1)}, do{pull("app", 2, 1)}, nil},
		{
			"a sandbox that the engine was unavailable for is retried without another wait", pod,
			history{both, failing(startSandbox(1), unavailable), tick(20)},
			do{startSandbox(1)},
			nil,
		},
		{
			"such a sandbox is removed after a reboot", pod,
			history{both, failing(startSandbox(1), unavailable), rebooted, tick(20)},
			do{removeSandbox(1)},
			nil,
		},
		{
			"the pod waits after the removal of that sandbox", pod,
			history{both, failing(startSandbox(1), unavailable), rebooted, sandboxRemoved(1), tick(20)},
			do{startWait(2)},
			nil,
		},
		{
			"the pod waits again after a reboot", pod,
			history{both, up(), running("app", 1), rebooted, sandboxRemoved(1), tick(20)},
			do{startWait(2)},
			nil,
		},
		{
			"a condition of the boot before does not count", pod,
			history{startWait(1), met(1, disk), rebooted, startWait(2), met(1, dbReady)},
			nil,
			[]lifecycle.WaitRef{waitRef(2, dbReady), waitRef(2, disk)},
		},
		{
			"a pod that has completed does not wait after a reboot", never,
			history{both, up(), ran("app", 1, 0), sandboxRemoved(1), rebooted, tick(20)},
			nil, nil,
		},
		{"a pod that is stopped does not wait", pod, history{startWait(1), stopped(time.Second)}, nil, nil},
		{"a pod that is deleted is removed at once", pod, history{startWait(1), deleted(time.Second)}, do{lifecycle.RemovePod{}}, nil},
		{"a sandbox that was found ends the wait", pod, history{startWait(1), up()}, do{pull("app", 1, 1)}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			now := at(20)
			got := lifecycle.Decide(row.pod, fold(row.past), now)
			want := lifecycle.Decision{Actions: row.want, Waits: row.waits}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func TestApplyWait(t *testing.T) {
	whole := func(f lifecycle.Facts) any { return f.Wait }
	foldings{
		{
			"conditions are met and unmet",
			history{tick(2), startWait(1), tick(3), met(1, dbReady), unmet(1, disk, "not found")},
			whole,
			lifecycle.Wait{
				N: 1, Since: at(1), Conditions: map[string]lifecycle.WaitedFor{dbReady: {Met: at(3)}, disk: {Message: "not found"}},
			},
		},
		{
			"a condition that is met has no message",
			history{startWait(1), unmet(1, disk, "not found"), tick(3), met(1, disk), tick(4), met(1, disk)},
			whole,
			lifecycle.Wait{N: 1, Since: at(1), Conditions: map[string]lifecycle.WaitedFor{disk: {Met: at(3)}}},
		},
		{
			"only the first wait is since the pod was accepted",
			history{startWait(1), tick(2), startWait(2)},
			whole,
			lifecycle.Wait{N: 2, Since: at(2)},
		},
		{
			"an event of an earlier wait is ignored",
			history{startWait(1), rebooted, startWait(2), met(1, disk), unmet(1, disk, "x")},
			whole,
			lifecycle.Wait{N: 2, Since: at(1)},
		},
		{"an event without a wait is ignored", history{met(0, disk), unmet(0, disk, "x")}, whole, lifecycle.Wait{}},
		{
			"the sandbox ends the wait",
			history{startWait(1), tick(3), up(), tick(4), met(1, disk), unmet(1, disk, "x")},
			whole,
			lifecycle.Wait{N: 1, Since: at(1), Ended: at(3)},
		},
		{"the sandbox ends the wait of a pod without conditions", up(), whole, lifecycle.Wait{Ended: at(1)}},
	}.check(t)
}

// TestWaitIsImmutable checks that an event does not change the facts before it.
func TestWaitIsImmutable(t *testing.T) {
	before := fold(history{startWait(1), unmet(1, disk, "not found")})
	text1 := text(before)
	before.Apply(met(1, disk)(at(5)))
	before.SetBack(at(50), at(10))
	if after := text(before); after != text1 {
		t.Errorf("facts changed from %s to %s", text1, after)
	}
}

func TestWaitStatus(t *testing.T) {
	pod := waiting(spec.RestartAlways, "app")
	for _, row := range []struct {
		name      string
		past      history
		reason    lifecycle.Reason
		message   string
		condition string // status of WaitedFor
	}{
		{"before the first decision", nil, "", "", "False"},
		{"before the first check", history{startWait(1)}, lifecycle.ReasonWaitingFor, "waiting for pod db, path /dev/disk", "False"},
		{
			"after the first check",
			history{startWait(1), unmet(1, dbReady, "not ready")},
			lifecycle.ReasonWaitingFor,
			"waiting for pod db: not ready, path /dev/disk", "False",
		},
		{
			"one condition is met",
			history{startWait(1), met(1, disk), unmet(1, dbReady, "not ready")},
			lifecycle.ReasonWaitingFor,
			"waiting for pod db: not ready", "False",
		},
		{"the pod starts", history{startWait(1), met(1, disk), met(1, dbReady), up()}, "", "", "True"},
		{"the pod was found", up(), "", "", "True"},
		{"the sandbox is lost", history{startWait(1), up(), running("app", 1), sandboxLost(1)}, "", "", "True"},
		{
			"the pod waits after a reboot",
			history{startWait(1), up(), running("app", 1), rebooted, startWait(2)},
			lifecycle.ReasonWaitingFor, "waiting for pod db, path /dev/disk", "False",
		},
		{"the pod is stopped", history{startWait(1), stopped(time.Second)}, "", "", "False"},
	} {
		s := lifecycle.StatusOf(pod, fold(row.past), at(5))
		for _, c := range s.Conditions {
			if c.Type != lifecycle.PodWaitedFor {
				continue
			}
			if c.Status != row.condition || c.Reason != row.reason || c.Message != row.message {
				t.Errorf("%s: condition %+v", row.name, c)
			}
			row.condition = ""
		}
		if s.Reason != row.reason || s.Message != row.message || row.condition != "" {
			t.Errorf("%s: reason %q, message %q, conditions %+v", row.name, s.Reason, s.Message, s.Conditions)
		}
	}
	one := podOf(spec.RestartAlways, "app")
	one.WaitFor = []string{disk}
	for want, pod := range map[bool]*spec.Pod{false: podOf(spec.RestartAlways, "app"), true: one} {
		conditions := lifecycle.StatusOf(pod, fold(nil), at(5)).Conditions
		isWait := func(c lifecycle.Condition) bool { return c.Type == lifecycle.PodWaitedFor }
		if slices.ContainsFunc(conditions, isWait) != want {
			t.Errorf("conditions of a pod that waits for %q: %+v", pod.WaitFor, conditions)
		}
	}
}
