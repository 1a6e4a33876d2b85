package show

import (
	"fmt"
	"slices"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/view"
)

// podUsage returns what a pod uses, one line for each resource.
func podUsage(s *api.PodStats, now time.Time) []string {
	lines := usage(s.CPU, s.Memory, s.ProcessStats)
	if f := s.EphemeralStorage; f != nil {
		lines = append(lines, fmt.Sprintf("disk %s for writable layers and logs, measured %s ago", Size(f.UsedBytes), view.Age(now.Sub(f.Time))))
	}
	if n := s.Network; n != nil {
		lines = append(lines, fmt.Sprintf("network %s received, %s sent", Size(n.RxBytes), Size(n.TxBytes)))
	}
	return lines
}

// containerUsage returns what a container uses.
func containerUsage(s *api.PodStats, name string, now time.Time) []string {
	if s == nil {
		return nil
	}
	at := slices.IndexFunc(s.Containers, func(c api.ContainerStats) bool { return c.Name == name })
	if at < 0 {
		return nil
	}
	c := &s.Containers[at]
	lines := usage(c.CPU, c.Memory, c.ProcessStats)
	for _, f := range []struct {
		used *api.FsStats
		what string
	}{{c.Rootfs, "writable layer"}, {c.Logs, "logs"}} {
		if f.used != nil {
			lines = append(lines, fmt.Sprintf("%s %s, measured %s ago", f.what, Size(f.used.UsedBytes), view.Age(now.Sub(f.used.Time))))
		}
	}
	return lines
}

// usage returns the lines for CPU time, memory and processes.
func usage(c *api.CPUStats, m *api.MemoryStats, p *api.ProcessStats) (lines []string) {
	if c != nil && c.UsageNanoCores != nil {
		text := "CPU " + cpuUsage(c)
		if t := c.Throttling; t != nil && t.ThrottledPeriods > 0 {
			text += fmt.Sprintf(", throttled in %d of %d periods", t.ThrottledPeriods, t.Periods)
		}
		lines = append(lines, text)
	}
	if m != nil {
		text := "memory " + memoryUsage(m)
		if m.LimitBytes != nil {
			text += " of " + Size(*m.LimitBytes)
		}
		if m.OOMKills != nil && *m.OOMKills > 0 {
			text += fmt.Sprintf(", %d processes OOM-killed", *m.OOMKills)
		}
		lines = append(lines, text)
	}
	if p != nil {
		lines = append(lines, fmt.Sprintf("processes %d", p.ProcessCount))
	}
	return lines
}
