package simulate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/simulate"
)

// jobOf returns the pods of an indexed Job with fields of its spec.
func jobOf(tb rapid.TB, policy string, fields ...string) []*spec.Pod {
	tb.Helper()
	text := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: sum}\nspec:\n  completionMode: Indexed\n  " + strings.Join(fields, "\n  ") +
		"\n  template: {spec: {restartPolicy: " + policy + ", containers: [{name: app, image: \"i:1\"}]}}\n"
	pods, err := parse("sum.yaml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return pods
}

// jobWorld is a host with the pods of a Job.
type jobWorld struct {
	*simulate.World
	pods []*simulate.Pod
	most int // the largest number of processes at one time
}

// newJobWorld returns a host with pods whose containers run as runs has it by index. Those beyond the end of runs succeed after a minute.
func newJobWorld(pods []*spec.Pod, runs ...simulate.Run) *jobWorld {
	w := &jobWorld{World: simulate.New()}
	for i, pod := range pods {
		run := simulate.Run{Lasts: time.Minute}
		if i < len(runs) {
			run = runs[i]
		}
		p := w.Add(pod, simulate.Script{Then: map[string]simulate.Run{"app": run}})
		p.Observe = func(simulate.Step) {
			n := 0
			for _, other := range w.pods {
				n += other.Processes()
			}
			w.most = max(w.most, n)
		}
		w.pods = append(w.pods, p)
	}
	return w
}

// states are the phases of the pods, with the reason of each that its Job has finished, and the number of starts of its container.
func (w *jobWorld) states() string {
	var list []string
	for _, p := range w.pods {
		s := lifecycle.StatusOf(p.Spec, p.Facts, w.Now())
		text := string(s.Phase)
		if s.Reason != "" {
			text = string(s.Reason)
		}
		list = append(list, fmt.Sprint(text, "/", p.Facts.Container("app").Newest.N()))
	}
	return strings.Join(list, " ")
}

func (w *jobWorld) run(t *testing.T, until time.Duration) {
	t.Helper()
	if err := w.Run(until); err != nil {
		t.Fatal(err)
	}
}

// TestJobs checks what becomes of the pods of a Job, without and with a crash of the daemon and a power cut every 50 seconds.
func TestJobs(t *testing.T) {
	fails := simulate.Run{Lasts: time.Second, Exit: lifecycle.Exit{Code: 1}}
	forever := simulate.Run{Forever: true}
	for _, row := range []struct {
		name   string
		policy string
		fields []string
		runs   []simulate.Run
		most   int
		want   string
	}{
		{
			"the next index starts when an earlier one has finished", "Never",
			[]string{"completions: 5", "parallelism: 2"},
			nil, 2,
			"Succeeded/1 Succeeded/1 Succeeded/1 Succeeded/1 Succeeded/1",
		},
		{
			"also when it has failed", "Never",
			[]string{"completions: 4", "parallelism: 1", "backoffLimitPerIndex: 0"},
			[]simulate.Run{fails, fails},
			1, "BackoffLimitExceeded/1 BackoffLimitExceeded/1 Succeeded/1 Succeeded/1",
		},
		{
			"failures of several pods count together", "OnFailure",
			[]string{"completions: 3", "parallelism: 2", "backoffLimit: 3"},
			[]simulate.Run{fails, fails},
			2, "JobFailed/2 JobFailed/2 JobFailed/0",
		},
		{
			"the same with Never", "Never",
			[]string{"completions: 3", "parallelism: 2", "backoffLimit: 1"},
			[]simulate.Run{fails, fails},
			2, "JobFailed/1 JobFailed/1 JobFailed/0",
		},
		{
			"successPolicy", "Never",
			[]string{"completions: 5", "parallelism: 2", "successPolicy: {rules: [{succeededCount: 2}]}"},
			[]simulate.Run{forever},
			2, "JobComplete/1 Succeeded/1 Succeeded/1 JobComplete/0 JobComplete/0",
		},
		{
			"maxFailedIndexes", "Never",
			[]string{"completions: 5", "parallelism: 2", "backoffLimitPerIndex: 0", "maxFailedIndexes: 1"},
			[]simulate.Run{fails, forever, fails},
			2,
			"BackoffLimitExceeded/1 JobFailed/1 BackoffLimitExceeded/1 JobFailed/0 JobFailed/0",
		},
		{
			"FailJob", "Never",
			[]string{
				"completions: 3", "parallelism: 2", "backoffLimit: 6",
				"podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [1]}}]}",
			},
			[]simulate.Run{fails, forever},
			2, "Failed/1 JobFailed/1 JobFailed/0",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newJobWorld(jobOf(t, row.policy, row.fields...), row.runs...)
			w.run(t, time.Hour)
			if got := w.states(); got != row.want || w.most != row.most {
				t.Errorf("%s, at most %d at the same time, want %s, %d", got, w.most, row.want, row.most)
			}
			w.Crash(time.Second)
			w.run(t, 2*time.Hour)
			w.Cut(time.Second, true)
			w.run(t, 3*time.Hour)
			if got := w.states(); got != row.want {
				t.Errorf("after a crash of the daemon and a power cut: %s, want %s", got, row.want)
			}
		})
	}
}

// TestJobStartedAgain checks that the start of a pod by a person opens the next run of a Job that has finished.
func TestJobStartedAgain(t *testing.T) {
	pods := jobOf(t, "Never", "completions: 3", "parallelism: 1", "successPolicy: {rules: [{succeededCount: 1}]}")
	w := newJobWorld(pods)
	w.run(t, time.Hour)
	if got, want := w.states(), "Succeeded/1 JobComplete/0 JobComplete/0"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	w.At(time.Hour, func() { w.pods[2].Restart() })
	w.run(t, time.Hour+30*time.Second)
	if got, want := w.states(), "Succeeded/1 JobComplete/0 Running/1"; got != want {
		t.Errorf("one pod was started: %s, want %s", got, want)
	}
	w.run(t, 2*time.Hour)
	if got, want := w.states(), "Succeeded/1 JobComplete/0 Succeeded/1"; got != want {
		t.Errorf("it has succeeded: %s, want %s", got, want)
	}
	w.At(2*time.Hour, func() {
		for _, p := range w.pods {
			p.Restart()
		}
	})
	w.run(t, 3*time.Hour)
	if got, want := w.states(), "Succeeded/2 JobComplete/0 JobComplete/1"; got != want {
		t.Errorf("all were started: %s, want %s", got, want)
	}
}

// TestJobWaits checks what a pod reports that waits for its turn, and that is stopped with its Job.
func TestJobWaits(t *testing.T) {
	pods := jobOf(t, "Never", "completions: 3", "parallelism: 1", "successPolicy: {rules: [{succeededIndexes: \"0\"}]}")
	w := newJobWorld(pods)
	w.run(t, 30*time.Second)
	s := lifecycle.StatusOf(w.pods[1].Spec, w.pods[1].Facts, w.Now())
	if want := "waiting for job sum: parallelism of 1 reached"; s.Reason != lifecycle.ReasonWaitingFor || s.Message != want {
		t.Errorf("%s %q, want %q", s.Reason, s.Message, want)
	}
	w.run(t, time.Hour)
	events, _ := w.Events().Since(0)
	var got []string
	for _, e := range events {
		if e.Pod == "sum-1" {
			got = append(got, e.Message)
		}
	}
	want := []string{
		"Waiting for job:sum", "Stopping pod: Job sum completed (SuccessPolicy): Matched rules at index 0", "Pod stopped",
	}
	if !slices.Equal(got, want) {
		t.Errorf("events of a pod that waits: %q, want %q", got, want)
	}
	if w.most != 1 {
		t.Errorf("%d pods ran at the same time", w.most)
	}
}

// TestJobWorlds runs Jobs whose pods fail and succeed at random while the daemon crashes and the power fails: there are never more pods
// than parallelism allows, the pods agree on how the Job has finished, nothing of it starts afterwards, and it ends.
func TestJobWorlds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		completions := rapid.IntRange(2, 6).Draw(t, "completions")
		parallelism := rapid.IntRange(1, 4).Draw(t, "parallelism")
		fields := []string{fmt.Sprint("completions: ", completions), fmt.Sprint("parallelism: ", parallelism)}
		if rapid.Bool().Draw(t, "perIndex") {
			fields = append(fields, "backoffLimitPerIndex: 1")
			if rapid.Bool().Draw(t, "maxFailedIndexes") {
				fields = append(fields, fmt.Sprint("maxFailedIndexes: ", rapid.IntRange(0, completions).Draw(t, "n")))
			}
		} else {
			fields = append(fields, fmt.Sprint("backoffLimit: ", rapid.IntRange(0, 4).Draw(t, "limit")))
		}
		if rapid.Bool().Draw(t, "successPolicy") {
			n := rapid.IntRange(1, completions).Draw(t, "succeededCount")
			fields = append(fields, fmt.Sprintf("successPolicy: {rules: [{succeededCount: %d}]}", n))
		}
		policy := rapid.SampledFrom([]string{"Never", "OnFailure"}).Draw(t, "policy")
		pods := jobOf(t, policy, fields...)
		w := newJobWorld(pods)
		for _, p := range w.pods {
			for range rapid.IntRange(1, 4).Draw(t, "runs") {
				run := simulate.Run{
					Lasts: time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second,
					Exit:  lifecycle.Exit{Code: rapid.IntRange(0, 1).Draw(t, "code")},
				}
				p.Script.Runs = map[string][]simulate.Run{"app": append(p.Script.Runs["app"], run)}
			}
			p.Script.Then["app"] = simulate.Run{Lasts: time.Second}
		}
		for range rapid.IntRange(0, 4).Draw(t, "faults") {
			at := time.Duration(rapid.IntRange(1, 300).Draw(t, "at")) * time.Second
			cut := rapid.Bool().Draw(t, "powerCut")
			w.At(at, func() {
				if cut {
					w.Cut(5*time.Second, true)
				} else {
					w.Crash(5 * time.Second)
				}
			})
		}
		if err := w.Run(4 * time.Hour); err != nil {
			t.Fatal(err)
		}
		if w.most > parallelism {
			t.Errorf("%d pods ran at the same time: %s", w.most, w.states())
		}
		ended := w.pods[0].Facts.Job
		for _, p := range w.pods {
			if part := p.Facts.Job; part.Ended.IsZero() || part.Reason != ended.Reason || p.Processes() > 0 {
				t.Fatalf("pod %s: %+v, %d processes: %s", p.Spec.Name, part, p.Processes(), w.states())
			}
		}
		before := w.states()
		w.Cut(5*time.Second, true)
		if err := w.Run(8 * time.Hour); err != nil {
			t.Fatal(err)
		}
		if after := w.states(); after != before {
			t.Errorf("after another boot: %s, before %s", after, before)
		}
	})
}
