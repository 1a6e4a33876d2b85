package show

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/view"
)

func cpu(nanoCores uint64) *api.CPUStats { return &api.CPUStats{UsageNanoCores: &nanoCores} }

func memory(bytes, limit uint64) *api.MemoryStats {
	m := &api.MemoryStats{WorkingSetBytes: bytes}
	if limit > 0 {
		m.LimitBytes = &limit
	}
	return m
}

func fs(bytes uint64) *api.FsStats { return &api.FsStats{UsedBytes: bytes} }

// pods are a pod that runs, one that has finished, and one with little that is known.
func pods() []api.PodStats {
	const mib = 1 << 20
	return []api.PodStats{
		{
			PodRef: api.PodReference{Name: "job"}, EphemeralStorage: &api.FsStats{Time: now.Add(-3 * time.Minute)},
			Containers: []api.ContainerStats{{Name: "main", Logs: fs(700)}},
		},
		{PodRef: api.PodReference{Name: "lost"}, CPU: &api.CPUStats{UsageCoreNanoSeconds: 7}, Containers: []api.ContainerStats{}},
		{
			PodRef: api.PodReference{Name: "web"}, CPU: cpu(251_000_001), Memory: memory(36*mib-1, 0),
			EphemeralStorage: &api.FsStats{Time: now.Add(-time.Minute)},
			Network:          &api.NetworkStats{InterfaceStats: api.InterfaceStats{RxBytes: 1023, TxBytes: 5 << 30}},
			Containers: []api.ContainerStats{
				{Name: "app", CPU: cpu(1_000_000), Memory: memory(30*mib, 64*mib), Rootfs: fs(12 << 10), Logs: fs(1536)},
				{Name: "proxy", CPU: cpu(250_000_000), Memory: memory(5*mib, 0), Rootfs: fs(0), Logs: fs(512)},
			},
		},
	}
}

func TestUsage(t *testing.T) {
	for _, test := range []struct {
		name    string
		options UsageOptions
		want    string
	}{
		{"pods", UsageOptions{}, `
NAME   CPU(cores)   MEMORY(bytes)   LIMIT   DISK   LOGS   RX      TX
job    -            -               -       -      700B   -       -
lost   -            -               -       -      -      -       -
web    252m         35Mi            -       12Ki   2Ki    1023B   5Gi
`},
		{"containers by CPU usage", UsageOptions{Containers: true, Order: ByCPU}, `
POD   NAME    CPU(cores)   MEMORY(bytes)   LIMIT   DISK   LOGS
web   proxy   250m         5Mi             -       0B     512B
web   app     1m           30Mi            64Mi    12Ki   1Ki
job   main    -            -               -       -      700B
`},
		{"containers by memory, without header", UsageOptions{Containers: true, Order: ByMemory, NoHeader: true}, `
web   app     1m     30Mi   64Mi   12Ki   1Ki
web   proxy   250m   5Mi    -      0B     512B
job   main    -      -      -      -      700B
`},
		{"pods by memory", UsageOptions{Order: ByMemory, NoHeader: true}, `
web    252m   35Mi   -   12Ki   2Ki    1023B   5Gi
job    -      -      -   -      700B   -       -
lost   -      -      -   -      -      -       -
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b strings.Builder
			if err := Usage(view.Screen{W: &b}, pods(), test.options); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(test.want, "\n"), b.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if err := Usage(view.Screen{W: closed{}}, pods(), UsageOptions{}); err == nil {
		t.Error("no error of the output")
	}
}

func TestOldestDisk(t *testing.T) {
	if got := OldestDisk(pods(), now); got != 3*time.Minute {
		t.Errorf("%v", got)
	}
	if got := OldestDisk(nil, now); got != 0 {
		t.Errorf("without pods: %v", got)
	}
}
