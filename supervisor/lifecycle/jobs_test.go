package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// jobPods returns the pods of a Job in states, one for each index, which a text has separated by spaces:
//
//	wait           it waits for its turn
//	turn           it may start
//	run, run:N     it runs, after N failures
//	ok             it has succeeded
//	fail, fail:N   it has failed for good with exit code N
//	late           it has exceeded its activeDeadlineSeconds
//	stop           a person has stopped it
//	off            it stops with the host, and starts again
//	held           it is not supervised
//	ended          its Job has finished
//	again          a person has started it again afterwards, and it runs
//	new            the same, and it waits
//	gone           it is being deleted
func jobPods(t *testing.T, job *spec.Job, states string) []lifecycle.JobPod {
	t.Helper()
	var pods []lifecycle.JobPod
	for i, text := range strings.Fields(states) {
		own := *job
		own.Name, own.Index = "sum", int32(i)
		zero := int32(0)
		p := lifecycle.JobPod{
			Pod:   &spec.Pod{Name: fmt.Sprint("sum-", i), RestartPolicy: spec.RestartNever, Job: &own, BackoffLimit: &zero},
			Facts: &lifecycle.Facts{Containers: map[string]*lifecycle.Container{}}, Phase: lifecycle.PhasePending,
		}
		p.Pod.Containers = []spec.Container{{Name: "app"}}
		state, number, _ := strings.Cut(text, ":")
		n := 0
		_, _ = fmt.Sscan(number, &n)
		f := p.Facts
		started := state != "wait" && state != "turn" && state != "new"
		if started {
			f.Wait.Ended = at(1)
		}
		ends := func(phase lifecycle.Phase, code int) {
			p.Phase = phase
			f.Containers["app"] = &lifecycle.Container{Newest: lifecycle.Attempt{
				Ref: lifecycle.Ref{Container: "app", Round: 1, Attempt: 1}, Requested: at(1), Started: at(1), Exited: at(2),
				Exit: lifecycle.Exit{Code: code},
			}}
		}
		switch state {
		case "wait":
		case "turn":
			f.Wait.Conditions = map[string]lifecycle.WaitedFor{"job:sum": {Met: at(1)}}
		case "run":
			p.Phase = lifecycle.PhaseRunning
			f.Containers["app"] = &lifecycle.Container{Failures: n}
		case "ok":
			ends(lifecycle.PhaseSucceeded, 0)
		case "fail":
			ends(lifecycle.PhaseFailed, max(n, 1))
			f.Containers["app"].Failures = 1
		case "late":
			p.Phase = lifecycle.PhaseFailed
			f.Stop = lifecycle.Stop{Requested: at(2), Reason: lifecycle.ReasonDeadlineExceeded}
		case "stop":
			ends(lifecycle.PhaseFailed, 143)
			f.Stop = lifecycle.Stop{Requested: at(2), ByUser: true}
		case "off":
			p.Phase, p.Pod.RestartPolicy = lifecycle.PhaseFailed, spec.RestartOnFailure
			f.Stop = lifecycle.Stop{Requested: at(2), Reason: lifecycle.ReasonTerminated}
		case "held":
			p.Phase = lifecycle.PhaseUnknown
			f.Containers["app"] = &lifecycle.Container{Failures: 100}
		case "ended":
			p.Phase = lifecycle.PhaseFailed
			f.Job = lifecycle.JobPart{Ended: at(2), Reason: lifecycle.ReasonSuccessPolicy, Message: "before"}
		case "redone":
			ends(lifecycle.PhaseSucceeded, 0)
			f.Job.Run = 1
		case "again", "new":
			f.Job.Run = 1
		case "gone":
			p.Phase = lifecycle.PhaseFailed
			f.Stop = lifecycle.Stop{Requested: at(2), Delete: true}
		default:
			t.Fatalf("unknown state %q", text)
		}
		pods = append(pods, p)
	}
	return pods
}

func number(n int32) *int32 { return new(n) }

// TestEndOfJob checks why a Job ends. The order of the rules is that of the Job controller.
func TestEndOfJob(t *testing.T) {
	five := spec.Job{Completions: number(5)}
	with := func(change func(*spec.Job)) spec.Job {
		job := five
		change(&job)
		return job
	}
	success := func(rules ...spec.SuccessRule) spec.Job {
		return with(func(j *spec.Job) { j.SuccessPolicy = &spec.SuccessPolicy{Rules: rules} })
	}
	two := success(spec.SuccessRule{SucceededCount: number(2)})
	leaders := success(spec.SuccessRule{SucceededIndexes: "4"}, spec.SuccessRule{SucceededIndexes: "0-2", SucceededCount: number(1)},
		spec.SuccessRule{SucceededIndexes: "0-2"})
	perIndex := with(func(j *spec.Job) { j.BackoffLimitPerIndex = number(1) })
	atMostOne := with(func(j *spec.Job) { j.BackoffLimitPerIndex, j.MaxFailedIndexes = number(0), number(1) })
	limit := func(n int32) spec.Job { return with(func(j *spec.Job) { j.BackoffLimit = &n }) }
	policy := with(func(j *spec.Job) {
		j.BackoffLimitPerIndex = number(0)
		j.PodFailurePolicy = &spec.PodFailurePolicy{Rules: []spec.PodFailureRule{
			{Action: spec.ActionFailIndex, OnExitCodes: &spec.OnExitCodes{Operator: "In", Values: []int32{3}}},
			{Action: spec.ActionFailJob, OnExitCodes: &spec.OnExitCodes{ContainerName: "app", Operator: "NotIn", Values: []int32{1}}},
		}}
	})
	everything := with(func(j *spec.Job) {
		j.BackoffLimit, j.BackoffLimitPerIndex, j.MaxFailedIndexes = number(3), number(0), number(0)
		j.SuccessPolicy = two.SuccessPolicy
	})
	const backoff = "BackoffLimitExceeded Job has reached the specified backoff limit"
	const completed = "CompletionsReached Reached expected number of succeeded pods"
	const tooMany = "MaxFailedIndexesExceeded Job has exceeded the specified maximal number of failed indexes"
	for _, row := range []struct {
		name   string
		job    spec.Job
		states string
		want   string
	}{
		{"it continues", five, "ok ok run wait wait", ""},
		{"all have succeeded", five, "ok ok ok ok ok", completed},
		{"a pod does not exist", five, "ok ok ok ok", ""},
		{"a pod is stopped by a person", five, "ok ok ok ok stop", ""},
		{"a pod stops with the host", five, "ok ok ok ok off", ""},
		{"a pod is not supervised", five, "ok ok ok ok held", ""},

		{"failures of all pods count", limit(3), "run:2 run:2 wait wait wait", backoff},
		{"as many as allowed", limit(3), "run:2 run:1 wait wait wait", ""},
		{"the default is 6", five, "run:3 run:3 wait wait wait", ""},
		{"one more than the default", five, "run:3 run:4 wait wait wait", backoff},
		{"no restarts", limit(0), "fail run wait wait wait", backoff},
		{
			"a pod that is not started again", five, "fail run wait wait wait",
			"BackoffLimitExceeded Pod sum-0 failed and is not started again",
		},
		{"a deadline", five, "ok late wait wait wait", "DeadlineExceeded Job was active longer than specified deadline"},

		{"an index fails alone", perIndex, "fail run wait wait wait", ""},
		{"all others have succeeded", perIndex, "fail ok ok ok ok", "FailedIndexes Job has failed indexes"},
		{"as many failed indexes as allowed", atMostOne, "fail ok ok run wait", ""},
		{"too many failed indexes", atMostOne, "fail fail ok run wait", tooMany},

		{"FailJob", policy, "fail:7 run wait wait wait", "PodFailurePolicy Container app for pod default/sum-0 failed with exit code 7 " +
			"matching FailJob rule at index 1"},
		{"the first rule that matches", policy, "fail:3 run wait wait wait", ""},
		{"no rule that matches", policy, "fail:1 run wait wait wait", ""},

		{"fewer than succeededCount", two, "ok run run wait wait", ""},
		{"succeededCount", two, "ok run run ok wait", "SuccessPolicy Matched rules at index 0"},
		{"other indexes", leaders, "run run run ok wait", ""},
		{"one of succeededIndexes", leaders, "run ok run run wait", "SuccessPolicy Matched rules at index 1"},
		{"an earlier rule", leaders, "run ok run run ok", "SuccessPolicy Matched rules at index 0"},

		{"the limit before maxFailedIndexes and successPolicy", everything, "fail fail fail fail ok", backoff},
		{"maxFailedIndexes before successPolicy", everything, "fail ok ok run wait", tooMany},
		{
			"successPolicy before completions", success(spec.SuccessRule{SucceededCount: number(5)}), "ok ok ok ok ok",
			"SuccessPolicy Matched rules at index 0",
		},

		{"without completions, a pod runs", spec.Job{}, "ok run", ""},
		{"without completions, all have terminated", spec.Job{}, "ok ok", completed},
		{"without completions, a pod stops with the host", spec.Job{Parallelism: number(2)}, "ok off", ""},
		{"without completions, a pod is not accepted yet", spec.Job{Parallelism: number(2)}, "ok", ""},
		{"without completions, the only pod of the next run", spec.Job{Parallelism: number(2)}, "redone ended", completed},

		{"it has ended before", two, "ok ended wait run:100", "SuccessPolicy before"},
		{"the next run continues", two, "again ended ended ended ended", ""},
		{"the pods that were started again have succeeded", five, "redone ended ended ended ended", completed},
		{"one of them runs", five, "redone again ended ended ended", ""},
		{"deleted pods do not count", two, "gone ok gone run wait", ""},
		{"all are deleted", two, "gone gone", ""},
	} {
		end, unaware := lifecycle.EndOfJob(jobPods(t, &row.job, row.states), at(9))
		if got := strings.TrimSpace(string(end.Reason) + " " + end.Message); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
		told := 0
		for state := range strings.FieldsSeq(row.states) {
			if row.want != "" && state != "ended" {
				told++
			}
		}
		if len(unaware) != told || end.Ended.IsZero() != (row.want == "") {
			t.Errorf("%s: ended %v, unaware are %v", row.name, end.Ended, unaware)
		}
	}
}

// TestJobTurn checks which pods of a Job may start.
func TestJobTurn(t *testing.T) {
	for _, row := range []struct {
		parallelism int32
		states      string
		want        string // the indexes of the waiting pods that may start
	}{
		{2, "wait wait wait wait", "0 1"},
		{2, "run wait wait", "1"},
		{2, "turn wait wait", "1"},
		{2, "run run wait", ""},
		{2, "ok run wait wait", "2"},
		{2, "ok ok wait wait wait", "2 3"},
		{2, "stop run wait wait", "2"},
		{2, "gone run wait wait", "2"},
		{2, "held run wait", ""},
		{2, "wait run run", ""},   // after a reboot, or one that was started out of its turn
		{2, "wait wait run", "0"}, // the same
		{0, "wait wait", ""},
		{1, "ended wait", ""},       // it has ended, and the pod is told so
		{1, "new ended ended", "0"}, // a person has started it again
		{1, "again new ended", ""},  // both of them
		{1, "new new new", "0"},     // all
		{2, "ended again new", "2"}, // pods of the run before do not count
		{1, "fail wait", ""},        // the Job fails
		{9, "run run wait wait", "2 3"},
	} {
		pods := jobPods(t, &spec.Job{Completions: number(9), Parallelism: &row.parallelism}, row.states)
		var may []string
		for i, state := range strings.Fields(row.states) {
			if state == "wait" || state == "new" {
				if lifecycle.JobTurn(pods[i].Pod.Name, lifecycle.JobTurns(pods, at(9))) == "" {
					may = append(may, fmt.Sprint(i))
				}
			}
		}
		if got := strings.Join(may, " "); got != row.want {
			t.Errorf("parallelism %d, %s: %q may start, want %q", row.parallelism, row.states, got, row.want)
		}
	}
	for states, want := range map[string]int{"run wait": 0, "ended ended": 1, "again ended": 1, "new again": 1} {
		if got := lifecycle.NextRun(jobPods(t, &spec.Job{}, states)); got != want {
			t.Errorf("%s: the next run is %d, want %d", states, got, want)
		}
	}
	pods := jobPods(t, &spec.Job{Parallelism: number(1)}, "run wait")
	if got := lifecycle.JobTurn("sum-1", lifecycle.JobTurns(pods, at(9))); got != "parallelism of 1 reached" {
		t.Errorf("the reason is %q", got)
	}
	if got := lifecycle.JobTurn("other", lifecycle.JobTurns(pods, at(9))); got != "not found" {
		t.Errorf("the reason of another pod is %q", got)
	}
}

// TestJobEnds checks what becomes of a pod whose Job has finished.
func TestJobEnds(t *testing.T) {
	p := podOf(spec.RestartNever, "app")
	p.Job = &spec.Job{Name: "sum"}
	grace := lifecycle.EffectiveGrace(p, nil).Period
	end := func(reason lifecycle.Reason) lifecycle.JobEnded {
		return lifecycle.JobEnded{Part: lifecycle.JobPart{Run: 2, Ended: at(5), Reason: reason, Message: "why"}}
	}
	told := func(reason lifecycle.Reason) happened {
		return func(lifecycle.Instant) lifecycle.Event { return end(reason) }
	}
	fail := func(reason lifecycle.Reason, message string) do {
		return do{lifecycle.FailPod{Reason: reason, Message: message, Grace: grace}}
	}
	live := history{up(), running("app", 1)}
	stopped := lifecycle.StopRequested{Grace: lifecycle.EffectiveGrace(p, nil), At: at(4)}
	decisions{
		{
			now: 6, name: "one that runs, of a Job that has completed", pod: p, past: history{live, told(lifecycle.ReasonSuccessPolicy)},
			want: fail(lifecycle.ReasonJobComplete, "Job sum completed (SuccessPolicy): why"),
		},
		{
			now: 6, name: "one that waits, of a Job that has failed", pod: p, past: history{told(lifecycle.ReasonBackoffLimit)},
			want: fail(lifecycle.ReasonJobFailed, "Job sum failed (BackoffLimitExceeded): why"),
		},
		{
			now: 6, name: "one that has succeeded", pod: p, past: history{live, exited("app", 1, 0), told(lifecycle.ReasonSuccessPolicy)},
			want: do{lifecycle.RemoveSandbox{Sandbox: 1}},
		},
	}.check(t)
	f := lifecycle.Facts{Accepted: at(1)}.Apply(end(lifecycle.ReasonFailedIndexes))
	if again := f.Apply(end(lifecycle.ReasonSuccessPolicy)); again.Job != f.Job {
		t.Errorf("a second end replaces the first: %+v", again.Job)
	}
	if f := f.Apply(stopped); f.Job.Ended.IsZero() {
		t.Error("a stop forgets the end of the Job")
	}
	if f := f.Apply(lifecycle.RestartRequested{JobRun: 5, At: at(7)}); f.Job != (lifecycle.JobPart{Run: 5}) {
		t.Errorf("after the start by a person: %+v", f.Job)
	}
	running := lifecycle.Facts{Accepted: at(1)}.Apply(lifecycle.RestartRequested{At: at(7)})
	if running.Job != (lifecycle.JobPart{}) {
		t.Errorf("a restart before the end of the Job: %+v", running.Job)
	}
}
