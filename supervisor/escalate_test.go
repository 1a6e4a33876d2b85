package supervisor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/explain"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// rebooter answers requests to reboot the host.
type rebooter struct {
	answers []error
	pods    []string
}

func (r *rebooter) Reboot(_ context.Context, pod string) error {
	r.pods = append(r.pods, pod)
	err := r.answers[0]
	r.answers = r.answers[1:]
	return err
}

// unhealthyPod is a pod whose readiness probe always fails.
func unhealthyPod(last spec.UnhealthyStep) *spec.Pod {
	p := pod("p", spec.RestartAlways, "trap 'exit 0' TERM; sleep 100000 & wait")
	p.OnUnhealthy, p.UnhealthyAfterSeconds = last, 100
	p.Containers[0].ReadinessProbe = execProbe("bad")
	return p
}

func unhealthyMachine(t *testing.T, r supervisor.Rebooter) *machine {
	m := newMachine(t, fakeruntime.Options{Exec: newAnswers(map[string]string{"bad": "exit 1"}).program})
	m.rebooter = r
	m.start()
	return m
}

// kinds returns the messages of the events of a kind that were emitted.
func (m *machine) kinds(kind api.EventKind) (messages []string) {
	events, _ := m.Events().Since(0)
	for i := range events {
		if events[i].Kind == kind {
			messages = append(messages, events[i].Message)
		}
	}
	return messages
}

// TestEscalationOfPod checks the events of the steps, and that a reboot that is held back is explained and requested again.
func TestEscalationOfPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := lifecycle.Failure{Reason: lifecycle.ReasonRebootHeldBack, Message: "3 of at most 3 reboots in 24h of uptime"}
		r := &rebooter{answers: []error{held, held, errors.New("no systemctl"), nil}}
		m := unhealthyMachine(t, r)
		m.add(unhealthyPod(spec.UnhealthyReboot))
		time.Sleep(430 * time.Second)
		if got := m.kinds(api.EventPodEscalated); len(got) != 2 || !strings.Contains(got[0], "next step: restart all containers") ||
			!strings.Contains(got[1], "next step: replace the pod sandbox") {
			t.Errorf("steps: %q", got)
		}
		if len(r.pods) != 2 || r.pods[0] != "p" {
			t.Errorf("reboots were requested for %v", r.pods)
		}
		if got := m.kinds(api.EventRebootRequested); len(got) != 1 {
			t.Errorf("requests: %q", got)
		}
		if got := m.kinds(api.EventRebootHeldBack); !slices.Equal(got, []string{"The host is not rebooted: " + held.Message}) {
			t.Errorf("held back: %q", got)
		}
		s, _ := m.Pod("p")
		events, _ := m.Events().Since(0)
		e := explain.ForPod(&s, events, m.Now())
		if !strings.Contains(e.Escalation, "step 3 of 3, at ") || !strings.Contains(e.Escalation, held.Message) ||
			!strings.Contains(e.Escalation, "next step at ") {
			t.Errorf("why: %q", e.Escalation)
		}
		time.Sleep(200 * time.Second)
		want := []string{"Failed to reboot the host: no systemctl"}
		if got := m.kinds(api.EventRebootFailed); !slices.Equal(got, want) || len(r.pods) != 4 {
			t.Errorf("failed: %q, requests %v", got, r.pods)
		}
	})
}

// TestEscalationSurvivesTheDaemon checks that unready time and steps survive a daemon that is killed, and that no step follows at once when
// the daemon was down for long.
func TestEscalationSurvivesTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := unhealthyMachine(t, nil)
		m.checkpoints = &checkpoints{kept: map[string]state.Checkpoint{}}
		m.leave()
		m.start()
		m.add(unhealthyPod(spec.UnhealthyReplace))
		time.Sleep(90 * time.Second)
		m.restartKilled()
		time.Sleep(30 * time.Second) // 100s, but a minute after the restart
		if got := m.kinds(api.EventPodEscalated); len(got) != 0 {
			t.Errorf("steps directly after a restart: %q", got)
		}
		time.Sleep(31 * time.Second)
		if got := m.kinds(api.EventPodEscalated); len(got) != 1 {
			t.Errorf("steps a minute after a restart: %q", got)
		}
		m.restartKilled()
		time.Sleep(105 * time.Second)
		if got := m.kinds(api.EventPodEscalated); len(got) != 1 || !strings.Contains(got[0], "replace") {
			t.Errorf("steps after a further restart: %q", got)
		}
	})
}

// interrupted is a [supervisor.Rebooter] whose first request does not return before the daemon ends.
type interrupted struct{ rebooter }

func (r *interrupted) Reboot(ctx context.Context, pod string) error {
	if len(r.pods) == 0 {
		r.pods = append(r.pods, pod)
		<-ctx.Done()
		return ctx.Err()
	}
	return r.rebooter.Reboot(ctx, pod)
}

// TestInterruptedReboot checks that a daemon that was killed during a request to reboot does not repeat it at once, and not at all for a
// pod that has become ready.
func TestInterruptedReboot(t *testing.T) {
	for _, test := range []struct {
		recovers bool
		want     int
	}{{true, 1}, {false, 2}} {
		synctest.Test(t, func(t *testing.T) {
			answers := newAnswers(map[string]string{"bad": "exit 1"})
			m := newMachine(t, fakeruntime.Options{Exec: answers.program})
			r := &interrupted{rebooter{answers: []error{nil}}}
			m.rebooter = r
			m.start()
			m.add(unhealthyPod(spec.UnhealthyReboot))
			time.Sleep(330 * time.Second)
			synctest.Wait()
			if len(r.pods) != 1 {
				t.Fatalf("requests: %v", r.pods)
			}
			if test.recovers {
				answers.set("bad", "true")
			}
			m.restartKilled()
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(r.pods) != 1 {
				t.Errorf("recovers %t: the request was repeated at once", test.recovers)
			}
			if got := m.kinds(api.EventRebootFailed); len(got) != 1 || !strings.Contains(got[0], "interrupted") {
				t.Errorf("recovers %t: events %q", test.recovers, got)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(r.pods) != test.want {
				t.Errorf("recovers %t: %d requests, want %d", test.recovers, len(r.pods), test.want)
			}
		})
	}
}

// TestEscalationDoesNotWrite checks that a readiness probe that flaps does not write to the disk.
func TestEscalationDoesNotWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := newAnswers(map[string]string{"bad": "exit 1"})
		m := newMachine(t, fakeruntime.Options{Exec: answers.program})
		m.start()
		m.add(unhealthyPod(spec.UnhealthyReplace))
		time.Sleep(20 * time.Second)
		saves := m.saves()
		for range 20 {
			answers.set("bad", "true")
			time.Sleep(70 * time.Second)
			answers.set("bad", "exit 1")
			time.Sleep(40 * time.Second)
		}
		if n := m.saves(); n != saves {
			t.Errorf("%d writes", n-saves)
		}
	})
}
