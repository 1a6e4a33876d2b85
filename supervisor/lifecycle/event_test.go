package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// foldings is a table of tests of [lifecycle.Facts.Apply]. Each row folds a history and compares a part of the facts.
type foldings []struct {
	name string
	past history
	part func(lifecycle.Facts) any
	want any
}

func (table foldings) check(t *testing.T) {
	t.Helper()
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, row.part(fold(row.past))); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestApplyPod(t *testing.T) {
	foldings{
		{
			"restart of all containers opens a round in the same sandbox",
			history{running("app", 1), tick(5), lifecycle.StartRound{Round: 2, By: run("app", 1)}},
			func(f lifecycle.Facts) any { return []any{f.Round, f.Restarted, f.RestartedAt, f.Sandbox.N} },
			[]any{2, 2, at(5), 0},
		},
		{
			"engine is unavailable since the first event",
			history{tick(5), engineUnavailable, tick(6), engineUnavailable},
			func(f lifecycle.Facts) any { return f.EngineUnavailable }, at(5),
		},
		{
			"engine is available again",
			history{tick(5), engineUnavailable, tick(6), engineAvailable},
			func(f lifecycle.Facts) any { return f.EngineUnavailable },
			lifecycle.Instant{},
		},
		{
			"newest value of a condition is kept",
			history{
				setCondition("example.com/a", "False"), setCondition("example.com/b", "True"),
				tick(3), setCondition("example.com/a", "True"), tick(4), setCondition("example.com/a", "True"),
			},
			func(f lifecycle.Facts) any { return f.Conditions },
			map[lifecycle.ConditionType]lifecycle.SetCondition{
				"example.com/a": {Status: "True", Reason: "Why", Message: "because", At: at(3)},
				"example.com/b": {Status: "True", Reason: "Why", Message: "because", At: at(1)},
			},
		},
	}.check(t)
}

func TestApplySandbox(t *testing.T) {
	foldings{
		{
			"failed sandbox keeps its error", failing(startSandbox(1), oops),
			func(f lifecycle.Facts) any { return f.Sandbox },
			lifecycle.Sandbox{N: 1, Requested: at(1), Failed: at(1), Failures: 1, Message: "oops"},
		},
		{
			"failed sandbox records that the engine was unavailable", failing(startSandbox(1), unavailable),
			func(f lifecycle.Facts) any { return f.Sandbox },
			lifecycle.Sandbox{N: 1, Requested: at(1), Failed: at(1), Message: "unavailable", Unavailable: true},
		},
		{
			"lost sandbox keeps its addresses",
			history{up(), tick(2), sandboxLost(1)},
			func(f lifecycle.Facts) any { return f.Sandbox },
			lifecycle.Sandbox{N: 1, Requested: at(1), Ready: at(1), Lost: at(2), Message: "killed", IPs: []string{"10.0.0.2", "fd00::2"}},
		},
		{
			"failed removal of a sandbox keeps its error",
			history{up(), tick(2), failing(removeSandbox(1), oops)},
			func(f lifecycle.Facts) any { return []any{f.Sandbox.Removal, f.Sandbox.Message} },
			[]any{lifecycle.Removal{Requested: at(2), Failed: at(2)}, "oops"},
		},
		{
			"removal of another sandbox is ignored",
			history{up(), removeSandbox(2)},
			func(f lifecycle.Facts) any { return f.Sandbox.Removal },
			lifecycle.Removal{},
		},
	}.check(t)
}

func TestApplyRun(t *testing.T) {
	foldings{
		{
			"started run records its image and IDs",
			history{tick(2), issued("app", 1), tick(3), started("app", 1), tick(4), exited("app", 1, 3)},
			func(f lifecycle.Facts) any { return f.Container("app").Newest },
			lifecycle.Attempt{
				Ref: run("app", 1), Sandbox: 1, Requested: at(2), Started: at(3), Image: "app:1", ImageID: "sha256:app", ID: "app-id",
				Exited: at(4), Exit: lifecycle.Exit{Code: 3, Reason: lifecycle.ReasonError},
			},
		},
		{
			"start time is corrected if the exit was earlier",
			history{issued("app", 1), tick(3), started("app", 1), tick(2.5), exited("app", 1, 0)},
			func(f lifecycle.Facts) any {
				a := f.Container("app").Newest
				return []lifecycle.Instant{a.Started, a.Exited}
			},
			[]lifecycle.Instant{at(2.5), at(2.5)},
		},
		{
			"start time stays unset if the exit was observed first",
			history{issued("app", 1), tick(-1), exited("app", 1, 0)},
			func(f lifecycle.Facts) any { return f.Container("app").Newest.Started },
			lifecycle.Instant{},
		},
		{
			"start clears an earlier failure to create",
			history{
				failing(start("app", 1, 0, 0),
					lifecycle.Failure{Kind: lifecycle.FailureNotCreated, Reason: lifecycle.ReasonCreateContainerError}),
				start("app", 2, 0, 0), started("app", 2),
			},
			func(f lifecycle.Facts) any { return f.Container("app").Newest.Exit },
			lifecycle.Exit{},
		},
		{
			"exit may arrive before the start",
			history{issued("app", 1), tick(2), exited("app", 1, 0)},
			func(f lifecycle.Facts) any { return f.Container("app").Newest.Exited }, at(2),
		},
		{
			"previous run is kept",
			history{ran("app", 1, 3), running("app", 2)},
			func(f lifecycle.Facts) any { return f.Container("app").Previous.Exit.Code }, 3,
		},
		{
			"run that could not be created is not kept",
			history{
				ran("app", 1, 3), failing(start("app", 2, 1, 1), lifecycle.Failure{Kind: lifecycle.FailureNotCreated}), running("app", 3),
			},
			func(f lifecycle.Facts) any { return f.Container("app").Previous.Ref }, run("app", 1),
		},
		{
			"previous run may still exit",
			history{running("app", 1), issued("app", 2), tick(9), exited("app", 1, 4)},
			func(f lifecycle.Facts) any { return f.Container("app").Previous.Exited }, at(9),
		},
		{
			"granted restart raises the back-off level",
			history{ran("app", 1, 1), tick(9), start("app", 2, 1, 1)},
			func(f lifecycle.Facts) any { return f.Container("app").Backoff },
			lifecycle.Backoff{Level: 1, Granted: at(9)},
		},
		{
			"first start does not raise the back-off level",
			history{tick(9), start("app", 1, 0, 0)},
			func(f lifecycle.Facts) any { return f.Container("app").Backoff },
			lifecycle.Backoff{},
		},
		{
			"repeated start does not raise the back-off level",
			history{start("app", 2, 1, 1), tick(9), start("app", 2, 1, 2)},
			func(f lifecycle.Facts) any { return f.Container("app").Backoff },
			lifecycle.Backoff{Level: 1, Granted: at(1)},
		},
		{
			"repeated start clears the pending retry",
			history{failing(start("app", 1, 0, 0), unavailable), tick(9), start("app", 1, 0, 0)},
			func(f lifecycle.Facts) any { return f.Container("app").Newest },
			lifecycle.Attempt{Ref: run("app", 1), Sandbox: 1, Requested: at(1)},
		},
		{
			"failed start exits with code 128",
			history{failing(start("app", 1, 0, 0), oops)},
			func(f lifecycle.Facts) any { return f.Container("app").Newest },
			lifecycle.Attempt{
				Ref: run("app", 1), Sandbox: 1, Requested: at(1), Exited: at(1),
				Exit: lifecycle.Exit{Code: 128, Reason: lifecycle.ReasonStartError, Message: "oops"},
			},
		},
		{
			"failed start of a container that was created keeps its identity",
			history{failing(start("app", 1, 0, 0), lifecycle.Failure{Run: lifecycle.Created{ID: "id", Image: "i:1", ImageID: "sha256:i"}})},
			func(f lifecycle.Facts) any { return f.Container("app").Newest },
			lifecycle.Attempt{
				Ref: run("app", 1), Sandbox: 1, Requested: at(1), Exited: at(1), ID: "id", Image: "i:1", ImageID: "sha256:i",
				Exit: lifecycle.Exit{Code: 128, Reason: lifecycle.ReasonStartError},
			},
		},
		{
			"failed creation has a default reason",
			history{failing(start("app", 1, 0, 0), lifecycle.Failure{Kind: lifecycle.FailureNotCreated, Message: "no"})},
			func(f lifecycle.Facts) any { return f.Container("app").Newest },
			lifecycle.Attempt{
				Ref: run("app", 1), Sandbox: 1, Requested: at(1), CreateFailed: at(1),
				Exit: lifecycle.Exit{Reason: lifecycle.ReasonCreateContainerError, Message: "no"},
			},
		},
		{
			"failed creation keeps its reason",
			history{
				failing(start("app", 1, 0, 0),
					lifecycle.Failure{Kind: lifecycle.FailureNotCreated, Reason: lifecycle.ReasonCreateConfigError}),
			},
			func(f lifecycle.Facts) any { return f.Container("app").Newest.Exit.Reason }, lifecycle.ReasonCreateConfigError,
		},
		{
			"run exits with code 137 if its process is not found",
			history{
				running("app", 1), tick(5),
				failing(kill("app", 1), lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "not found"}),
			},
			func(f lifecycle.Facts) any {
				return []any{f.Container("app").Newest.Exited, f.Container("app").Newest.Exit}
			},
			[]any{at(5), lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonStatusUnknown, Message: "not found"}},
		},
		{
			"first stop signal sets the deadline",
			history{
				running("app", 1), stop("app", 1, time.Minute), tick(9), failing(stop("app", 1, time.Hour), oops),
				stop("app", 1, time.Hour), sent("app", 1, false),
			},
			func(f lifecycle.Facts) any {
				a := f.Container("app").Newest
				return []any{a.StopRequested, a.StopGrace, a.StopReason, a.StopSent, a.SignalFailed}
			},
			[]any{at(1), time.Minute, lifecycle.ReasonStopped, at(9), lifecycle.Instant{}},
		},
		{
			"SIGKILL has its own times",
			history{running("app", 1), kill("app", 1), sent("app", 1, true), tick(9), failing(kill("app", 1), oops)},
			func(f lifecycle.Facts) any {
				a := f.Container("app").Newest
				return []any{a.StopRequested, a.StopSent, a.KillRequested, a.KillSent, a.SignalFailed}
			},
			[]any{lifecycle.Instant{}, lifecycle.Instant{}, at(9), at(1), at(9)},
		},
	}.check(t)
}

func TestApplyProbesAndHooks(t *testing.T) {
	foldings{
		{
			"run keeps its newest verdicts",
			history{
				running("app", 1), tick(2), probed("app", 1, startup, good), tick(3), probed("app", 1, liveness, bad),
				probed("app", 1, readiness, good), tick(4), probed("app", 1, readiness, bad),
			},
			func(f lifecycle.Facts) any { return f.Container("app").Newest.Probes },
			lifecycle.Probes{
				Startup:   lifecycle.ProbeStatus{Verdict: good, Message: "failed", Count: 3, At: at(2)},
				Liveness:  lifecycle.ProbeStatus{Verdict: bad, Message: "failed", Count: 3, At: at(3)},
				Readiness: lifecycle.ProbeStatus{Verdict: bad, Message: "failed", Count: 3, At: at(4)},
			},
		},
		{
			"verdict is recorded although the start is not known yet, because it may survive a crash that the start does not",
			history{issued("app", 1), tick(2), probed("app", 1, startup, good), started("app", 1)},
			func(f lifecycle.Facts) any { return f.Container("app").Newest.Probes.Startup.Verdict }, good,
		},
		{
			"preStop hook records its times, limit and outcome",
			history{
				running("app", 1), tick(2), preStop("app", 1, 9, "X"), tick(3), cancel("app", 1, lifecycle.PreStop),
				tick(4), cancel("app", 1, lifecycle.PreStop), failed(preStop("app", 1, 9, "X"), oops),
			},
			func(f lifecycle.Facts) any {
				a := f.Container("app").Newest
				return []any{a.PostStart, a.TerminationRequested, a.TerminationGrace, a.PreStop, a.StopReason}
			},
			[]any{
				lifecycle.Hook{},
				at(2), time.Duration(9),
				lifecycle.Hook{Requested: at(2), Limit: 9, Cancelled: at(3), Done: at(4), Failed: true, Message: "oops"},
				lifecycle.Reason("X"),
			},
		},
		{
			"postStart hook records its times and outcome",
			history{running("app", 1), tick(2), postStart("app", 1), tick(3), hookDone("app", 1, lifecycle.PostStart)},
			func(f lifecycle.Facts) any {
				a := f.Container("app").Newest
				return []any{a.PostStart, a.PreStop}
			},
			[]any{lifecycle.Hook{Requested: at(2), Done: at(3)}, lifecycle.Hook{}},
		},
		{
			"unavailable engine leaves the hook pending",
			history{running("app", 1), tick(2), postStart("app", 1), tick(3), failed(postStart("app", 1), unavailable)},
			func(f lifecycle.Facts) any { return f.Container("app").Newest.PostStart },
			lifecycle.Hook{Requested: at(2), Retry: at(3)},
		},
		{
			"retried hook keeps the time of the first request",
			history{
				running("app", 1), tick(2), preStop("app", 1, 9, "X"), tick(3), failed(preStop("app", 1, 9, "X"), unavailable), tick(4),
				preStop("app", 1, 7, "Y"),
			},
			func(f lifecycle.Facts) any {
				a := f.Container("app").Newest
				return []any{a.PreStop, a.TerminationRequested, a.TerminationGrace}
			},
			[]any{lifecycle.Hook{Requested: at(2), Limit: 9}, at(2), time.Duration(9)},
		},
		{
			"WaitForTurn starts the grace period",
			history{running("app", 1), tick(2), waitForTurn("app", 9, "X"), tick(3), waitForTurn("app", 7, "Y"), preStop("app", 1, 5, "Z")},
			func(f lifecycle.Facts) any {
				a := f.Container("app").Newest
				return []any{a.TerminationRequested, a.TerminationGrace, a.StopReason, a.PreStop.Requested}
			},
			[]any{at(2), time.Duration(9), lifecycle.Reason("X"), at(3)},
		},
		{
			"first stop reason is kept",
			history{running("app", 1), preStop("app", 1, 9, "X"), stop("app", 1, 9)},
			func(f lifecycle.Facts) any { return f.Container("app").Newest.StopReason }, lifecycle.Reason("X"),
		},
	}.check(t)
}

func TestApplyPull(t *testing.T) {
	foldings{
		{
			"failed pull keeps its error",
			history{pullFailed("app", 1, 4, "")},
			func(f lifecycle.Facts) any { return f.Container("app").Pull },
			lifecycle.Pull{For: 1, Requested: at(1), Failed: at(1), Level: 4, Next: 4, Reason: lifecycle.ReasonErrImagePull, Message: "no"},
		},
		{
			"error is kept while the pull is retried",
			history{pullFailed("app", 1, 4, "X"), tick(9), pull("app", 1, 5)},
			func(f lifecycle.Facts) any { return f.Container("app").Pull },
			lifecycle.Pull{For: 1, Requested: at(9), Failed: at(1), Level: 4, Next: 5, Reason: "X", Message: "no"},
		},
		{
			"successful pull clears the error",
			history{pullFailed("app", 1, 4, "X"), tick(9), pulled("app", 1)},
			func(f lifecycle.Facts) any { return f.Container("app").Pull },
			lifecycle.Pull{For: 1, Requested: at(9), Done: at(9), Failed: at(1), Level: 4, Next: 1},
		},
		{
			"pull for the next run clears the error",
			history{pullFailed("app", 1, 4, "X"), tick(9), pull("app", 2, 5)},
			func(f lifecycle.Facts) any { return f.Container("app").Pull },
			lifecycle.Pull{For: 2, Requested: at(9), Failed: at(1), Level: 4, Next: 5},
		},
		{
			"failure of the previous pull does not affect the next one",
			history{pull("app", 1, 4), tick(9), pull("app", 2, 5), failed(pull("app", 1, 4), oops)},
			func(f lifecycle.Facts) any { return f.Container("app").Pull },
			lifecycle.Pull{For: 2, Requested: at(9), Next: 5},
		},
		{
			"cancelled pull is forgotten",
			history{pull("app", 1, 4), lifecycle.CancelPull{Container: "app", For: 1}, failed(pull("app", 1, 4), oops)},
			func(f lifecycle.Facts) any { return f.Container("app").Pull },
			lifecycle.Pull{Cancelled: at(1), Next: 4},
		},
		{
			"unavailable engine is not a failure of the pull",
			history{failing(pull("app", 1, 4), unavailable)},
			func(f lifecycle.Facts) any { return f.Container("app").Pull },
			lifecycle.Pull{For: 1, Requested: at(1), Retry: at(1), Next: 4},
		},
	}.check(t)
}

func TestApplyStop(t *testing.T) {
	foldings{
		{
			"deadline stops the pod",
			history{tick(5), failPod(9 * time.Second)},
			func(f lifecycle.Facts) any { return f.Stop },
			lifecycle.Stop{
				Requested: at(5), Deadline: at(14), Grace: 9 * time.Second, By: "activeDeadlineSeconds",
				Reason:  lifecycle.ReasonDeadlineExceeded,
				Message: "Pod was active on the node longer than the specified deadline",
			},
		},
		{
			"deadline of a stopping pod sets only the reason",
			history{tick(5), deleted(9 * time.Second), tick(6), failPod(time.Second)},
			func(f lifecycle.Facts) any { return f.Stop },
			lifecycle.Stop{
				Requested: at(5), Deadline: at(14), Grace: 9 * time.Second, Delete: true, By: "a test", ByUser: true,
				Reason:  lifecycle.ReasonDeadlineExceeded,
				Message: "Pod was active on the node longer than the specified deadline",
			},
		},
		{
			"later request shortens the stop of a failed pod and adds the deletion",
			history{tick(5), failPod(9 * time.Second), tick(6), deleted(time.Second)},
			func(f lifecycle.Facts) any {
				return []any{f.Stop.Requested, f.Stop.Deadline, f.Stop.Delete, f.Stop.By, f.Stop.Reason}
			},
			[]any{at(5), at(7), true, "activeDeadlineSeconds", lifecycle.ReasonDeadlineExceeded},
		},
		{
			"stop requests are merged",
			history{stopped(time.Minute), tick(5), deleted(time.Second), forced},
			func(f lifecycle.Facts) any { return f.Stop },
			lifecycle.Stop{Requested: at(1), Deadline: at(5), Force: true, Delete: true, By: "a test", ByUser: true},
		},
		{
			"earliest deadline sets the grace period",
			history{stopped(time.Minute), tick(5), stopped(10 * time.Second), tick(6), stopped(30 * time.Second)},
			func(f lifecycle.Facts) any { return []any{f.Stop.Deadline, f.Stop.Grace} },
			[]any{at(15), 10 * time.Second},
		},
		{
			"eviction is not requested by a user",
			history{tick(5), happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.PodEvicted{Message: "full", At: t} })},
			func(f lifecycle.Facts) any { return f.Stop },
			lifecycle.Stop{
				Requested: at(5), Deadline: at(6), Grace: time.Second, By: "the supervisor", Reason: lifecycle.ReasonEvicted,
				Message: "full",
			},
		},
		{
			"failed removal of the pod is recorded",
			history{lifecycle.RemovePod{}, tick(2), failed(lifecycle.RemovePod{}, oops)},
			func(f lifecycle.Facts) any { return f.Removal },
			lifecycle.Removal{Requested: at(1), Failed: at(2)},
		},
		{
			"retried removal clears the failure",
			history{lifecycle.RemovePod{}, failed(lifecycle.RemovePod{}, oops), tick(2), lifecycle.RemovePod{}},
			func(f lifecycle.Facts) any { return f.Removal },
			lifecycle.Removal{Requested: at(2)},
		},
		{
			"failed removal of a run is recorded",
			history{ran("app", 1, 1), failing(removeContainer("app", 1), oops)},
			func(f lifecycle.Facts) any { return f.Container("app").Newest.Removal },
			lifecycle.Removal{Requested: at(1), Failed: at(1)},
		},
	}.check(t)
}

// TestApplyLeavesTheReceiver checks that a snapshot does not change when later events are folded.
func TestApplyLeavesTheReceiver(t *testing.T) {
	facts := fold(history{up(), running("app", 1)})
	before := text(facts)
	facts.Apply(exited("app", 1, 1)(at(9)))
	facts.Apply(lifecycle.Booted{Saved: at(1), At: lifecycle.Instant{Boot: "2"}})
	if after := text(facts); after != before {
		t.Errorf("facts changed from\n%s\nto\n%s", before, after)
	}
}

// TestKillOfUnknownRun: SIGKILL counts as the start of a run only if it was not known whether it was started.
func TestKillOfUnknownRun(t *testing.T) {
	unanswered := history{up(), failing(start("app", 1, 0, 0), unavailable)}
	for name, row := range map[string]struct {
		past history
		want lifecycle.Instant
	}{
		"not known":   {unanswered, at(4)},
		"found later": {history{unanswered, tick(2), started("app", 1)}, at(2)},
		"refused later": {
			history{unanswered, failing(start("app", 1, 0, 0), lifecycle.Failure{Kind: lifecycle.FailureNotCreated})}, lifecycle.Instant{},
		},
		"start in progress": {history{up(), issued("app", 1)}, lifecycle.Instant{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := fold(history{row.past, tick(4), sent("app", 1, true)})
			if got := f.Container("app").Newest.Started; got != row.want {
				t.Errorf("started at %v, want %v", got, row.want)
			}
		})
	}
}

// TestApplyIgnoresStaleEvents checks that events about objects that do not exist or have terminated change nothing.
func TestApplyIgnoresStaleEvents(t *testing.T) {
	notFound := lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "not found"}
	refused := lifecycle.Failure{Kind: lifecycle.FailureNotCreated, Message: "refused"}
	secondSandbox := history{up(), tick(5), sandboxLost(1), sandboxRemoved(1), startSandbox(2)}
	for _, row := range []struct {
		name string
		past history
		late happened
	}{
		{"start of an older sandbox", secondSandbox, func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.SandboxStarted{Sandbox: 1, IPs: []string{"10.0.0.9"}, At: t}
		}},
		{"second start of a sandbox", up(), func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.SandboxStarted{Sandbox: 1, IPs: []string{"10.0.0.9"}, At: t}
		}},
		{"failure of an older sandbox", secondSandbox, failed(startSandbox(1), oops)},
		{"failure of a ready sandbox", up(), failed(startSandbox(1), oops)},
		{"loss of an older sandbox", secondSandbox, sandboxLost(1)},
		{"second loss of a sandbox", history{up(), tick(5), sandboxLost(1)}, sandboxLost(1)},
		{"loss of a removed sandbox", history{up(), sandboxRemoved(1)}, sandboxLost(1)},
		{"loss of a failed sandbox", history{failing(startSandbox(1), oops)}, sandboxLost(1)},
		{"removal of an older sandbox", secondSandbox, sandboxRemoved(1)[1].(happened)},
		{"second removal of a sandbox", history{up(), sandboxRemoved(1)}, sandboxRemoved(1)[1].(happened)},
		{"failed removal of an older sandbox", secondSandbox, failed(removeSandbox(1), oops)},
		{"failed removal of a removed sandbox", history{up(), sandboxRemoved(1)}, failed(removeSandbox(1), lifecycle.Failure{})},
		{"pull for an unknown container", up(), pulled("x", 0)[1].(happened)},
		{"pull for an older run", history{pulled("app", 1), pull("app", 2, 1)}, pulled("app", 1)[1].(happened)},
		{"second success of a pull", pulled("app", 1), pulled("app", 1)[1].(happened)},
		{"failure of a successful pull", pulled("app", 1), failed(pull("app", 1, 1), oops)},
		{"second failure of a pull", pullFailed("app", 1, 1, "X"), failed(pull("app", 1, 1), oops)},
		{"failure of a CancelPull", history{pull("app", 1, 1)}, failed(lifecycle.CancelPull{Container: "app", For: 1}, oops)},
		{"start of an unknown run", up(), started("app", 1)},
		{"start of an older run", history{ran("app", 1, 1), running("app", 2)}, started("app", 1)},
		{"second start of a run", history{issued("app", 1), started("app", 1)}, started("app", 1)},
		{"start of a terminated run", history{issued("app", 1), exited("app", 1, 1)}, started("app", 1)},
		{"start of a run that could not be created", failing(start("app", 1, 0, 0), refused), started("app", 1)},
		{"failed start of a running container", running("app", 1), failed(start("app", 1, 0, 0), oops)},
		{"failed start of a terminated run", history{issued("app", 1), exited("app", 1, 0)}, failed(start("app", 1, 0, 0), oops)},
		{"second exit of a run", ran("app", 1, 1), exited("app", 1, 0)},
		{"exit of a run that could not be created", failing(start("app", 1, 0, 0), refused), exited("app", 1, 0)},
		{"exit of a run of another round", running("app", 1), func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ContainerExited{Ref: lifecycle.Ref{Container: "app", Round: 2, Attempt: 1}, At: t}
		}},
		{"exit of an empty Ref", up(), func(t lifecycle.Instant) lifecycle.Event { return lifecycle.ContainerExited{At: t} }},
		{"second stop signal", history{running("app", 1), sent("app", 1, false)}, sent("app", 1, false)},
		{"second SIGKILL", history{running("app", 1), sent("app", 1, true)}, sent("app", 1, true)},
		{"signal of an empty Ref", up(), func(t lifecycle.Instant) lifecycle.Event { return lifecycle.SignalSent{At: t} }},
		{"process of a terminated run not found", ran("app", 1, 3), failed(kill("app", 1), notFound)},
		{"failed signal of a terminated run", ran("app", 1, 3), failed(kill("app", 1), oops)},
		{"verdict of an older run", history{ran("app", 1, 1), running("app", 2)}, probed("app", 1, liveness, bad)},
		{"verdict of a terminated run", ran("app", 1, 1), probed("app", 1, startup, good)},
		{"second verdict of a startup probe", history{running("app", 1), probed("app", 1, startup, good)}, probed("app", 1, startup, bad)},
		{
			"verdict of a liveness probe after its failure",
			history{running("app", 1), probed("app", 1, liveness, bad)},
			probed("app", 1, liveness, good),
		},
		{
			"older verdict of a readiness probe",
			history{running("app", 1), tick(200), probed("app", 1, readiness, good)},
			probed("app", 1, readiness, bad),
		},
		{"verdict of an unknown kind", running("app", 1), probed("app", 1, "moodiness", bad)},
		{"failed probe result", running("app", 1), func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ProbeFailed{ProbeRef: lifecycle.ProbeRef{Ref: run("app", 1)}, At: t}
		}},
		{"probe warning", running("app", 1), func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ProbeWarned{ProbeRef: lifecycle.ProbeRef{Ref: run("app", 1)}, At: t}
		}},
		{"success of a hook that was not issued", running("app", 1), hookDone("app", 1, lifecycle.PreStop)},
		{"failure of a hook that was not issued", running("app", 1), failed(preStop("app", 1, 9, "X"), oops)},
		{
			"second success of a hook",
			history{running("app", 1), postStart("app", 1), hookDone("app", 1, lifecycle.PostStart)},
			hookDone("app", 1, lifecycle.PostStart),
		},
		{
			"failure of a successful hook",
			history{running("app", 1), postStart("app", 1), hookDone("app", 1, lifecycle.PostStart)},
			failed(postStart("app", 1), oops),
		},
		{
			"success of a hook of a terminated run",
			history{running("app", 1), postStart("app", 1), exited("app", 1, 1)},
			hookDone("app", 1, lifecycle.PostStart),
		},
		{
			"failure of a postStart hook of a terminated run",
			history{running("app", 1), postStart("app", 1), exited("app", 1, 1)},
			failed(postStart("app", 1), oops),
		},
		{
			"failure of a preStop hook of a terminated run",
			history{running("app", 1), preStop("app", 1, 9, "X"), exited("app", 1, 1)},
			failed(preStop("app", 1, 9, "X"), oops),
		},
		{"failure of a CancelHook", history{running("app", 1), postStart("app", 1)}, failed(cancel("app", 1, lifecycle.PostStart), oops)},
		{
			"second removal of a run",
			history{ran("app", 1, 1), removeContainer("app", 1), containerRemoved("app", 1)},
			containerRemoved("app", 1),
		},
		{
			"failed removal of a removed run",
			history{ran("app", 1, 1), removeContainer("app", 1), containerRemoved("app", 1)},
			failed(removeContainer("app", 1), oops),
		},
		{"second removal of the pod", history{lifecycle.RemovePod{}, podRemoved}, podRemoved},
		{"failed removal of a removed pod", history{lifecycle.RemovePod{}, podRemoved}, failed(lifecycle.RemovePod{}, oops)},
		{"second stop request with a longer grace period", history{stopped(time.Second)}, stopped(time.Hour)},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := fold(row.past)
			after := before.Apply(row.late(at(100)))
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("facts (-before +after):\n%s", diff)
			}
		})
	}
}

func containerRemoved(name string, n int) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerRemoved{Ref: run(name, n), At: t}
	}
}

var podRemoved happened = func(t lifecycle.Instant) lifecycle.Event { return lifecycle.PodRemoved{At: t} }

// TestApplyCopies checks that Apply does not change the facts that it is called with.
func TestApplyCopies(t *testing.T) {
	past := history{up(), running("app", 1), pullFailed("app", 2, 1, lifecycle.ReasonErrImagePull)}
	before := fold(past)
	pod := podOf(spec.RestartAlways, "app")
	for _, e := range []lifecycle.Event{
		lifecycle.ContainerExited{Ref: run("app", 1), Exit: lifecycle.Exit{Code: 3}, At: at(9)},
		lifecycle.ContainerRestartRequested{Container: "app", At: at(9)},
		lifecycle.DefinitionChanged{From: pod, To: pod, Images: map[string]lifecycle.Image{"app": {ID: "sha256:1"}}, At: at(9)},
		lifecycle.Issued{Action: lifecycle.StartContainer{Ref: run("app", 2)}, At: at(9)},
		lifecycle.Issued{Action: lifecycle.StartAgain{Round: 2}, At: at(9)},
		lifecycle.WallClockSet{Before: at(9), At: lifecycle.Instant{Boot: at(9).Boot, Mono: at(9).Mono, Wall: at(9).Wall.Add(time.Hour)}},
		lifecycle.Booted{Saved: at(9), At: lifecycle.Instant{Boot: "next", Mono: time.Second, Wall: at(10).Wall}},
	} {
		if after := before.Apply(e); cmp.Equal(before, after) {
			t.Errorf("%T changes nothing", e)
		}
		if diff := cmp.Diff(fold(past), before); diff != "" {
			t.Errorf("%T changes the facts before it (-before +after):\n%s", e, diff)
		}
	}
	before.SetBack(at(9), at(1))
	if diff := cmp.Diff(fold(past), before); diff != "" {
		t.Errorf("SetBack changes the facts before it (-before +after):\n%s", diff)
	}
}

// TestFold checks that Fold gives the facts of Apply, and changes them in place.
func TestFold(t *testing.T) {
	e := lifecycle.ContainerExited{Ref: run("app", 1), Exit: lifecycle.Exit{Code: 3}, At: at(9)}
	applied := fold(history{up(), running("app", 1)}).Apply(e)
	folded := fold(history{up(), running("app", 1)})
	shared := folded.Containers
	folded.Fold(e)
	if diff := cmp.Diff(applied, folded); diff != "" {
		t.Errorf("Fold differs from Apply (-Apply +Fold):\n%s", diff)
	}
	if shared["app"].Newest.Exit.Code != 3 {
		t.Error("Fold has copied the containers")
	}
	empty := lifecycle.Facts{}
	empty.Fold(lifecycle.Issued{Action: lifecycle.PullImage{Container: "app", For: 1}, At: at(1)})
	if empty.Containers["app"].Pull.For != 1 {
		t.Error("Fold into empty facts adds no pull")
	}
}
