package explain_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestProbes(t *testing.T) {
	gated := pod(forever)
	gated.ReadinessGates = []spec.ReadinessGate{{ConditionType: "example.org/door"}}
	hooked := pod(forever)
	hooked.Containers[0].Lifecycle = &spec.Lifecycle{PostStart: &spec.LifecycleHandler{Exec: &spec.ExecAction{Command: []string{"hook"}}}}
	unhooked := pod("sleep 10; exit 3")
	unhooked.Containers[0].Lifecycle = hooked.Containers[0].Lifecycle
	explains(t, []scenario{
		{"ready", pod(forever), func(w *world) { w.add(); w.sleep(time.Hour) }},
		{"liveness-failed", checked(pod(server), liveness), func(w *world) {
			w.add()
			w.sleep(55 * time.Second)
			w.probes("echo HTTP 500; exit 1")
			w.sleep(31 * time.Second)
			w.probes("true")
			w.sleep(time.Minute)
		}},
		{"liveness-failed-sigkill", checked(pod(forever), liveness), func(w *world) {
			w.probes("exit 1")
			w.add()
			w.sleep(35 * time.Second)
			w.probes("true")
			w.sleep(2 * time.Hour)
		}},
		{"startup-failed", checked(pod(server), startup), func(w *world) {
			w.probes("echo no index; exit 1")
			w.add()
			w.sleep(25 * time.Second)
		}},
		{"readiness-pending", checked(pod(server), readiness), func(w *world) {
			w.probes("echo no database; exit 1")
			w.add()
			w.sleep(time.Hour)
		}},
		{"readiness-failed", checked(pod(server), readiness), func(w *world) {
			w.add()
			w.sleep(65 * time.Second)
			w.probes("echo no database; exit 1")
			w.sleep(time.Minute)
		}},
		{"readiness-gate", gated, func(w *world) { w.add(); w.sleep(time.Minute) }},
		{"poststart-hook-failed", hooked, func(w *world) {
			w.probes("exit 1")
			w.add()
			w.sleep(time.Second)
		}},
		{"poststart-hook-crash-loop", hooked, func(w *world) {
			w.probes("echo no database; exit 1")
			w.add()
			w.sleep(45 * time.Second)
		}},
		{"poststart-hook-running", hooked, func(w *world) {
			w.probes("sleep 100")
			w.add()
			w.sleep(time.Minute)
		}},
		{"exit-while-daemon-down-poststart-hook", unhooked, func(w *world) {
			w.probes("sleep 100")
			w.add()
			w.sleep(time.Second)
			w.leave()
			w.sleep(time.Minute)
			w.probes("true")
			// the hook is asked for before the end is heard of
			w.fails.Store(&failure{"WaitContainer", lifecycle.Failure{Message: "not now"}})
			w.start()
			w.sleep(100 * time.Millisecond)
			w.fails.Store(nil)
			w.sleep(2 * time.Second)
		}},
	})
}
