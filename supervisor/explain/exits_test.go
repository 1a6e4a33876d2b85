package explain_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestExits(t *testing.T) {
	database, serial, group := pod("exit 1"), pod("exit 1"), int64(999)
	database.SecurityContext = &spec.PodSecurityContext{FSGroup: &group}
	serial.Volumes = []spec.Volume{{Name: "tty", HostPath: &spec.HostPathVolume{Path: "/dev/ttyUSB0"}}}
	serial.Containers[0].VolumeMounts = []spec.VolumeMount{{Name: "tty", MountPath: "/dev/ttyUSB0"}}
	atMostTwice, two := pod("sleep 3; exit 3"), int32(2)
	atMostTwice.Containers[0].MaxRestarts = &two
	never := pod("sleep 3; exit 4")
	never.RestartPolicy = spec.RestartNever
	half := pod("sleep 3")
	half.RestartPolicy = spec.RestartNever
	half.Containers = append(half.Containers, spec.Container{Name: "other", Image: "i:1", Command: []string{"sh", "-c", forever}})
	initialized := pod(forever)
	initialized.InitContainers = []spec.Container{{Name: "prepare", Image: "i:1", Command: []string{"sh", "-c", "sleep 3"}}}
	all := pod("sleep 5; exit 42")
	all.Containers[0].RestartPolicy = spec.RestartNever
	all.Containers[0].RestartPolicyRules = []spec.RestartRule{{
		Action: "RestartAllContainers", ExitCodes: &spec.ExitCodes{Operator: "In", Values: []int32{42}},
	}}
	all.Containers = append(all.Containers, spec.Container{Name: "other", Image: "i:1", Command: []string{"sh", "-c", server}})
	job := pod("sleep 5; exit 42")
	limit := int32(2)
	job.RestartPolicy, job.BackoffLimit = spec.RestartNever, &limit
	job.Containers = append(job.Containers, spec.Container{Name: "done", Image: "i:1", Command: []string{"sh", "-c", "sleep 1"}})
	for i := range job.Containers {
		job.Containers[i].RestartPolicy, job.Containers[i].RestartPolicyRules = spec.RestartNever, []spec.RestartRule{{
			Action: "RestartAllContainers", ExitCodes: &spec.ExitCodes{Operator: "NotIn", Values: []int32{0}},
		}}
	}
	again := staged("sleep 5; exit 42")
	again.InitContainers[1].RestartPolicy, again.InitContainers[1].RestartPolicyRules = spec.RestartNever,
		all.Containers[0].RestartPolicyRules
	both := pod(forever)
	both.Containers = append(both.Containers,
		spec.Container{Name: "other", Image: "i:1", Command: []string{"sh", "-c", "sleep 10; exit 1"}})
	once, limited, line := pod(forever), pod(forever), pod("")
	line.Containers[0].Command = []string{"httpd -f -p 80"}
	once.RestartPolicy = spec.RestartNever
	limited.Containers[0].Resources.Limits = spec.ResourceList{spec.ResourceMemory: resource.MustParse("64Mi")}
	leaves := func(w *world) {
		w.add()
		w.sleep(time.Minute)
		w.leave()
		w.sleep(time.Second)
		w.start()
		w.sleep(time.Minute)
	}
	explains(t, []scenario{
		{"crash-loop", pod("sleep 3; exit 1"), func(w *world) { w.add(); w.sleep(10 * time.Minute) }},
		{"crash-loop-daemon-restart", pod("sleep 3; exit 1"), func(w *world) {
			w.add()
			w.sleep(2 * time.Minute)
			w.leave()
			w.sleep(time.Second)
			w.start()
			w.sleep(time.Minute)
		}},
		{"exit-while-daemon-down", pod("sleep 100; exit 1"), func(w *world) {
			w.add()
			w.sleep(time.Minute)
			w.leave()
			w.sleep(time.Minute)
			w.start()
			w.sleep(time.Minute)
		}},
		{"healthy-daemon-restart", pod(forever), leaves},
		{"running-daemon-restart", both, leaves},
		{"restart-in-progress", pod("sleep 3; exit 1"), func(w *world) {
			w.add()
			w.sleep(time.Second)
			w.slow.Store(true)
			w.sleep(3 * time.Second)
		}},
		{"oom-killed", pod(forever), func(w *world) {
			w.add()
			w.sleep(time.Minute)
			s, _ := w.Pod("web")
			w.engine.Crash(s.Facts.UID, "app", lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonOOMKilled})
			w.sleep(time.Minute)
		}},
		{"oom-killed-memory-limit", limited, func(w *world) {
			w.log = []string{"loading index", "allocating 64 MiB"}
			w.add()
			w.sleep(time.Minute)
			s, _ := w.Pod("web")
			w.engine.Crash(s.Facts.UID, "app", lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonOOMKilled, MemoryPeak: 64 << 20})
			w.sleep(time.Second)
		}},
		{"command-not-found", pod("exit 127"), func(w *world) {
			w.log = []string{"sh: serve: not found"}
			w.add()
			w.sleep(time.Second)
		}},
		{"command-is-one-line", line, func(w *world) {
			w.add()
			w.sleep(time.Second)
		}},
		{"segmentation-fault", pod("sleep 3; exit 139"), func(w *world) { w.add(); w.sleep(5 * time.Second) }},
		{"termination-message", once, func(w *world) {
			w.log = []string{"one", "two", "three", "four"}
			w.add()
			w.sleep(5 * time.Second)
			s, _ := w.Pod("web")
			w.engine.Crash(s.Facts.UID, "app", lifecycle.Exit{Code: 2, Message: "cannot open /data/db:\npermission denied"})
			w.sleep(time.Second)
		}},
		{"exec-format-error-other-architecture", pod("exit 255"), func(w *world) {
			w.log = []string{"exec /bin/app: exec format error"}
			w.architecture = "arm64"
			w.add()
			w.sleep(time.Second)
		}},
		{"oom-killed-child-process", pod(forever), func(w *world) {
			w.add()
			w.sleep(time.Minute)
			s, _ := w.Pod("web")
			w.engine.Crash(s.Facts.UID, "app", lifecycle.Exit{Reason: lifecycle.ReasonOOMKilled})
			w.sleep(time.Second)
		}},
		{"failed", never, func(w *world) { w.add(); w.sleep(time.Minute) }},
		{"failed-daemon-restart", never, func(w *world) {
			w.add()
			w.sleep(time.Minute)
			w.leave()
			w.sleep(time.Second)
			w.start()
			w.sleep(time.Minute)
		}},
		{"fs-group-database", database, func(w *world) {
			w.log = []string{
				`FATAL:  data directory "/var/lib/postgresql/data" has invalid permissions`,
				"DETAIL:  Permissions should be u=rwx (0700) or u=rwx,g=rx (0750).",
			}
			w.add()
			w.sleep(time.Second)
		}},
		{"device-in-volume", serial, func(w *world) {
			w.log = []string{"cat: can't open '/dev/ttyUSB0': Operation not permitted"}
			w.add()
			w.sleep(time.Second)
		}},
		{"max-restarts", atMostTwice, func(w *world) { w.add(); w.sleep(time.Hour) }},
		{"one-container-completed", half, func(w *world) { w.add(); w.sleep(time.Minute) }},
		{"ephemeral-container", all, func(w *world) {
			w.add()
			w.sleep(7 * time.Second) // once
			debug := spec.Container{Name: "debug", Image: "i:1", Command: []string{"sh", "-c", "sleep 1; exit 3"}}
			if err := w.AddEphemeral(w.t.Context(), "web", "", &debug, "test"); err != nil {
				w.t.Fatal(err)
			}
			w.sleep(4 * time.Second) // and again
		}},
		{"retries", job, func(w *world) { w.add(); w.sleep(18 * time.Second) }},
		{"retry-in-back-off", job, func(w *world) { w.add(); w.sleep(28 * time.Second) }},
		{"retry-after-power-loss", job, func(w *world) {
			w.add()
			w.sleep(9 * time.Second)
			w.losePower("2")
		}},
		{"restart-all-containers", all, func(w *world) { w.add(); w.sleep(9 * time.Second) }},
		{"host-reboot", pod(forever), (*world).reboot},
		{"host-reboot-init-container", initialized, (*world).reboot},
		{"power-loss", pod(forever), func(w *world) {
			w.add()
			w.sleep(time.Hour)
			w.losePower("2")
		}},
	})
}
