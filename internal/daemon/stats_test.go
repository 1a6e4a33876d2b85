package daemon

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/stats"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// measured is an engine with these figures.
type measured struct {
	Runtime
	targets []stats.Target
	pods    []stats.Pod
}

func (m *measured) Stats(_ context.Context, targets []stats.Target) []stats.Pod {
	m.targets = targets
	return m.pods
}

// TestPodStats compares the statistics of the API with the field names of the kubelet's Summary API.
func TestPodStats(t *testing.T) {
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	running := lifecycle.ContainerStatus{
		Name: "app", ContainerID: "containerd://abc", State: lifecycle.State{Running: &lifecycle.Running{StartedAt: at}},
	}
	completed := lifecycle.ContainerStatus{
		Name: "init", ContainerID: "containerd://def", State: lifecycle.State{Terminated: &lifecycle.Terminated{}},
	}
	pod := supervisor.Snapshot{
		Pod: &spec.Pod{Name: "web"},
		Facts: lifecycle.Facts{
			UID: "u", Accepted: lifecycle.Instant{Wall: at}, Sandbox: lifecycle.Sandbox{N: 3, Ready: lifecycle.Instant{Boot: "b"}},
		},
		Status: lifecycle.Status{
			InitContainerStatuses: []lifecycle.ContainerStatus{completed},
			ContainerStatuses:     []lifecycle.ContainerStatus{running, {Name: "waits"}},
		},
	}
	lost := supervisor.Snapshot{Pod: &spec.Pod{Name: "lost"}, Facts: pod.Facts}
	lost.Facts.UID, lost.Facts.Sandbox.Lost = "l", lifecycle.Instant{Boot: "b"}
	sample := stats.Sample{
		At: at, NanoCores: new(uint64(12_000_000)), Usage: cgroup.Usage{
			CPU: &cgroup.CPUUsage{Nanoseconds: 5}, Throttling: &cgroup.Throttling{Periods: 4, Throttled: 3, Nanoseconds: 2},
			Memory:   &cgroup.MemoryUsage{Usage: 60, WorkingSet: 50, RSS: 40, Limit: 64, PageFaults: 7, MajorFaults: 1},
			OOMKills: new(uint64(1)), Pids: new(uint64(2)),
		},
	}
	m := &measured{pods: []stats.Pod{
		{
			UID: "u", Sample: stats.Sample{At: at, Usage: cgroup.Usage{Memory: &cgroup.MemoryUsage{Usage: 70, WorkingSet: 70}}},
			Containers: map[string]stats.Sample{"app": sample},
			Disk: stats.Disk{At: at, Containers: map[string]stats.ContainerDisk{
				"app": {Layer: new(int64(4096)), Logs: new(int64(100))}, "init": {Logs: new(int64(20))}, "waits": {},
			}},
			Network: &stats.Network{
				At: at, Interfaces: []stats.Interface{{Name: "a0"}, {Name: "eth0", RxBytes: 9, RxErrors: 1, TxBytes: 8, TxErrors: 2}},
			},
		},
		{UID: "l"},
	}}
	got, err := json.MarshalIndent(podStats{m}.Stats(t.Context(), []supervisor.Snapshot{pod, lost}), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const when = `"time":"2026-03-04T12:00:00Z"`
	want := `[
{"podRef":{"name":"web","namespace":"default","uid":"u"},"startTime":"2026-03-04T12:00:00Z",
"containers":[
{"name":"init","logs":{` + when + `,"usedBytes":20}},
{"name":"app","startTime":"2026-03-04T12:00:00Z",
"cpu":{` + when +
		`,"usageNanoCores":12000000,"usageCoreNanoSeconds":5,"throttling":{"periods":4,"throttledPeriods":3,"throttledNanoSeconds":2}},
"memory":{` + when +
		`,"availableBytes":14,"usageBytes":60,"workingSetBytes":50,"rssBytes":40,"pageFaults":7,"majorPageFaults":1,"limitBytes":64,"oomKills":1},
"rootfs":{` + when + `,"usedBytes":4096},"logs":{` + when + `,"usedBytes":100},"process_stats":{"process_count":2}}],
"memory":{` + when + `,"usageBytes":70,"workingSetBytes":70,"rssBytes":0,"pageFaults":0,"majorPageFaults":0},
"network":{` + when + `,"name":"eth0","rxBytes":9,"rxErrors":1,"txBytes":8,"txErrors":2,"interfaces":[
{"name":"a0","rxBytes":0,"rxErrors":0,"txBytes":0,"txErrors":0},{"name":"eth0","rxBytes":9,"rxErrors":1,"txBytes":8,"txErrors":2}]},
"ephemeral-storage":{` + when + `,"usedBytes":4216}},
{"podRef":{"name":"lost","namespace":"default","uid":"l"},"startTime":"2026-03-04T12:00:00Z","containers":[]}
]`
	var a, b any
	if err := json.Unmarshal([]byte(want), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	targets := []stats.Target{
		{UID: "u", Pod: pod.Pod, Sandbox: 3, Containers: map[string]string{"app": "abc"}},
		{UID: "l", Pod: lost.Pod, Containers: map[string]string{}},
	}
	if diff := cmp.Diff(targets, m.targets, cmp.Comparer(func(a, b *spec.Pod) bool { return a == b })); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
}
