package lifecycle

import (
	"testing"
	"time"
)

// TestTrialIsNumbered: each request has a number of its own. A client recognizes its request by it.
func TestTrialIsNumbered(t *testing.T) {
	var f Facts
	for n := 1; n <= 3; n++ {
		f = f.Apply(TrialBegun{Trial: Trial{RollsBack: n == 2}})
		if f.Trial.N != n || f.Trial.RollsBack != (n == 2) {
			t.Errorf("request %d: %+v", n, f.Trial)
		}
	}
}

// TestTrialAfterReboot: the time of a trial that has not ended counts from the reboot. Another trial stays as it was.
func TestTrialAfterReboot(t *testing.T) {
	old := Instant{Boot: "1", Mono: time.Minute}
	booted := Booted{Saved: old, At: Instant{Boot: "2", Mono: time.Second}}
	moved := Instant{Boot: "2", Mono: time.Second}
	for name, test := range map[string]struct{ before, after Trial }{
		"pending": {Trial{Since: old, Due: old}, Trial{Since: booted.At}},
		"passed":  {Trial{Since: old, Due: old, Passed: old}, Trial{Since: moved, Due: moved, Passed: moved}},
		"failed":  {Trial{Since: old, Due: old, Failed: old}, Trial{Since: moved, Due: moved, Failed: moved}},
		"none":    {Trial{}, Trial{}},
	} {
		if got := (Facts{Trial: test.before}).Apply(booted).Trial; got != test.after {
			t.Errorf("%s: %+v, want %+v", name, got, test.after)
		}
	}
}

// TestPodFailedText: the description of a failed pod has its reason, and the message of the pod before that of a run.
func TestPodFailedText(t *testing.T) {
	for _, test := range []struct {
		status    Status
		run, want string
	}{
		{Status{}, "", "the pod failed"},
		{Status{}, "container exited", "container exited"},
		{Status{Message: "too slow"}, "", "the pod failed: too slow"},
		{Status{Message: "too slow"}, "container exited", "the pod failed: too slow"},
		{Status{Reason: "Evicted"}, "", "the pod failed (Evicted)"},
		{Status{Reason: "Evicted"}, "container exited", "the pod failed (Evicted): container exited"},
		{Status{Reason: "Evicted", Message: "full"}, "container exited", "the pod failed (Evicted): full"},
	} {
		if got := podFailed(&test.status, test.run); got != test.want {
			t.Errorf("%+v and a run that %q: %q, want %q", test.status, test.run, got, test.want)
		}
	}
}

// TestFailureOfRun: a run that has exited since the request describes why it failed, and no other.
func TestFailureOfRun(t *testing.T) {
	at := func(seconds int) Instant {
		return Instant{Boot: "b", Mono: 1}.Add(time.Duration(seconds) * time.Second)
	}
	for name, test := range map[string]struct {
		run  Attempt
		want string
	}{
		"runs":                {Attempt{}, ""},
		"exit code":           {Attempt{Exited: at(9), Exit: Exit{Code: 3, Reason: ReasonError}}, "exited with code 3"},
		"OOM-killed":          {Attempt{Exited: at(9), Exit: Exit{Code: 137, Reason: ReasonOOMKilled}}, "was OOM-killed"},
		"completed":           {Attempt{Exited: at(9), Exit: Exit{Reason: ReasonCompleted}}, ""},
		"lost":                {Attempt{Exited: at(9), Exit: Exit{Code: 255, Reason: ReasonUnknown}}, ""},
		"stopped by a person": {Attempt{Exited: at(9), Exit: Exit{Code: 143}, StopReason: ReasonStopped}, ""},
	} {
		test.run.Requested = at(5)
		if got := test.run.failure(at(5)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if got := test.run.failure(at(6)); got != "" {
			t.Errorf("%s, requested before the request: %q", name, got)
		}
	}
}

// TestTimeOfPendingTrial: a start of the pod, and a time without supervision, change when a trial is due, if its time counts and it has not
// ended.
func TestTimeOfPendingTrial(t *testing.T) {
	at := func(seconds int) Instant {
		return Instant{Boot: "b", Mono: 1}.Add(time.Duration(seconds) * time.Second)
	}
	pending := Trial{Since: at(1), Within: 10 * time.Second, Due: at(11)}
	waits, passed, failed := pending, pending, pending
	waits.Due, passed.Passed, failed.Failed = Instant{}, at(5), at(5)
	for name, test := range map[string]struct {
		trial                        Trial
		startAgain, resume, prolong5 Instant // when it is due afterwards
	}{
		"pending":           {pending, Instant{}, at(110), at(16)},
		"its time waits":    {waits, Instant{}, Instant{}, Instant{}},
		"passed":            {passed, at(11), at(11), at(11)},
		"failed":            {failed, at(11), at(11), at(11)},
		"there is no trial": {Trial{}, Instant{}, Instant{}, Instant{}},
	} {
		a, b, c := test.trial, test.trial, test.trial
		a.startAgain()
		b.resume(at(100))
		c.prolong(5 * time.Second)
		if a.Due != test.startAgain || b.Due != test.resume || c.Due != test.prolong5 {
			t.Errorf("%s: due %v, %v and %v, want %v, %v and %v", name, a.Due, b.Due, c.Due, test.startAgain, test.resume, test.prolong5)
		}
	}
}
