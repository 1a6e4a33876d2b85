package explain_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/explain"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

var update = flag.Bool("update", false, "write what the stories are expected to be anew")

// reboot restarts the machine beside a pod that has run for an hour.
func (w *world) reboot() {
	w.add()
	time.Sleep(time.Hour)
	w.leave()
	w.engine.Reboot()
	w.boot = "2"
	w.start()
	time.Sleep(time.Minute)
}

// TestStories holds what people are told against testdata. With -update it writes that.
func TestStories(t *testing.T) {
	const server, forAYear = "trap 'exit 143' TERM; sleep 31536000", "sleep 31536000"
	seconds := spec.Seconds(60)
	expiring := pod(server)
	expiring.ActiveDeadlineSeconds = &seconds
	gated := pod(forAYear)
	gated.ReadinessGates = []spec.ReadinessGate{{ConditionType: "example.org/door"}}
	hooked := pod(forAYear)
	hooked.Containers[0].Lifecycle = &spec.Lifecycle{PostStart: &spec.LifecycleHandler{Exec: &spec.ExecAction{Command: []string{"hook"}}}}
	unhooked := pod("sleep 10; exit 3")
	unhooked.Containers[0].Lifecycle = hooked.Containers[0].Lifecycle
	slowEnd := pod(forAYear)
	slowEnd.InitContainers = []spec.Container{{Name: "side", Image: "i:1", RestartPolicy: spec.RestartAlways, Command: []string{"sh", "-c", server}}}
	slowEnd.Containers[0].Lifecycle = &spec.Lifecycle{PreStop: &spec.LifecycleHandler{Exec: &spec.ExecAction{Command: []string{"hook"}}}}
	never := pod("sleep 3; exit 4")
	never.RestartPolicy = spec.RestartNever
	unpulled := pod(server)
	unpulled.ActiveDeadlineSeconds = &seconds
	half := pod("sleep 3")
	half.RestartPolicy = spec.RestartNever
	half.Containers = append(half.Containers, spec.Container{Name: "other", Image: "i:1", Command: []string{"sh", "-c", forAYear}})
	ahead := pod(forAYear)
	ahead.Containers = append(ahead.Containers, spec.Container{Name: "other", Image: "i:1", Command: []string{"sh", "-c", forAYear}})
	early := pod(server)
	early.InitContainers = []spec.Container{{Name: "wait", Image: "i:1", Command: []string{"sh", "-c", server}}}
	initialized := pod(forAYear)
	initialized.InitContainers = []spec.Container{{Name: "prepare", Image: "i:1", Command: []string{"sh", "-c", "sleep 3"}}}
	missing := pod(forAYear)
	missing.Containers[0].ImagePullPolicy = spec.PullNever
	missingInit := pod(server)
	missingInit.InitContainers = []spec.Container{{Name: "wait", Image: "i:2", Command: []string{"sh", "-c", server}, ImagePullPolicy: spec.PullNever}}
	all := pod("sleep 5; exit 42")
	all.Containers[0].RestartPolicy = spec.RestartNever
	all.Containers[0].RestartPolicyRules = []spec.RestartRule{{
		Action: "RestartAllContainers", ExitCodes: &spec.ExitCodes{Operator: "In", Values: []int32{42}},
	}}
	all.Containers = append(all.Containers, spec.Container{Name: "other", Image: "i:1", Command: []string{"sh", "-c", server}})
	again := staged("sleep 5; exit 42")
	again.InitContainers[1].RestartPolicy, again.InitContainers[1].RestartPolicyRules = spec.RestartNever, all.Containers[0].RestartPolicyRules
	crashing := staged("sleep 100")
	crashing.InitContainers[0].Command = []string{"sh", "-c", "sleep 1; exit 1"}
	everything := staged("sleep 3")
	everything.Containers[0].Command = []string{"sh", "-c", "sleep 5; exit 42"}
	everything.Containers[0].RestartPolicy, everything.Containers[0].RestartPolicyRules = spec.RestartNever, all.Containers[0].RestartPolicyRules
	for _, test := range []struct {
		name string
		pod  *spec.Pod
		live func(w *world) // begins before the pod does, which it adds
	}{
		{"nothing", pod(forAYear), func(w *world) { w.add(); time.Sleep(time.Hour) }},
		{"liveness", checked(pod(server), liveness), func(w *world) {
			w.add()
			time.Sleep(55 * time.Second)
			w.probes("echo HTTP 500; exit 1")
			time.Sleep(31 * time.Second)
			w.probes("true")
			time.Sleep(time.Minute)
		}},
		{"liveness-kill-in-vain", checked(pod(forAYear), liveness), func(w *world) {
			w.probes("exit 1")
			w.add()
			time.Sleep(35 * time.Second)
			w.probes("true")
			time.Sleep(2 * time.Hour)
		}},
		{"startup", checked(pod(server), startup), func(w *world) {
			w.probes("echo not yet; exit 1")
			w.add()
			time.Sleep(25 * time.Second)
		}},
		{"not-ready", checked(pod(server), readiness), func(w *world) {
			w.probes("echo no database; exit 1")
			w.add()
			time.Sleep(time.Hour)
		}},
		{"crash-loop", pod("sleep 3; exit 1"), func(w *world) { w.add(); time.Sleep(10 * time.Minute) }},
		{"crash-loop-over-restarts", pod("sleep 3; exit 1"), func(w *world) {
			w.add()
			time.Sleep(2 * time.Minute)
			w.leave()
			time.Sleep(time.Second)
			w.start()
			time.Sleep(time.Minute)
		}},
		{"ended-unseen", pod("sleep 100; exit 1"), func(w *world) {
			w.add()
			time.Sleep(time.Minute)
			w.leave()
			time.Sleep(time.Minute)
			w.start()
			time.Sleep(time.Minute)
		}},
		{"ephemeral", all, func(w *world) {
			w.add()
			time.Sleep(7 * time.Second) // once
			debug := spec.Container{Name: "debug", Image: "i:1", Command: []string{"sh", "-c", "sleep 1; exit 3"}}
			if err := w.AddEphemeral(w.t.Context(), "web", "", &debug, "test"); err != nil {
				w.t.Fatal(err)
			}
			time.Sleep(4 * time.Second) // and again
		}},
		{"boot", pod(forAYear), (*world).reboot},
		{"boot-init", initialized, (*world).reboot},
		{"out-of-memory", pod(forAYear), func(w *world) {
			w.add()
			time.Sleep(time.Minute)
			s, _ := w.Pod("web")
			w.engine.Crash(s.Facts.UID, "app", lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonOOMKilled})
			time.Sleep(time.Minute)
		}},
		{"image", pod(forAYear), func(w *world) {
			w.fails.Store(&failure{"PullImage", lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull, Message: "connection refused"}})
			w.add()
			time.Sleep(time.Minute)
		}},
		{"image-comes", pod(forAYear), func(w *world) {
			w.fails.Store(&failure{"PullImage", lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull, Message: "connection refused"}})
			w.add()
			time.Sleep(35 * time.Second)
			w.fails.Store(nil)
			other := pod(forAYear)
			other.Name = "other"
			if _, err := w.Add(other, state.Owner{By: "test"}); err != nil {
				w.t.Fatal(err)
			}
			time.Sleep(25 * time.Second) // the next pull would be after 70 s
		}},
		{"image-never", missing, func(w *world) { w.add(); time.Sleep(15 * time.Second) }},
		{"volume", pod(forAYear), func(w *world) {
			w.fails.Store(&failure{"StartSandbox", lifecycle.Failure{Reason: lifecycle.ReasonFailedMount, Message: "hostPath /data: no such file or directory"}})
			w.add()
			time.Sleep(time.Minute)
		}},
		{"volume-came", pod(forAYear), func(w *world) {
			w.fails.Store(&failure{"StartSandbox", lifecycle.Failure{Reason: lifecycle.ReasonFailedMount, Message: "no disk"}})
			w.add()
			time.Sleep(time.Minute)
			w.fails.Store(nil)
			time.Sleep(time.Hour)
		}},
		{"refused", pod(forAYear), func(w *world) {
			w.fails.Store(&failure{"StartContainer", lifecycle.Failure{
				Kind: lifecycle.FailureNotCreated, Reason: lifecycle.ReasonCreateConfigError, Message: "no config map \"shop\"",
			}})
			w.add()
			time.Sleep(15 * time.Second)
		}},
		{"hook", hooked, func(w *world) {
			w.probes("exit 1")
			w.add()
			time.Sleep(time.Second)
		}},
		{"evicted", pod(server), func(w *world) {
			w.add()
			time.Sleep(time.Minute)
			s, _ := w.Pod("web")
			w.engine.Overuse(s.Facts.UID, "Usage of EmptyDir volume \"data\" exceeds the limit \"64Mi\".")
			time.Sleep(time.Minute)
		}},
		{"deadline", expiring, func(w *world) { w.add(); time.Sleep(2 * time.Minute) }},
		{"stopped", pod(server), func(w *world) {
			w.add()
			time.Sleep(time.Minute)
			w.stop(supervisor.StopOptions{})
			time.Sleep(time.Minute)
		}},
		{"deleted", pod("sleep 100; exit 3"), func(w *world) {
			w.add()
			time.Sleep(2 * time.Minute)
			w.stop(supervisor.StopOptions{Delete: true})
			time.Sleep(time.Minute)
		}},
		{"init", staged("sleep 100"), func(w *world) { w.add(); time.Sleep(time.Minute) }},
		{"sidecar-image", staged("sleep 100"), func(w *world) {
			w.fails.Store(&failure{"PullImage", lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull, Message: "connection refused"}})
			w.add()
			time.Sleep(time.Second)
		}},
		{"init-fails", staged("sleep 2; exit 4"), func(w *world) { w.add(); time.Sleep(time.Minute) }},
		{"init-fails-behind-stubborn-sidecar", stubborn(staged("sleep 2; exit 4")), func(w *world) { w.add(); time.Sleep(5 * time.Second) }},
		{"stopped-after-failure", stubborn(staged("sleep 2; exit 4")), func(w *world) {
			w.add()
			time.Sleep(5 * time.Second)
			w.stop(supervisor.StopOptions{})
			time.Sleep(time.Minute)
		}},
		{"init-is-deleted", staged("sleep 100"), func(w *world) {
			w.add()
			time.Sleep(time.Minute)
			w.stop(supervisor.StopOptions{})
			time.Sleep(time.Second)
		}},
		{"hook-runs", hooked, func(w *world) {
			w.probes("sleep 100")
			w.add()
			time.Sleep(time.Minute)
		}},
		{"start-ahead", ahead, func(w *world) {
			w.slow.Store(true)
			w.add()
			time.Sleep(time.Second)
		}},
		{"hook-ended-unseen", unhooked, func(w *world) {
			w.probes("sleep 100")
			w.add()
			time.Sleep(time.Second)
			w.leave()
			time.Sleep(time.Minute)
			w.probes("true")
			w.fails.Store(&failure{"WaitContainer", lifecycle.Failure{Message: "not now"}}) // the hook is asked for before the end is heard of
			w.start()
			time.Sleep(100 * time.Millisecond)
			w.fails.Store(nil)
			time.Sleep(2 * time.Second)
		}},
		{"one-is-done", half, func(w *world) { w.add(); time.Sleep(time.Minute) }},
		{"deadline-before-start", unpulled, func(w *world) {
			w.fails.Store(&failure{"PullImage", lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull, Message: "connection refused"}})
			w.add()
			time.Sleep(2 * time.Minute)
		}},
		{"restart-all-in-init", again, func(w *world) { w.add(); time.Sleep(9 * time.Second) }},
		{"restart-all-behind-init", everything, func(w *world) { w.add(); time.Sleep(10 * time.Second) }},
		{"sidecar-crashes-in-init", crashing, func(w *world) { w.add(); time.Sleep(5 * time.Second) }},
		{"restart-under-way", pod("sleep 3; exit 1"), func(w *world) {
			w.add()
			time.Sleep(time.Second)
			w.slow.Store(true)
			time.Sleep(3 * time.Second)
		}},
		{"stopped-early", early, func(w *world) {
			w.add()
			time.Sleep(time.Second)
			w.stop(supervisor.StopOptions{})
			time.Sleep(time.Minute)
		}},
		{"stopped-waiting", missing, func(w *world) {
			w.add()
			time.Sleep(15 * time.Second)
			w.stop(supervisor.StopOptions{})
			time.Sleep(time.Minute)
		}},
		{"stopped-waiting-init", missingInit, func(w *world) {
			w.add()
			time.Sleep(15 * time.Second)
			w.stop(supervisor.StopOptions{})
			time.Sleep(time.Minute)
		}},
		{"stopped-starting", pod(server), func(w *world) {
			w.slow.Store(true)
			w.add()
			time.Sleep(time.Second)
			w.stop(supervisor.StopOptions{})
			time.Sleep(time.Minute)
		}},
		{"failed", never, func(w *world) { w.add(); time.Sleep(time.Minute) }},
		{"failed-over-a-restart", never, func(w *world) {
			w.add()
			time.Sleep(time.Minute)
			w.leave()
			time.Sleep(time.Second)
			w.start()
			time.Sleep(time.Minute)
		}},
		{"done-before-a-stop", half, func(w *world) {
			w.add()
			time.Sleep(time.Minute)
			w.stop(supervisor.StopOptions{})
			time.Sleep(time.Minute)
		}},
		{"memory-of-a-child", pod(forAYear), func(w *world) {
			w.add()
			time.Sleep(time.Minute)
			s, _ := w.Pod("web")
			w.engine.Crash(s.Facts.UID, "app", lifecycle.Exit{Reason: lifecycle.ReasonOOMKilled})
			time.Sleep(time.Second)
		}},
		{"image-long", pod(forAYear), func(w *world) {
			w.fails.Store(&failure{"PullImage", lifecycle.Failure{
				Reason: lifecycle.ReasonErrImagePull, Message: "failed to resolve " + strings.Repeat("a/", 200) + ": connection refused",
			}})
			w.add()
			time.Sleep(time.Second)
		}},
		{"hook-again", hooked, func(w *world) {
			w.probes("echo no database; exit 1")
			w.add()
			time.Sleep(45 * time.Second)
		}},
		{"before-the-signal", slowEnd, func(w *world) {
			w.probes("sleep 5")
			w.add()
			time.Sleep(time.Minute)
			w.stop(supervisor.StopOptions{})
			time.Sleep(3 * time.Second)
		}},
		{"after-the-signal", slowEnd, func(w *world) {
			w.probes("sleep 5")
			w.add()
			time.Sleep(time.Minute)
			w.stop(supervisor.StopOptions{})
			time.Sleep(7 * time.Second)
		}},
		{"by-force", pod(forAYear), func(w *world) {
			w.add()
			time.Sleep(time.Minute)
			var none time.Duration
			w.stop(supervisor.StopOptions{Grace: &none})
			time.Sleep(time.Minute)
		}},
		{"stopped-well", pod("trap 'exit 0' TERM; sleep 31536000"), func(w *world) {
			w.add()
			time.Sleep(time.Minute)
			w.stop(supervisor.StopOptions{})
			time.Sleep(time.Minute)
		}},
		{"not-ready-any-more", checked(pod(server), readiness), func(w *world) {
			w.add()
			time.Sleep(65 * time.Second)
			w.probes("echo no database; exit 1")
			time.Sleep(time.Minute)
		}},
		{"restart-all", all, func(w *world) { w.add(); time.Sleep(9 * time.Second) }},
		{"gate", gated, func(w *world) { w.add(); time.Sleep(time.Minute) }},
		{"engine-away", pod(forAYear), func(w *world) {
			w.fails.Store(&failure{"StartSandbox", lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "no engine"}})
			w.add()
			time.Sleep(time.Minute)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.pod = test.pod
				test.live(w)
				s := w.story()
				got, path := w.text(s), filepath.Join("testdata", test.name+".txt")
				if *update {
					if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("the story (-want +got; -update writes it):\n%s", diff)
				}
			})
		})
	}
}

// A pod that was refused, after one of its name that ran, or never was.
func TestRefused(t *testing.T) {
	refused := event.Event{Seq: 3, Kind: event.PodRejected, Pod: "web", Fields: map[string]string{"error": "NodePorts: taken", "hint": "take another"}}
	for _, before := range [][]event.Event{nil, {{Seq: 1, Kind: event.PodAccepted, Pod: "web", UID: "u"}, {Seq: 2, Kind: event.PodRemoved, Pod: "web", UID: "u"}}} {
		s, known := explain.Gone(append(before, refused))
		want := "was refused: NodePorts: taken; to mend it, take another"
		if !known || s.Pod != "web" || s.UID != "" || s.Well || s.Summary != want || len(s.Steps) != 1 || s.Steps[0].Text != "the pod was refused: NodePorts: taken" {
			t.Errorf("after %v: %+v", before, s)
		}
	}
}
