package stats

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/spec"
)

// world is a host whose cgroups have used a tenth of a core since it was created.
type world struct {
	*Collector
	created time.Time

	mu      sync.Mutex
	missing map[string]bool          // cgroups and network namespaces that do not exist
	hangs   map[string]time.Duration // how long reading a cgroup takes
	reads   int
}

// disks have one figure for each pod; that of the pod slow is late.
type disks struct{}

func (disks) Disk(ctx context.Context, uid string, _ *spec.Pod) Disk {
	if uid == "slow" {
		<-ctx.Done()
		return Disk{}
	}
	return Disk{At: time.Now(), Containers: map[string]ContainerDisk{"app": {Layer: new(int64(7))}}}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	groups, err := podcgroup.New(podcgroup.Cgroupfs, "/pods", true)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{created: time.Now(), missing: map[string]bool{}, hangs: map[string]time.Duration{}}
	w.Collector = NewCollector(groups, record.Dirs{Run: "/run"}, disks{}, slog.New(slog.DiscardHandler))
	w.usage = func(path string) cgroup.Usage {
		w.mu.Lock()
		hangs, missing := w.hangs[path], w.missing[path]
		w.reads++
		w.mu.Unlock()
		time.Sleep(hangs)
		if missing {
			return cgroup.Usage{}
		}
		return cgroup.Usage{CPU: &cgroup.CPUUsage{Nanoseconds: uint64(time.Since(w.created)) / 10}, Pids: new(uint64(3))}
	}
	w.interfaces = func(path string) ([]Interface, error) {
		if w.missing[path] {
			return nil, errors.New("no such network namespace")
		}
		return []Interface{{Name: path, RxBytes: 1, TxBytes: 2}}, nil
	}
	return w
}

func target(uid string) Target {
	return Target{UID: uid, Pod: &spec.Pod{}, Sandbox: 2, Containers: map[string]string{"app": "id"}}
}

const tenth = 100_000_000 // of a core

// TestCollect: the first request takes two samples, later ones use the last sample.
func TestCollect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		started := time.Now()
		got := w.Collect(t.Context(), []Target{target("u"), {UID: "finished", Pod: &spec.Pod{}}})
		if took := time.Since(started); took != minWindow {
			t.Errorf("took %v, want %v", took, minWindow)
		}
		sample := Sample{
			At: time.Now(), Usage: cgroup.Usage{CPU: &cgroup.CPUUsage{Nanoseconds: tenth / 2}, Pids: new(uint64(3))},
			NanoCores: new(uint64(tenth)),
		}
		disk := disks{}.Disk(t.Context(), "u", nil)
		disk.At = started
		want := []Pod{
			{
				UID: "u", Sample: sample, Containers: map[string]Sample{"app": sample}, Disk: disk,
				Network: &Network{started, []Interface{{Name: "/run/ns/u/2/net", RxBytes: 1, TxBytes: 2}}},
			},
			{UID: "finished", Disk: disk},
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Disk{})); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		time.Sleep(10 * time.Second)
		started = time.Now()
		again := w.Collect(t.Context(), []Target{target("u")})
		if n := again[0].Containers["app"].NanoCores; n == nil || *n != tenth || time.Since(started) != 0 {
			t.Errorf("after 10s: %+v, took %v", again[0], time.Since(started))
		}
		// A second client at the same time gets the same rate, and does not wait.
		if again = w.Collect(t.Context(), []Target{target("u")}); again[0].NanoCores == nil || time.Since(started) != 0 {
			t.Errorf("a second client: %+v, took %v", again[0], time.Since(started))
		}
		time.Sleep(2 * maxWindow)
		started = time.Now()
		if again = w.Collect(t.Context(), []Target{target("u")}); *again[0].NanoCores != tenth || time.Since(started) != minWindow {
			t.Errorf("after a long time: %+v, took %v", again[0], time.Since(started))
		}
		if len(w.samples.last) != 2 {
			t.Errorf("%d samples are kept", len(w.samples.last))
		}
	})
}

// TestMissingFigures: a figure that cannot be read is left out.
func TestMissingFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.missing = map[string]bool{"/pods/a/id": true, "/run/ns/a/2/net": true, "/pods/b": true}
		host := target("host")
		host.Pod.HostNetwork = true
		pods := w.Collect(t.Context(), []Target{target("a"), target("b"), host, target("../x")})
		a, b := pods[0], pods[1]
		if a.NanoCores == nil || a.Network != nil || a.Containers["app"].CPU != nil || a.Containers["app"].NanoCores != nil {
			t.Errorf("without the cgroup of the container and the network namespace: %+v", a)
		}
		if b.CPU != nil || b.Network == nil || b.Containers["app"].NanoCores == nil {
			t.Errorf("without the cgroup of the pod: %+v", b)
		}
		if pods[2].Network != nil || pods[2].CPU == nil {
			t.Errorf("pod in the network of the host: %+v", pods[2])
		}
		if pods[3].CPU != nil {
			t.Errorf("invalid UID: %+v", pods[3])
		}
	})
}

// TestCollectIsBounded: a pod that cannot be read in time has no figures, and does not affect others.
func TestCollectIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hangs["/pods/hangs"] = time.Hour
		started := time.Now()
		pods := w.Collect(t.Context(), []Target{target("slow"), target("hangs"), target("u")})
		if took := time.Since(started); took > diskTimeout+readTimeout+minWindow {
			t.Errorf("took %v", took)
		}
		if slow := pods[0]; !slow.Disk.At.IsZero() || slow.NanoCores == nil {
			t.Errorf("pod on a slow disk: %+v", slow)
		}
		if hangs := pods[1]; hangs.UID != "hangs" || hangs.CPU != nil {
			t.Errorf("pod that hangs: %+v", hangs)
		}
		if u := pods[2]; u.NanoCores == nil || u.Network == nil {
			t.Errorf("other pod: %+v", u)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		started = time.Now()
		if w.Collect(ctx, []Target{target("new")}); time.Since(started) != 0 {
			t.Errorf("a client that disconnects is served for %v", time.Since(started))
		}
		time.Sleep(2 * time.Hour)
	})
}

// TestRate: a counter that was reset gives no rate.
func TestRate(t *testing.T) {
	s, now := newSamples(), time.Now()
	for _, step := range []struct {
		after time.Duration
		cpu   uint64
		want  *uint64
	}{
		{0, 1000, nil},
		{minWindow / 2, 1000, nil}, // too early, and there is no rate before
		{time.Second * 3 / 4, 3000, new(uint64(2000))},
		{minWindow / 2, 4000, new(uint64(2000))}, // too early
		{time.Second * 3 / 4, 3500, new(uint64(500))},
		{time.Second, 10, nil}, // another container
		{time.Second, 20, new(uint64(10))},
		{maxWindow + 1, 30, nil},
	} {
		now = now.Add(step.after)
		if diff := cmp.Diff(step.want, s.rate("/c", now, step.cpu)); diff != "" {
			t.Errorf("%+v (-want +got): %s", step, diff)
		}
	}
}

// TestInterfacesOfMissingNamespace: a path without a network namespace is an error.
func TestInterfacesOfMissingNamespace(t *testing.T) {
	for _, path := range []string{t.TempDir() + "/none", t.TempDir()} {
		if list, err := interfaces(path); err == nil {
			t.Errorf("%s: %v", path, list)
		}
	}
}

// TestRead: each cgroup is read once, without waiting for a rate or for the disk.
func TestRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hangs["/pods/hangs"] = time.Hour
		started := time.Now()
		pods := w.Read(t.Context(), []Target{target("u"), target("slow"), {UID: "finished", Pod: &spec.Pod{}}})
		if took := time.Since(started); took != 0 || w.reads != 4 {
			t.Errorf("took %v, %d reads, want 4", took, w.reads)
		}
		for _, p := range pods[:2] {
			if p.CPU == nil || p.NanoCores != nil || p.Containers["app"].CPU == nil || p.Network == nil || p.Cgroup != "/pods/"+p.UID ||
				p.Cgroups["app"] != "/pods/"+p.UID+"/id" {
				t.Errorf("%+v", p)
			}
		}
		if p := pods[2]; p.CPU != nil || p.Cgroup != "" {
			t.Errorf("finished pod: %+v", p)
		}
		if len(w.samples.last) != 0 {
			t.Errorf("%d samples are kept", len(w.samples.last))
		}
		if hangs := w.Read(t.Context(), []Target{target("hangs"), target("u")}); hangs[0].CPU != nil || hangs[1].CPU == nil ||
			time.Since(started) > diskTimeout+readTimeout {
			t.Errorf("a pod that hangs: %+v after %v", hangs, time.Since(started))
		}
		time.Sleep(2 * time.Hour)
	})
}
