package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/podstead/podstead/hooks"
	"github.com/podstead/podstead/probes"
	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/runtime/stats"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/state"
)

// testTimeout is far longer than anything takes here, even on a loaded host.
const testTimeout = time.Minute

// world is a daemon in memory with its metrics.
type world struct {
	*Metrics
	supervisor *supervisor.Supervisor
	recorder   *Recorder
}

func newWorld(t *testing.T, change func(*Options)) *world {
	t.Helper()
	store, err := state.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	clock, err := supervisor.SystemClock()
	if err != nil {
		t.Fatal(err)
	}
	fake, recorder := fakeruntime.New(fakeruntime.Options{}), NewRecorder()
	s := supervisor.New(t.Context(), supervisor.Options{
		Runtime: recorder.Runtime(fake), Store: store, Clock: clock,
		Prober: probes.New(fake, clock, probes.Options{Observe: recorder.Probe}),
		Hooks:  recorder.Hooks(hooks.New(fake, nil)),
	})
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { recorder.Follow(ctx, s) })
	t.Cleanup(func() {
		if err := s.Leave(context.Background()); err != nil {
			t.Error(err)
		}
		cancel()
		running.Wait()
	})
	claims := t.TempDir()
	if err := os.Mkdir(filepath.Join(claims, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Supervisor: s, Recorder: recorder, Version: "v1", Node: "edge1", Log: slog.New(slog.DiscardHandler), ReadStats: measure,
		CheckEngine: func(context.Context) error { return nil }, Directories: map[string]string{"state": t.TempDir()}, Claims: claims,
	}
	if change != nil {
		change(&o)
	}
	return &world{New(o), s, recorder}
}

// measure returns figures of everything that runs.
func measure(_ context.Context, targets []stats.Target) []stats.Pod {
	var list []stats.Pod
	figures := stats.Sample{Usage: cgroup.Usage{
		CPU:        &cgroup.CPUUsage{Nanoseconds: 1_500_000_000},
		Throttling: &cgroup.Throttling{Periods: 4, Throttled: 3, Nanoseconds: 2_000_000_000},
		Memory: &cgroup.MemoryUsage{
			Usage: 60, WorkingSet: 50, RSS: 40, Cache: 20, Swap: new(uint64(30)), PageFaults: 7, MajorFaults: 1,
		},
		OOMKills: new(uint64(2)), Pids: new(uint64(5)),
		IO: []cgroup.DeviceIO{{Major: 4095, Minor: 1, ReadBytes: 1, WriteBytes: 2, ReadOperations: 3, WriteOperations: 4}},
	}}
	for i := range targets {
		p := stats.Pod{
			UID: targets[i].UID, Sample: figures, Containers: map[string]stats.Sample{}, Cgroup: "/podstead/" + targets[i].UID,
			Cgroups: map[string]string{},
			Network: &stats.Network{Interfaces: []stats.Interface{{Name: "eth0", RxBytes: 1, TxBytes: 2}}},
			Disk:    stats.Disk{Containers: map[string]stats.ContainerDisk{}},
		}
		for name, id := range targets[i].Containers {
			p.Containers[name], p.Cgroups[name] = figures, p.Cgroup+"/"+id
			p.Disk.Containers[name] = stats.ContainerDisk{Layer: new(int64(4096)), Logs: new(int64(100))}
		}
		list = append(list, p)
	}
	return list
}

// run adds a pod.
func (w *world) run(t *testing.T, name, text string) {
	t.Helper()
	pod, problems := spec.Parse(name+".toml", []byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if _, err := w.supervisor.Add(pod, state.Owner{By: "test"}); err != nil {
		t.Fatal(err)
	}
}

// scrape returns the metrics by name.
func (w *world) scrape(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	w.newest.Store(nil)
	r := httptest.NewRecorder()
	w.ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if r.Code != http.StatusOK {
		t.Fatalf("status %d: %s", r.Code, r.Body)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// await scrapes until a condition is met.
func (w *world) await(t *testing.T, what string, met func(map[string]*dto.MetricFamily) bool) map[string]*dto.MetricFamily {
	t.Helper()
	for deadline := time.Now().Add(testTimeout); ; {
		changed := w.supervisor.Changed()
		f := w.scrape(t)
		if met(f) {
			return f
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, f)
		}
		select {
		case <-changed:
		case <-time.After(20 * time.Millisecond): // events are counted after the pod has changed
		}
	}
}

// value returns the value of a series with the given labels, such as "pod=web container=app"; false: there is none.
func value(f *dto.MetricFamily, labels string) (float64, bool) {
	for _, m := range f.GetMetric() {
		has := map[string]bool{}
		for _, l := range m.GetLabel() {
			has[l.GetName()+"="+l.GetValue()] = true
		}
		matches := true
		for label := range strings.FieldsSeq(labels) {
			matches = matches && has[label]
		}
		if matches {
			return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount()), true
		}
	}
	return 0, false
}
