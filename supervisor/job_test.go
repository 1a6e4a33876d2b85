package supervisor_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// jobPod returns a pod of a Job of five pods, two of which run at the same time and two of which must succeed.
func jobPod(index int32, command string) *spec.Pod {
	p := pod(fmt.Sprint("sum-", index), spec.RestartOnFailure, command)
	five, two := int32(5), int32(2)
	p.Job = &spec.Job{
		Name: "sum", Index: index, Completions: &five, Parallelism: &two,
		SuccessPolicy: &spec.SuccessPolicy{Rules: []spec.SuccessRule{{SucceededCount: &two}}},
	}
	return p
}

// addJob adds the pods of a Job: the first runs until it is stopped, the others succeed after a minute.
func (m *machine) addJob() {
	m.t.Helper()
	m.add(jobPod(0, "sleep 31536000"))
	for i := range int32(4) {
		m.add(jobPod(i+1, "sleep 60"))
	}
}

// expectJob checks the phases of the pods of a Job, or the reasons of their phases.
func (m *machine) expectJob(want string) {
	m.t.Helper()
	synctest.Wait()
	got := ""
	for i := range 5 {
		s, _ := m.Pod(fmt.Sprint("sum-", i))
		text := string(s.Status.Phase)
		if s.Status.Reason != "" {
			text = string(s.Status.Reason)
		}
		got += " " + text
	}
	if got != " "+want {
		m.t.Errorf("pods of the Job:%s, want %s", got, want)
	}
}

const jobComplete = "JobComplete Succeeded Succeeded JobComplete JobComplete"

// TestJob checks that a Job ends when two of its pods have succeeded, also across kills of the daemon and a reboot.
func TestJob(t *testing.T) {
	for name, disturb := range map[string]func(*machine){
		"undisturbed": func(*machine) {},
		"kill":        (*machine).restartKilled,
		"reboot": func(m *machine) {
			m.crash()
			m.engine.Reboot()
			m.boot += "'"
			m.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, fakeruntime.Options{})
				m.start()
				m.addJob()
				time.Sleep(30 * time.Second)
				m.expectJob("Running Running WaitingFor WaitingFor WaitingFor")
				m.expectMessage("sum-2", "WaitingFor waiting for job sum: parallelism of 2 reached")
				if name == "kill" {
					disturb(m)
					m.expectJob("Running Running WaitingFor WaitingFor WaitingFor")
				}
				time.Sleep(10 * time.Minute)
				m.expectJob(jobComplete)
				m.expectMessage("sum-4", "JobComplete Job sum completed (SuccessPolicy): Matched rules at index 0")
				ended := 0
				events, _ := m.Events().Since(0)
				for i := range events {
					if events[i].Kind == api.EventPodJobEnded {
						ended++
					}
				}
				if ended != 3 {
					t.Errorf("%d pods were stopped with their Job, want 3", ended)
				}
				disturb(m)
				time.Sleep(time.Hour)
				m.expectJob(jobComplete)
				for _, s := range m.Pods() {
					waited := s.Pod.Job.Index > 2
					if waited == (s.Facts.Sandbox.N > 0) || s.Facts.Job.Ended.IsZero() || !s.AtRest {
						t.Errorf("pod %s: sandbox %d, %+v", s.Pod.Name, s.Facts.Sandbox.N, s.Facts.Job)
					}
				}
			})
		})
	}
}

// TestJobEndLost checks that a pod of a Job does not start again at boot if the power failed before it had recorded the end of the Job.
func TestJobEndLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.addJob()
		time.Sleep(90 * time.Second)
		m.expectJob("Running Succeeded Running WaitingFor WaitingFor")
		running, waiting := m.saved("sum-0"), m.saved("sum-3")
		time.Sleep(10 * time.Minute)
		m.expectJob(jobComplete)
		m.crash()
		m.disk.files["sum-0"], m.disk.files["sum-3"] = running, waiting
		m.engine.Reboot()
		m.boot += "'"
		m.start()
		time.Sleep(time.Hour)
		m.expectJob(jobComplete)
		if s, _ := m.Pod("sum-0"); s.Facts.Container("c0").Newest.N() != running.Facts.Container("c0").Newest.N() {
			t.Errorf("sum-0 was started again: %+v", s.Status)
		}
	})
}

// saved returns what the disk has of a pod.
func (m *machine) saved(pod string) state.Pod {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	return m.disk.files[pod]
}

// TestJobTTL checks that ttlSecondsAfterFinished counts from the end of the Job.
func TestJobTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		ttl := spec.Seconds(30)
		for i := range int32(5) {
			p := jobPod(i, "sleep 60")
			if i == 1 {
				p = jobPod(i, "sleep 600")
			}
			p.Job.SuccessPolicy, p.TTLSecondsAfterFinished = nil, &ttl
			m.add(p)
		}
		time.Sleep(9 * time.Minute)
		m.expectJob("Succeeded Running Succeeded Succeeded Succeeded")
		if s, _ := m.Pod("sum-0"); s.Facts.Collected() {
			t.Error("a pod was collected before the end of its Job")
		}
		time.Sleep(80 * time.Second)
		m.expectJob("Succeeded Succeeded Succeeded Succeeded Succeeded")
		if s, _ := m.Pod("sum-0"); s.Facts.Collected() {
			t.Error("a pod was collected too early after the end of its Job")
		}
		time.Sleep(time.Minute)
		for _, s := range m.Pods() {
			if !s.Facts.Collected() {
				t.Errorf("pod %s was not collected", s.Pod.Name)
			}
		}
	})
}

// TestJobDeleted checks that a Job whose pods were deleted starts anew, and that a pod that is added to one that has ended does not start.
func TestJobDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.addJob()
		time.Sleep(10 * time.Minute)
		m.expectJob(jobComplete)
		remove := func(name string) {
			if err := m.Stop(t.Context(), name, supervisor.StopOptions{Delete: true}); err != nil {
				t.Fatal(err)
			}
			m.untilRemoved(name)
		}
		remove("sum-3")
		m.add(jobPod(3, "sleep 60"))
		time.Sleep(time.Hour)
		m.expectJob(jobComplete)
		if s, _ := m.Pod("sum-3"); s.Facts.Sandbox.N > 0 {
			t.Error("a pod of a Job that has finished was started")
		}
		for i := range 5 {
			remove(fmt.Sprint("sum-", i))
		}
		m.addJob()
		time.Sleep(30 * time.Second)
		m.expectJob("Running Running WaitingFor WaitingFor WaitingFor")
	})
}

// TestJobBackoffLimit checks that failures of two pods count together, and that their exits are kept.
func TestJobBackoffLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		one := int32(1)
		for i := range int32(3) {
			p := jobPod(i, "exit 3")
			p.BackoffLimit, p.Job.BackoffLimit = &one, &one
			m.add(p)
		}
		m.until("sum-2", "stopped with its Job", func(s supervisor.Snapshot) bool { return s.Status.Phase == lifecycle.PhaseFailed })
		m.expectMessage("sum-2", "JobFailed Job sum failed (BackoffLimitExceeded): Job has reached the specified backoff limit")
		failures := func() (n int) {
			synctest.Wait()
			for _, s := range m.Pods() {
				n += s.Facts.Container("c0").Failures
			}
			return n
		}
		before := failures()
		m.restartKilled()
		time.Sleep(time.Hour)
		if after := failures(); before < 2 || after != before {
			t.Errorf("%d failures, and %d after a restart", before, after)
		}
		for _, s := range m.Pods() {
			if !s.AtRest {
				t.Errorf("pod %s runs: %+v", s.Pod.Name, s.Status)
			}
		}
	})
}
