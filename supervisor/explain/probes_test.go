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
		{"ready", pod(forever), func(w *world) { w.add(); time.Sleep(time.Hour) }},
		{"liveness-failed", checked(pod(server), liveness), func(w *world) {
			w.add()
			time.Sleep(55 * time.Second)
			w.probes("echo HTTP 500; exit 1")
			time.Sleep(31 * time.Second)
			w.probes("true")
			time.Sleep(time.Minute)
		}},
		{"liveness-failed-sigkill", checked(pod(forever), liveness), func(w *world) {
			w.probes("exit 1")
			w.add()
			time.Sleep(35 * time.Second)
			w.probes("true")
			time.Sleep(2 * time.Hour)
		}},
		{"startup-failed", checked(pod(server), startup), func(w *world) {
			w.probes("echo not yet; exit 1")
			w.add()
			time.Sleep(25 * time.Second)
		}},
		{"readiness-pending", checked(pod(server), readiness), func(w *world) {
			w.probes("echo no database; exit 1")
			w.add()
			time.Sleep(time.Hour)
		}},
		{"readiness-failed", checked(pod(server), readiness), func(w *world) {
			w.add()
			time.Sleep(65 * time.Second)
			w.probes("echo no database; exit 1")
			time.Sleep(time.Minute)
		}},
		{"readiness-gate", gated, func(w *world) { w.add(); time.Sleep(time.Minute) }},
		{"poststart-hook-failed", hooked, func(w *world) {
			w.probes("exit 1")
			w.add()
			time.Sleep(time.Second)
		}},
		{"poststart-hook-crash-loop", hooked, func(w *world) {
			w.probes("echo no database; exit 1")
			w.add()
			time.Sleep(45 * time.Second)
		}},
		{"poststart-hook-running", hooked, func(w *world) {
			w.probes("sleep 100")
			w.add()
			time.Sleep(time.Minute)
		}},
		{"exit-while-daemon-down-poststart-hook", unhooked, func(w *world) {
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
	})
}
