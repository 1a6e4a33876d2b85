package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

func TestStarts(t *testing.T) {
	ahead := pod(forever)
	ahead.Containers = append(ahead.Containers, spec.Container{Name: "other", Image: "i:1", Command: []string{"sh", "-c", forever}})
	archived := pod(forever)
	archived.ImageArchives = []string{"/srv/shop.tar"}
	waiting := pod(forever)
	waiting.WaitFor = []string{"pod:db:ready"}
	missing := pod(forever)
	missing.Containers[0].ImagePullPolicy = spec.PullNever
	explains(t, []scenario{
		{"image-pull-backoff", pod(forever), func(w *world) {
			w.fails.Store(&failure{"PullImage", lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull, Message: "connection refused"}})
			w.add()
			w.sleep(time.Minute)
		}},
		{"image-pull-recovered", pod(forever), func(w *world) {
			w.fails.Store(&failure{"PullImage", lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull, Message: "connection refused"}})
			w.add()
			w.sleep(35 * time.Second)
			w.fails.Store(nil)
			other := pod(forever)
			other.Name = "other"
			if _, err := w.Add(other, state.Owner{By: "test"}); err != nil {
				w.t.Fatal(err)
			}
			w.sleep(25 * time.Second) // the next pull would be after 70 s
		}},
		{"image-signature", pod(forever), func(w *world) {
			w.fails.Store(&failure{"PullImage", lifecycle.Failure{
				Reason: lifecycle.ReasonSignatureValidation,
				Message: `signature validation failed: images.verify prefix "docker.io" requires a signature by ` +
					`/etc/podstead/keys/shop.pub: no signature of sha256:1234 found`,
			}})
			w.add()
			w.sleep(time.Minute)
		}},
		{"image-pull-long-error", pod(forever), func(w *world) {
			w.fails.Store(&failure{"PullImage", lifecycle.Failure{
				Reason: lifecycle.ReasonErrImagePull, Message: "failed to resolve " + strings.Repeat("a/", 200) + ": connection refused",
			}})
			w.add()
			w.sleep(time.Second)
		}},
		{"image-never-pull", missing, func(w *world) { w.add(); w.sleep(15 * time.Second) }},
		{"image-pulling", pod(forever), func(w *world) {
			w.fetch = &lifecycle.Progress{Done: 12_345_678, Total: 80 << 20}
			w.add()
			w.sleep(time.Second)
		}},
		{"image-unpacking", pod(forever), func(w *world) {
			w.fetch = &lifecycle.Progress{Done: 12_345_678, Total: 80 << 20, Unpacking: true}
			w.add()
			w.sleep(time.Second)
		}},
		{"image-importing", archived, func(w *world) {
			w.fetch = &lifecycle.Progress{Archive: "/srv/shop.tar", Done: 700 << 10, Total: 80 << 20}
			w.add()
			w.sleep(2 * time.Second)
		}},
		{"image-importing-unknown", archived, func(w *world) {
			w.fetch = &lifecycle.Progress{Archive: "/srv/shop.tar"}
			w.add()
			w.sleep(2 * time.Second)
		}},
		{"volume-missing", pod(forever), func(w *world) {
			w.fails.Store(&failure{
				"StartSandbox",
				lifecycle.Failure{Reason: lifecycle.ReasonFailedMount, Message: "hostPath /data: no such file or directory"},
			})
			w.add()
			w.sleep(time.Minute)
		}},
		{"volume-recovered", pod(forever), func(w *world) {
			w.fails.Store(&failure{"StartSandbox", lifecycle.Failure{Reason: lifecycle.ReasonFailedMount, Message: "no disk"}})
			w.add()
			w.sleep(time.Minute)
			w.fails.Store(nil)
			w.sleep(time.Hour)
		}},
		{"create-container-config-error", pod(forever), func(w *world) {
			w.fails.Store(&failure{"StartContainer", lifecycle.Failure{
				Kind: lifecycle.FailureNotCreated, Reason: lifecycle.ReasonCreateConfigError, Message: "no config map \"shop\"",
			}})
			w.add()
			w.sleep(15 * time.Second)
		}},
		{"start-in-order", ahead, func(w *world) {
			w.slow.Store(true)
			w.add()
			w.sleep(time.Second)
		}},
		{"wait-for", waiting, func(w *world) {
			w.add()
			w.sleep(3 * time.Minute)
		}},
		{"wait-for-met", waiting, func(w *world) {
			w.add()
			w.sleep(3 * time.Minute)
			db := pod(forever)
			db.Name = "db"
			if _, err := w.Add(db, state.Owner{By: "test"}); err != nil {
				w.t.Fatal(err)
			}
			w.sleep(time.Minute)
		}},
		{"wait-for-after-reboot", waiting, func(w *world) {
			db := pod(forever)
			db.Name = "db"
			if _, err := w.Add(db, state.Owner{By: "test"}); err != nil {
				w.t.Fatal(err)
			}
			w.add()
			w.sleep(time.Hour)
			if err := w.Stop(w.t.Context(), "db", supervisor.StopOptions{Delete: true, By: "test"}); err != nil {
				w.t.Fatal(err)
			}
			w.sleep(time.Minute)
			w.leave()
			w.engine.Reboot()
			w.boot = "2"
			w.start()
			w.sleep(time.Minute)
		}},
		{"wait-for-stopped", waiting, func(w *world) {
			w.add()
			w.sleep(3 * time.Minute)
			w.stop(supervisor.StopOptions{})
		}},
		{"engine-unavailable", pod(forever), func(w *world) {
			w.fails.Store(&failure{"StartSandbox", lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "no engine"}})
			w.add()
			w.sleep(time.Minute)
		}},
	})
}
