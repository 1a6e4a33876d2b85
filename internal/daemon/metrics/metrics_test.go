package metrics

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/stats"
	"github.com/podstead/podstead/supervisor"
)

// The pods of the tests: one with everything, one whose image cannot be pulled, one that fails.
const (
	webPod = `
terminationGracePeriodSeconds = 0
restartPolicy = "Always"
volumes = [
	{ name = "data", persistentVolumeClaim.claimName = "data" },
	{ name = "new", persistentVolumeClaim.claimName = "not-created-yet" },
]
[[initContainers]]
name = "init"
image = "localhost/app:1"
command = ["true"]
[[containers]]
name = "app"
image = "localhost/app:1"
resources.limits = {cpu = "500m", memory = "64Mi"}
readinessProbe = {exec = {command = ["true"]}, periodSeconds = 1}
lifecycle.postStart.exec.command = ["true"]
[[containers]]
name = "crash"
image = "localhost/app:1"
command = ["sh", "-c", "exit 3"]
`
	pullPod = `
[[initContainers]]
name = "init"
image = "localhost/missing:1"
imagePullPolicy = "Never"
[[containers]]
name = "app"
image = "localhost/app:1"
`
	failedPod = `
restartPolicy = "Never"
activeDeadlineSeconds = 1
[[containers]]
name = "app"
image = "localhost/app:1"
`
)

// TestCatalogue: a daemon with pods has exactly the metrics of the catalogue, with their types, labels and descriptions.
func TestCatalogue(t *testing.T) {
	w := newWorld(t, nil)
	w.serving(true)
	w.run(t, "web", webPod)
	w.run(t, "pull", pullPod)
	w.run(t, "late", failedPod)
	want := map[string]Metric{}
	for _, m := range catalogue() {
		want[m.Name] = m
	}
	families := w.await(t, "all metrics", func(f map[string]*dto.MetricFamily) bool {
		for name := range want {
			if f[name] == nil {
				return false
			}
		}
		return true
	})
	for name, f := range families {
		m, ok := want[name]
		if !ok {
			t.Errorf("%s is not in the catalogue", name)
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		if kind := strings.ToLower(f.GetType().String()); kind != string(m.Kind) || f.GetHelp() != m.Help ||
			!slices.Equal(labels, slices.Sorted(slices.Values(m.Labels))) {
			t.Errorf("%s: %s, %q, labels %v, want %+v", name, kind, f.GetHelp(), labels, m)
		}
	}
}

// TestFigures compares values with what the pods do.
func TestFigures(t *testing.T) {
	w := newWorld(t, nil)
	w.run(t, "web", webPod)
	f := w.await(t, "a restart", func(f map[string]*dto.MetricFamily) bool {
		n, _ := value(f["podstead_container_restarts_total"], "pod=web container=crash cause=Error")
		ready, _ := value(f["kube_pod_container_status_ready"], "container=app")
		starts, _ := value(f["kubelet_pod_start_duration_seconds"], "")
		// the container crash is ready until it exits
		notReady, _ := value(f["kube_pod_status_ready"], "pod=web condition=false")
		_, exited := value(f["kube_pod_container_status_last_terminated_exitcode"], "container=crash") // events may be counted before
		return n >= 1 && ready == 1 && starts == 1 && notReady == 1 && exited
	})
	for _, test := range []struct {
		name, labels string
		want         float64
	}{
		{"kube_pod_status_phase", "pod=web phase=Running namespace=default", 1},
		{"kube_pod_status_phase", "pod=web phase=Failed", 0},
		{"kube_pod_status_ready", "pod=web condition=false", 1},
		{"podstead_pods", "phase=Running", 1},
		{"kubelet_running_pods", "", 1},
		{"container_cpu_usage_seconds_total", "pod=web container=app cpu=total image=localhost/app:1", 1.5},
		{"container_memory_working_set_bytes", "pod=web container=", 50},
		{"container_memory_cache", "pod=web container=app", 20},
		{"container_memory_swap", "pod=web container=app", 30},
		{"kube_pod_info", "pod=web node=edge1 host_network=false", 1},
		{"kubelet_node_name", "node=edge1", 1},
		{"kubelet_image_pull_duration_seconds", "image_size_in_bytes=N/A", 1},
		{"container_oom_events_total", "container=app", 2},
		{"container_spec_memory_limit_bytes", "container=app", 64 << 20},
		{"container_spec_cpu_quota", "container=app", 50_000},
		{"container_fs_writes_bytes_total", "container=app device=4095:1", 2},
		{"container_network_transmit_bytes_total", "pod=web interface=eth0", 2},
		{"kube_pod_container_resource_limits", "container=app resource=memory unit=byte", 64 << 20},
		{"kube_pod_container_resource_limits", "container=app resource=cpu unit=core", 0.5},
		{"kube_pod_container_status_last_terminated_exitcode", "container=crash", 3},
		{"kubelet_started_pods_total", "", 1},
		{"kubelet_started_containers_total", "container_type=init_container", 1},
		{"podstead_start_step_duration_seconds", "step=postStart", 1},
		{"podstead_image_pulls_total", "result=success", 1},
		{"podstead_engine_up", "", 1},
		{"podstead_loops_up", "", 1},
		{"podstead_disk_up", "directory=state", 1},
	} {
		if got, ok := value(f[test.name], test.labels); !ok || got != test.want {
			t.Errorf("%s{%s} = %v, %v, want %v", test.name, test.labels, got, ok, test.want)
		}
	}
	if n, _ := value(f["prober_probe_total"], "pod=web container=app probe_type=Readiness result=successful"); n < 1 {
		t.Errorf("prober_probe_total = %v", n)
	}
}

// TestDeletedPod: a deleted pod has no series, and nothing is kept for it.
func TestDeletedPod(t *testing.T) {
	w := newWorld(t, nil)
	w.run(t, "web", webPod)
	w.await(t, "a probe", func(f map[string]*dto.MetricFamily) bool { return f["prober_probe_total"] != nil })
	if err := w.supervisor.Stop(t.Context(), "web", supervisor.StopOptions{Grace: new(time.Duration), Delete: true}); err != nil {
		t.Fatal(err)
	}
	w.await(t, "no series of the pod", func(f map[string]*dto.MetricFamily) bool {
		w.recorder.mu.Lock()
		defer w.recorder.mu.Unlock()
		if len(w.recorder.pods) > 0 {
			return false
		}
		return !slices.ContainsFunc(slices.Collect(maps.Values(f)), func(m *dto.MetricFamily) bool {
			_, has := value(m, "pod=web")
			return has
		})
	})
}

// TestHangingHost: file systems and an engine that hang delay a request by seconds at most, and later ones not at all.
func TestHangingHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		w := newWorld(t, func(o *Options) {
			o.Directories["hangs"] = "/hangs"
			o.CheckEngine = func(context.Context) error { <-free; return nil }
		})
		for _, d := range w.directories {
			if d.name == "hangs" {
				d.statfs = func(string, *unix.Statfs_t) error { <-free; return nil }
			}
		}
		for range 3 {
			begun := time.Now()
			f := w.scrape(t)
			if took := time.Since(begun); took > 3*time.Second {
				t.Errorf("took %v", took)
			}
			for name, labels := range map[string]string{"podstead_engine_up": "", "podstead_disk_up": "directory=hangs"} {
				if up, ok := value(f[name], labels); !ok || up != 0 {
					t.Errorf("%s = %v, %v", name, up, ok)
				}
			}
			if up, _ := value(f["podstead_disk_up"], "directory=state"); up != 1 {
				t.Error("the other file system is missing")
			}
		}
		close(free)
		synctest.Wait()
		if up, _ := value(w.scrape(t)["podstead_engine_up"], ""); up != 1 {
			t.Error("the engine is not up again")
		}
	})
}

// TestManyRequests: requests at the same time read the figures once, and too many are rejected.
func TestManyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		w := newWorld(t, func(o *Options) {
			o.ReadStats = func(context.Context, []stats.Target) []stats.Pod {
				reads++
				time.Sleep(time.Second)
				return nil
			}
		})
		codes := make(chan int, maxRequests+2)
		for range cap(codes) {
			go func() {
				r := httptest.NewRecorder()
				w.ServeHTTP(r, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
				codes <- r.Code
			}()
		}
		got := map[int]int{}
		for range cap(codes) {
			got[<-codes]++
		}
		if want := fmt.Sprint(map[int]int{http.StatusOK: maxRequests, http.StatusServiceUnavailable: 2}); fmt.Sprint(got) != want ||
			reads != 1 {
			t.Errorf("status %v, %d reads, want %s and one read", got, reads, want)
		}
		time.Sleep(2 * reuse)
		if n, _ := value(w.scrape(t)["podstead_metrics_rejected_total"], ""); n != 2 || reads != 2 {
			t.Errorf("%v rejected requests, %d reads", n, reads)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := httptest.NewRecorder()
		w.newest.Store(nil)
		if w.ServeHTTP(r, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil)); r.Code != http.StatusServiceUnavailable ||
			w.newest.Load() != nil {
			t.Errorf("a client that disconnects: status %d", r.Code)
		}
	})
}

// TestVolumeFigures: each persistent volume that a pod uses has the figures of its file system once, and one that hangs has none.
func TestVolumeFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.run(t, "web", webPod)
		w.run(t, "second", webPod)
		names := func() []string {
			var list []string
			for _, m := range w.scrape(t)["kubelet_volume_stats_available_bytes"].GetMetric() {
				list = append(list, m.GetLabel()[1].GetValue())
			}
			return list
		}
		if got := names(); !slices.Equal(got, []string{"data"}) {
			t.Errorf("figures of the volumes %v, want data", got)
		}
		free := make(chan struct{})
		w.claims.directories["data"].statfs = func(string, *unix.Statfs_t) error { <-free; return nil }
		time.Sleep(reuse)
		begun := time.Now()
		if got, took := names(), time.Since(begun); len(got) > 0 || took > 3*time.Second {
			t.Errorf("figures of the volumes %v after %v, want none", got, took)
		}
		close(free)
		synctest.Wait()
		time.Sleep(reuse)
		if got := names(); !slices.Equal(got, []string{"data"}) {
			t.Errorf("figures of the volumes %v, want data again", got)
		}
	})
}
