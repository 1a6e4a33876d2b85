package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestApply folds histories and looks at a part of the facts.
func TestApply(t *testing.T) {
	for _, row := range []struct {
		name string
		past history
		part func(lifecycle.Facts) any
		want any
	}{
		{
			"a sandbox keeps why it failed", failing(startSandbox(1), oops),
			func(f lifecycle.Facts) any { return f.Sandbox },
			lifecycle.Sandbox{N: 1, Requested: at(1), Failed: at(1), Failures: 1, Message: "oops"},
		},
		{
			"and whether that was the engine's absence", failing(startSandbox(1), away),
			func(f lifecycle.Facts) any { return f.Sandbox },
			lifecycle.Sandbox{N: 1, Requested: at(1), Failed: at(1), Message: "away", Unavailable: true},
		},
		{
			"a sandbox keeps its addresses when it is lost",
			history{up(), tick(2), lost(1)},
			func(f lifecycle.Facts) any { return f.Sandbox },
			lifecycle.Sandbox{N: 1, Requested: at(1), Ready: at(1), Lost: at(2), Message: "killed", IPs: []string{"10.0.0.2", "fd00::2"}},
		},
		{
			"and why it could not be taken away",
			history{up(), tick(2), failing(removeSandbox(1), oops)},
			func(f lifecycle.Facts) any { return []any{f.Sandbox.Removal, f.Sandbox.Message} },
			[]any{lifecycle.Removal{Requested: at(2), Failed: at(2)}, "oops"},
		},
		{
			"the removal of an older sandbox is not that of this one",
			history{up(), removeSandbox(2)},
			func(f lifecycle.Facts) any { return f.Sandbox.Removal },
			lifecycle.Removal{},
		},
		{
			"a run knows who it was",
			history{tick(2), asked("app", 1), tick(3), started("app", 1), tick(4), exited("app", 1, 3)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Newest },
			lifecycle.Attempt{
				Ref: run("app", 1), Sandbox: 1, Requested: at(2), Started: at(3), Image: "app:1", ImageID: "sha256:app", ID: "app-id",
				Exited: at(4), Exit: lifecycle.Exit{Code: 3, Reason: lifecycle.ReasonError},
			},
		},
		{
			"a run started no later than it ended, though it was seen to later",
			history{asked("app", 1), tick(3), started("app", 1), tick(2.5), exited("app", 1, 0)},
			func(f lifecycle.Facts) any {
				a := f.Containers["app"].Newest
				return []lifecycle.Instant{a.Started, a.Exited}
			},
			[]lifecycle.Instant{at(2.5), at(2.5)},
		},
		{
			"of one that has ended before the machine began nothing more is known",
			history{asked("app", 1), tick(-1), exited("app", 1, 0)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Newest.Started },
			lifecycle.Instant{},
		},
		{
			"what runs was refused no more",
			history{failing(start("app", 1, 0, 0), lifecycle.Failure{Kind: lifecycle.FailureNotCreated, Reason: lifecycle.ReasonCreateContainerError}), start("app", 2, 0, 0), started("app", 2)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Newest.Exit },
			lifecycle.Exit{},
		},
		{
			"a run may end before it is known to have started",
			history{asked("app", 1), tick(2), exited("app", 1, 0)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Newest.Exited }, at(2),
		},
		{
			"the run before is kept",
			history{ran("app", 1, 3), running("app", 2)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Previous.Exit.Code }, 3,
		},
		{
			"unless it was refused",
			history{ran("app", 1, 3), failing(start("app", 2, 1, 1), lifecycle.Failure{Kind: lifecycle.FailureNotCreated}), running("app", 3)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Previous.Ref }, run("app", 1),
		},
		{
			"it can still end",
			history{running("app", 1), asked("app", 2), tick(9), exited("app", 1, 4)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Previous.Exited }, at(9),
		},
		{
			"a granted restart moves the backoff",
			history{ran("app", 1, 1), tick(9), start("app", 2, 1, 1)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Backoff },
			lifecycle.Backoff{Level: 1, Granted: at(9)},
		},
		{
			"a first start does not",
			history{tick(9), start("app", 1, 0, 0)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Backoff },
			lifecycle.Backoff{},
		},
		{
			"nor a second request for the same run",
			history{start("app", 2, 1, 1), tick(9), start("app", 2, 1, 2)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Backoff },
			lifecycle.Backoff{Level: 1, Granted: at(1)},
		},
		{
			"which forgets that it has to be asked for again",
			history{failing(start("app", 1, 0, 0), away), tick(9), start("app", 1, 0, 0)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Newest },
			lifecycle.Attempt{Ref: run("app", 1), Sandbox: 1, Requested: at(1)},
		},
		{
			"a start that failed is a run that ended with 128",
			history{failing(start("app", 1, 0, 0), oops)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Newest },
			lifecycle.Attempt{
				Ref: run("app", 1), Sandbox: 1, Requested: at(1), Exited: at(1),
				Exit: lifecycle.Exit{Code: 128, Reason: lifecycle.ReasonStartError, Message: "oops"},
			},
		},
		{
			"a refusal has a reason",
			history{failing(start("app", 1, 0, 0), lifecycle.Failure{Kind: lifecycle.FailureNotCreated, Message: "no"})},
			func(f lifecycle.Facts) any { return f.Containers["app"].Newest },
			lifecycle.Attempt{
				Ref: run("app", 1), Sandbox: 1, Requested: at(1), CreateFailed: at(1),
				Exit: lifecycle.Exit{Reason: lifecycle.ReasonCreateContainerError, Message: "no"},
			},
		},
		{
			"or the one that it was given",
			history{failing(start("app", 1, 0, 0), lifecycle.Failure{Kind: lifecycle.FailureNotCreated, Reason: lifecycle.ReasonCreateConfigError})},
			func(f lifecycle.Facts) any { return f.Containers["app"].Newest.Exit.Reason }, lifecycle.ReasonCreateConfigError,
		},
		{
			"a signal to nothing ends a run with 137",
			history{running("app", 1), tick(5), failing(kill("app", 1), lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "gone"})},
			func(f lifecycle.Facts) any {
				return []any{f.Containers["app"].Newest.Exited, f.Containers["app"].Newest.Exit}
			},
			[]any{at(5), lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonStatusUnknown, Message: "gone"}},
		},
		{
			"the first stop signal sets the deadline",
			history{running("app", 1), stop("app", 1, time.Minute), tick(9), failing(stop("app", 1, time.Hour), oops), stop("app", 1, time.Hour), sent("app", 1, false)},
			func(f lifecycle.Facts) any {
				a := f.Containers["app"].Newest
				return []any{a.StopRequested, a.StopGrace, a.StopReason, a.StopSent, a.SignalFailed}
			},
			[]any{at(1), time.Minute, lifecycle.ReasonStopped, at(9), lifecycle.Instant{}},
		},
		{
			"SIGKILL has times of its own",
			history{running("app", 1), kill("app", 1), sent("app", 1, true), tick(9), failing(kill("app", 1), oops)},
			func(f lifecycle.Facts) any {
				a := f.Containers["app"].Newest
				return []any{a.StopRequested, a.StopSent, a.KillRequested, a.KillSent, a.SignalFailed}
			},
			[]any{lifecycle.Instant{}, lifecycle.Instant{}, at(9), at(1), at(9)},
		},
		{
			"a run knows its newest verdicts",
			history{
				running("app", 1), tick(2), probed("app", 1, startup, good), tick(3), probed("app", 1, liveness, bad),
				probed("app", 1, readiness, good), tick(4), probed("app", 1, readiness, bad),
			},
			func(f lifecycle.Facts) any { return f.Containers["app"].Newest.Probes },
			lifecycle.Probes{
				Startup:   lifecycle.ProbeStatus{Verdict: good, Message: "no good", Count: 3, At: at(2)},
				Liveness:  lifecycle.ProbeStatus{Verdict: bad, Message: "no good", Count: 3, At: at(3)},
				Readiness: lifecycle.ProbeStatus{Verdict: bad, Message: "no good", Count: 3, At: at(4)},
			},
		},
		{
			"also if that it has started is not known yet: they outlive a crash that this may not",
			history{asked("app", 1), tick(2), probed("app", 1, startup, good), started("app", 1)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Newest.Probes.Startup.Verdict }, good,
		},
		{
			"a hook has times, a limit and an end",
			history{
				running("app", 1), tick(2), preStop("app", 1, 9, "X"), tick(3), cancel("app", 1, lifecycle.PreStop),
				tick(4), cancel("app", 1, lifecycle.PreStop), failed(preStop("app", 1, 9, "X"), oops),
			},
			func(f lifecycle.Facts) any {
				a := f.Containers["app"].Newest
				return []any{a.PostStart, a.TerminationRequested, a.TerminationGrace, a.PreStop, a.StopReason}
			},
			[]any{lifecycle.Hook{}, at(2), time.Duration(9), lifecycle.Hook{Requested: at(2), Limit: 9, Cancelled: at(3), Done: at(4), Failed: true, Message: "oops"}, lifecycle.Reason("X")},
		},
		{
			"so has the other one",
			history{running("app", 1), tick(2), postStart("app", 1), tick(3), hooked("app", 1, lifecycle.PostStart)},
			func(f lifecycle.Facts) any {
				a := f.Containers["app"].Newest
				return []any{a.PostStart, a.PreStop}
			},
			[]any{lifecycle.Hook{Requested: at(2), Done: at(3)}, lifecycle.Hook{}},
		},
		{
			"an absent engine is no end of a hook",
			history{running("app", 1), tick(2), postStart("app", 1), tick(3), failed(postStart("app", 1), away)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Newest.PostStart },
			lifecycle.Hook{Requested: at(2), Retry: at(3)},
		},
		{
			"which is asked again with the time of the first request",
			history{
				running("app", 1), tick(2), preStop("app", 1, 9, "X"), tick(3), failed(preStop("app", 1, 9, "X"), away), tick(4), preStop("app", 1, 7, "Y"),
			},
			func(f lifecycle.Facts) any {
				a := f.Containers["app"].Newest
				return []any{a.PreStop, a.TerminationRequested, a.TerminationGrace}
			},
			[]any{lifecycle.Hook{Requested: at(2), Limit: 9}, at(2), time.Duration(9)},
		},
		{
			"a turn that is waited for has a time too",
			history{running("app", 1), tick(2), await("app", 9, "X"), tick(3), await("app", 7, "Y"), preStop("app", 1, 5, "Z")},
			func(f lifecycle.Facts) any {
				a := f.Containers["app"].Newest
				return []any{a.TerminationRequested, a.TerminationGrace, a.StopReason, a.PreStop.Requested}
			},
			[]any{at(2), time.Duration(9), lifecycle.Reason("X"), at(3)},
		},
		{
			"the first reason to end counts",
			history{running("app", 1), preStop("app", 1, 9, "X"), stop("app", 1, 9)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Newest.StopReason }, lifecycle.Reason("X"),
		},
		{
			"a new round in place is remembered",
			history{running("app", 1), tick(5), lifecycle.StartRound{Round: 2, By: run("app", 1)}},
			func(f lifecycle.Facts) any { return []any{f.Round, f.Restarted, f.Sandbox.N} },
			[]any{2, 2, 0},
		},
		{
			"so is the end of a pod by its deadline",
			history{tick(5), endPod(9 * time.Second)},
			func(f lifecycle.Facts) any { return f.Stop },
			lifecycle.Stop{
				Requested: at(5), Deadline: at(14), Grace: 9 * time.Second, By: "activeDeadlineSeconds", Reason: lifecycle.ReasonDeadlineExceeded,
				Message: "Pod was active on the node longer than the specified deadline",
			},
		},
		{
			"of one that was to end anyway it is the reason alone",
			history{tick(5), deleted(9 * time.Second), tick(6), endPod(time.Second)},
			func(f lifecycle.Facts) any { return f.Stop },
			lifecycle.Stop{
				Requested: at(5), Deadline: at(14), Grace: 9 * time.Second, Delete: true, By: "a test", ByUser: true, Reason: lifecycle.ReasonDeadlineExceeded,
				Message: "Pod was active on the node longer than the specified deadline",
			},
		},
		{
			"which a later wish can shorten, and turn into a removal",
			history{tick(5), endPod(9 * time.Second), tick(6), deleted(time.Second)},
			func(f lifecycle.Facts) any {
				return []any{f.Stop.Requested, f.Stop.Deadline, f.Stop.Delete, f.Stop.By, f.Stop.Reason}
			},
			[]any{at(5), at(7), true, "activeDeadlineSeconds", lifecycle.ReasonDeadlineExceeded},
		},
		{
			"the engine is away since the first word of it",
			history{tick(5), engineLost, tick(6), engineLost},
			func(f lifecycle.Facts) any { return f.EngineUnavailable }, at(5),
		},
		{
			"until it is back",
			history{tick(5), engineLost, tick(6), engineFound},
			func(f lifecycle.Facts) any { return f.EngineUnavailable },
			lifecycle.Instant{},
		},
		{
			"the newest word of a condition counts",
			history{gate("example.com/a", "False"), gate("example.com/b", "True"), gate("example.com/a", "True")},
			func(f lifecycle.Facts) any { return f.Conditions },
			map[lifecycle.ConditionType]lifecycle.SetCondition{
				"example.com/a": {Status: "True", Reason: "Why", Message: "because"},
				"example.com/b": {Status: "True", Reason: "Why", Message: "because"},
			},
		},
		{
			"a failed pull has a reason",
			history{pullFailed("app", 1, 4, "")},
			func(f lifecycle.Facts) any { return f.Containers["app"].Pull },
			lifecycle.Pull{For: 1, Requested: at(1), Failed: at(1), Level: 4, Next: 4, Reason: lifecycle.ReasonErrImagePull, Message: "no"},
		},
		{
			"which stays while it is tried again",
			history{pullFailed("app", 1, 4, "X"), tick(9), pull("app", 1, 5)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Pull },
			lifecycle.Pull{For: 1, Requested: at(9), Failed: at(1), Level: 4, Next: 5, Reason: "X", Message: "no"},
		},
		{
			"until that succeeds",
			history{pullFailed("app", 1, 4, "X"), tick(9), pulled("app", 1)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Pull },
			lifecycle.Pull{For: 1, Requested: at(9), Done: at(9), Failed: at(1), Level: 4, Next: 1},
		},
		{
			"or another run's begins",
			history{pullFailed("app", 1, 4, "X"), tick(9), pull("app", 2, 5)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Pull },
			lifecycle.Pull{For: 2, Requested: at(9), Failed: at(1), Level: 4, Next: 5},
		},
		{
			"of which an earlier one's failure is none",
			history{pull("app", 1, 4), tick(9), pull("app", 2, 5), failed(pull("app", 1, 4), oops)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Pull },
			lifecycle.Pull{For: 2, Requested: at(9), Next: 5},
		},
		{
			"a cancelled pull did not happen",
			history{pull("app", 1, 4), lifecycle.CancelPull{Container: "app", For: 1}, failed(pull("app", 1, 4), oops)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Pull },
			lifecycle.Pull{Cancelled: at(1), Next: 4},
		},
		{
			"an absent engine is no failure of the image",
			history{failing(pull("app", 1, 4), away)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Pull },
			lifecycle.Pull{For: 1, Requested: at(1), Retry: at(1), Next: 4},
		},
		{
			"a stop adds up",
			history{stopped(time.Minute), tick(5), deleted(time.Second), forced},
			func(f lifecycle.Facts) any { return f.Stop },
			lifecycle.Stop{Requested: at(1), Deadline: at(5), Force: true, Delete: true, By: "a test", ByUser: true},
		},
		{
			"the grace period that is in force is the one that is over first",
			history{stopped(time.Minute), tick(5), stopped(10 * time.Second), tick(6), stopped(30 * time.Second)},
			func(f lifecycle.Facts) any { return []any{f.Stop.Deadline, f.Stop.Grace} },
			[]any{at(15), 10 * time.Second},
		},
		{
			"an eviction is not what somebody wanted",
			history{tick(5), happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.PodEvicted{Message: "full", At: t} })},
			func(f lifecycle.Facts) any { return f.Stop },
			lifecycle.Stop{Requested: at(5), Deadline: at(6), Grace: time.Second, By: "the supervisor", Reason: lifecycle.ReasonEvicted, Message: "full"},
		},
		{
			"a removal that failed is noted",
			history{lifecycle.RemovePod{}, tick(2), failed(lifecycle.RemovePod{}, oops)},
			func(f lifecycle.Facts) any { return f.Removal },
			lifecycle.Removal{Requested: at(1), Failed: at(2)},
		},
		{
			"until it is asked for again",
			history{lifecycle.RemovePod{}, failed(lifecycle.RemovePod{}, oops), tick(2), lifecycle.RemovePod{}},
			func(f lifecycle.Facts) any { return f.Removal },
			lifecycle.Removal{Requested: at(2)},
		},
		{
			"so is that of a run",
			history{ran("app", 1, 1), failing(reap("app", 1), oops)},
			func(f lifecycle.Facts) any { return f.Containers["app"].Newest.Removal },
			lifecycle.Removal{Requested: at(1), Failed: at(1)},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, row.part(fold(row.past))); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

// TestApplyLeavesTheReceiver holds a snapshot while the facts go on.
func TestApplyLeavesTheReceiver(t *testing.T) {
	facts := fold(history{up(), running("app", 1)})
	before := text(facts)
	facts.Apply(exited("app", 1, 1)(at(9)))
	facts.Apply(lifecycle.Booted{Saved: at(1), At: lifecycle.Instant{Boot: "2"}})
	if after := text(facts); after != before {
		t.Errorf("the facts were\n%s\nand are\n%s", before, after)
	}
}
