package explain_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestStops(t *testing.T) {
	seconds := spec.Seconds(60)
	expiring := pod(server)
	expiring.ActiveDeadlineSeconds = &seconds
	slowEnd := pod(forever)
	slowEnd.InitContainers = []spec.Container{
		{Name: "side", Image: "i:1", RestartPolicy: spec.RestartAlways, Command: []string{"sh", "-c", server}},
	}
	slowEnd.Containers[0].Lifecycle = &spec.Lifecycle{PreStop: &spec.LifecycleHandler{Exec: &spec.ExecAction{Command: []string{"hook"}}}}
	unpulled := pod(server)
	unpulled.ActiveDeadlineSeconds = &seconds
	half := pod("sleep 3")
	half.RestartPolicy = spec.RestartNever
	half.Containers = append(half.Containers, spec.Container{Name: "other", Image: "i:1", Command: []string{"sh", "-c", forever}})
	early := pod(server)
	early.InitContainers = []spec.Container{{Name: "wait", Image: "i:1", Command: []string{"sh", "-c", server}}}
	missing := pod(forever)
	missing.Containers[0].ImagePullPolicy = spec.PullNever
	missingInit := pod(server)
	missingInit.InitContainers = []spec.Container{
		{Name: "wait", Image: "i:2", Command: []string{"sh", "-c", server}, ImagePullPolicy: spec.PullNever},
	}
	ending := pod("sleep 2")
	ending.RestartPolicy = spec.RestartNever
	ending.InitContainers = []spec.Container{
		{Name: "slow", Image: "i:1", RestartPolicy: spec.RestartAlways, Command: []string{"sh", "-c", forever}},
		{Name: "fast", Image: "i:1", RestartPolicy: spec.RestartAlways, Command: []string{"sh", "-c", server}},
	}
	explains(t, []scenario{
		{"sidecars-stopping", ending, func(w *world) { w.add(); w.sleep(4 * time.Second) }},
		{"evicted", pod(server), func(w *world) {
			w.add()
			w.sleep(time.Minute)
			s, _ := w.Pod("web")
			w.engine.Evict(s.Facts.UID, "Usage of EmptyDir volume \"data\" exceeds the limit \"64Mi\".")
			w.sleep(time.Minute)
		}},
		{"deadline", expiring, func(w *world) { w.add(); w.sleep(2 * time.Minute) }},
		{"stop", pod(server), func(w *world) {
			w.add()
			w.sleep(time.Minute)
			w.stop(supervisor.StopOptions{})
			w.sleep(time.Minute)
		}},
		{"deleted", pod("sleep 100; exit 3"), func(w *world) {
			w.add()
			w.sleep(2 * time.Minute)
			w.stop(supervisor.StopOptions{Delete: true})
			w.sleep(time.Minute)
		}},
		{"stop-after-init-container-failed", stubborn(staged("sleep 2; exit 4")), func(w *world) {
			w.add()
			w.sleep(5 * time.Second)
			w.stop(supervisor.StopOptions{})
			w.sleep(time.Minute)
		}},
		{"stop-init-container-running", staged("sleep 100"), func(w *world) {
			w.add()
			w.sleep(time.Minute)
			w.stop(supervisor.StopOptions{})
			w.sleep(time.Second)
		}},
		{"deadline-image-not-pulled", unpulled, func(w *world) {
			w.fails.Store(&failure{"PullImage", lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull, Message: "connection refused"}})
			w.add()
			w.sleep(2 * time.Minute)
		}},
		{"stop-during-init", early, func(w *world) {
			w.add()
			w.sleep(time.Second)
			w.stop(supervisor.StopOptions{})
			w.sleep(time.Minute)
		}},
		{"stop-image-never-pull", missing, func(w *world) {
			w.add()
			w.sleep(15 * time.Second)
			w.stop(supervisor.StopOptions{})
			w.sleep(time.Minute)
		}},
		{"stop-init-image-never-pull", missingInit, func(w *world) {
			w.add()
			w.sleep(15 * time.Second)
			w.stop(supervisor.StopOptions{})
			w.sleep(time.Minute)
		}},
		{"stop-during-start", pod(server), func(w *world) {
			w.slow.Store(true)
			w.add()
			w.sleep(time.Second)
			w.stop(supervisor.StopOptions{})
			w.sleep(time.Minute)
		}},
		{"stop-after-one-container-completed", half, func(w *world) {
			w.add()
			w.sleep(time.Minute)
			w.stop(supervisor.StopOptions{})
			w.sleep(time.Minute)
		}},
		{"stop-prestop-hook-running", slowEnd, func(w *world) {
			w.probes("sleep 5")
			w.add()
			w.sleep(time.Minute)
			w.stop(supervisor.StopOptions{})
			w.sleep(3 * time.Second)
		}},
		{"stop-signal-sent", slowEnd, func(w *world) {
			w.probes("sleep 5")
			w.add()
			w.sleep(time.Minute)
			w.stop(supervisor.StopOptions{})
			w.sleep(7 * time.Second)
		}},
		{"stop-without-grace-period", pod(forever), func(w *world) {
			w.add()
			w.sleep(time.Minute)
			var none time.Duration
			w.stop(supervisor.StopOptions{Grace: &none})
			w.sleep(time.Minute)
		}},
		{"stop-exit-0", pod("trap 'exit 0' TERM; sleep 31536000"), func(w *world) {
			w.add()
			w.sleep(time.Minute)
			w.stop(supervisor.StopOptions{})
			w.sleep(time.Minute)
		}},
	})
}
