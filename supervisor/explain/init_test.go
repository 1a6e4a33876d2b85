package explain_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestInitContainers(t *testing.T) {
	all := pod("sleep 5; exit 42")
	all.Containers[0].RestartPolicy = spec.RestartNever
	all.Containers[0].RestartPolicyRules = []spec.RestartRule{{
		Action: "RestartAllContainers", ExitCodes: &spec.ExitCodes{Operator: "In", Values: []int32{42}},
	}}
	all.Containers = append(all.Containers, spec.Container{Name: "other", Image: "i:1", Command: []string{"sh", "-c", server}})
	again := staged("sleep 5; exit 42")
	again.InitContainers[1].RestartPolicy, again.InitContainers[1].RestartPolicyRules = spec.RestartNever,
		all.Containers[0].RestartPolicyRules
	crashing := staged("sleep 100")
	crashing.InitContainers[0].Command = []string{"sh", "-c", "sleep 1; exit 1"}
	everything := staged("sleep 3")
	everything.Containers[0].Command = []string{"sh", "-c", "sleep 5; exit 42"}
	everything.Containers[0].RestartPolicy, everything.Containers[0].RestartPolicyRules = spec.RestartNever,
		all.Containers[0].RestartPolicyRules
	migrating := pod(server)
	migrating.InitContainers = []spec.Container{{Name: "migrate", Image: "registry.example/migrate:2", ImagePullPolicy: spec.PullNever}}
	explains(t, []scenario{
		{"init-container-running", staged("sleep 100"), func(w *world) { w.add(); w.sleep(time.Minute) }},
		{"init-container-failed", staged("sleep 2; exit 4"), func(w *world) { w.add(); w.sleep(time.Minute) }},
		{
			"init-container-failed-sidecar-stopping", stubborn(staged("sleep 2; exit 4")),
			func(w *world) { w.add(); w.sleep(5 * time.Second) },
		},
		{"init-container-image-never-pull", migrating, func(w *world) { w.add(); w.sleep(time.Second) }},
		{"sidecar-image-pull", staged("sleep 100"), func(w *world) {
			w.fails.Store(&failure{"PullImage", lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull, Message: "connection refused"}})
			w.add()
			w.sleep(time.Second)
		}},
		{"sidecar-crash-loop-during-init", crashing, func(w *world) { w.add(); w.sleep(5 * time.Second) }},
		{"restart-all-containers-by-init-container", again, func(w *world) { w.add(); w.sleep(9 * time.Second) }},
		{"restart-all-containers-init-running", everything, func(w *world) { w.add(); w.sleep(10 * time.Second) }},
	})
}
