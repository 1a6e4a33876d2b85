package show

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/internal/view"
)

// Order is the order of the rows of a table.
type Order string

// The orders. The highest usage comes first.
const (
	ByName   Order = ""
	ByCPU    Order = "cpu"
	ByMemory Order = "memory"
)

// UsageOptions select a table.
type UsageOptions struct {
	Containers bool // a row for each container
	Order      Order
	NoHeader   bool
}

// unknown is the cell of a figure that is not known, or that a container which is not running does not have.
const unknown = "-"

// usageRow is a row of a table with the figures that it can be sorted by.
type usageRow struct {
	cpu, memory uint64
	cells       []string
}

// Usage prints a table.
func Usage(screen view.Screen, pods []api.PodStats, o UsageOptions) error {
	var rows []usageRow
	header := []string{"NAME", "CPU(cores)", "MEMORY(bytes)", "LIMIT", "DISK", "LOGS", "RX", "TX"}
	if o.Containers {
		header = []string{"POD", "NAME", "CPU(cores)", "MEMORY(bytes)", "LIMIT", "DISK", "LOGS"}
	}
	for i := range pods {
		p := &pods[i]
		if !o.Containers {
			rows = append(rows, podRow(p))
			continue
		}
		for c := range p.Containers {
			rows = append(rows, containerRow(p.PodRef.Name, &p.Containers[c]))
		}
	}
	switch o.Order {
	case ByCPU:
		order.Sort(rows, func(a, b usageRow) int { return cmp.Compare(b.cpu, a.cpu) })
	case ByMemory:
		order.Sort(rows, func(a, b usageRow) int { return cmp.Compare(b.memory, a.memory) })
	case ByName:
	}
	var table [][]string
	if !o.NoHeader {
		table = append(table, header)
	}
	for _, r := range rows {
		table = append(table, r.cells)
	}
	return screen.Table(table)
}

func podRow(p *api.PodStats) usageRow {
	var layers, logs []*api.FsStats
	for i := range p.Containers {
		layers, logs = append(layers, p.Containers[i].Rootfs), append(logs, p.Containers[i].Logs)
	}
	rx, tx := unknown, unknown
	if n := p.Network; n != nil {
		rx, tx = view.Size(n.RxBytes), view.Size(n.TxBytes)
	}
	r := newUsageRow(p.CPU, p.Memory, layers, logs)
	r.cells = slices.Concat([]string{p.PodRef.Name}, r.cells, []string{rx, tx})
	return r
}

func containerRow(pod string, c *api.ContainerStats) usageRow {
	r := newUsageRow(c.CPU, c.Memory, []*api.FsStats{c.Rootfs}, []*api.FsStats{c.Logs})
	r.cells = append([]string{pod, c.Name}, r.cells...)
	return r
}

func newUsageRow(cpu *api.CPUStats, memory *api.MemoryStats, layers, logs []*api.FsStats) usageRow {
	r := usageRow{cells: []string{cpuUsage(cpu), memoryUsage(memory), memoryLimit(memory), diskUsage(layers), diskUsage(logs)}}
	if cpu != nil && cpu.UsageNanoCores != nil {
		r.cpu = *cpu.UsageNanoCores
	}
	if memory != nil {
		r.memory = memory.WorkingSetBytes
	}
	return r
}

// cpuUsage returns a usage in thousandths of a core, as kubectl top.
func cpuUsage(c *api.CPUStats) string {
	if c == nil || c.UsageNanoCores == nil {
		return unknown
	}
	const nanoInMilli = 1_000_000
	return fmt.Sprintf("%dm", (*c.UsageNanoCores+nanoInMilli-1)/nanoInMilli) // rounded up
}

// memoryUsage returns the working set, as kubectl top.
func memoryUsage(m *api.MemoryStats) string {
	if m == nil {
		return unknown
	}
	return fmt.Sprintf("%dMi", m.WorkingSetBytes>>20)
}

func memoryLimit(m *api.MemoryStats) string {
	if m == nil || m.LimitBytes == nil {
		return unknown
	}
	return view.Size(*m.LimitBytes)
}

// diskUsage returns the sum of what is known.
func diskUsage(list []*api.FsStats) string {
	known, total := false, uint64(0)
	for _, f := range list {
		if f != nil {
			known = true
			total += f.UsedBytes
		}
	}
	if !known {
		return unknown
	}
	return view.Size(total)
}

// OldestDisk returns how old the oldest disk usage is; 0: there is none.
func OldestDisk(pods []api.PodStats, now time.Time) (age time.Duration) {
	for i := range pods {
		if f := pods[i].EphemeralStorage; f != nil {
			age = max(age, now.Sub(f.Time))
		}
	}
	return age
}
