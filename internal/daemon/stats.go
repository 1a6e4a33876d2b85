package daemon

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/stats"
	"github.com/podstead/podstead/supervisor"
)

// podStats is the engine as the source of statistics of the API.
type podStats struct{ Runtime }

// Stats implements [server.StatsSource].
func (s podStats) Stats(ctx context.Context, pods []supervisor.Snapshot) []api.PodStats {
	targets := make([]stats.Target, len(pods))
	for i := range pods {
		targets[i] = targetOf(&pods[i])
	}
	measured := s.Runtime.Stats(ctx, targets)
	list := make([]api.PodStats, len(pods))
	for i := range pods {
		list[i] = statsOf(&pods[i], &measured[i])
	}
	return list
}

func targetOf(p *supervisor.Snapshot) stats.Target {
	t := stats.Target{UID: p.Facts.UID, Pod: p.Pod, Containers: map[string]string{}}
	if s := &p.Facts.Sandbox; !s.Ready.IsZero() && s.Lost.IsZero() {
		t.Sandbox = s.N
	}
	for _, c := range p.Status.Every() {
		if _, id, ok := strings.Cut(c.ContainerID, "://"); ok && c.State.Running != nil {
			t.Containers[c.Name] = id
		}
	}
	return t
}

// statsOf converts the figures of a pod.
func statsOf(p *supervisor.Snapshot, m *stats.Pod) api.PodStats {
	s := api.PodStats{
		PodRef:    api.PodReference{Name: p.Pod.Name, Namespace: "default", UID: p.Facts.UID},
		StartTime: p.Facts.Accepted.Wall.UTC().Truncate(time.Second), Containers: []api.ContainerStats{},
		CPU: cpuStats(&m.Sample), Memory: memoryStats(&m.Sample), ProcessStats: processStats(&m.Sample),
		EphemeralStorage: storageStats(&m.Disk), Network: networkStats(m.Network),
	}
	for _, status := range p.Status.Every() {
		disk := m.Disk.Containers[status.Name]
		c := api.ContainerStats{Name: status.Name, Logs: fsStats(m.Disk.At, disk.Logs)}
		if status.State.Running != nil {
			sample := m.Containers[status.Name]
			c.StartTime, c.Rootfs = status.State.Running.StartedAt, fsStats(m.Disk.At, disk.Layer)
			c.CPU, c.Memory, c.ProcessStats = cpuStats(&sample), memoryStats(&sample), processStats(&sample)
		}
		if c != (api.ContainerStats{Name: status.Name}) {
			s.Containers = append(s.Containers, c)
		}
	}
	return s
}

func cpuStats(s *stats.Sample) *api.CPUStats {
	if s.CPU == nil {
		return nil
	}
	c := &api.CPUStats{Time: s.At.UTC(), UsageNanoCores: s.NanoCores, UsageCoreNanoSeconds: s.CPU.Nanoseconds}
	if t := s.Throttling; t != nil {
		c.Throttling = &api.ThrottlingStats{Periods: t.Periods, ThrottledPeriods: t.Throttled, ThrottledNanoSeconds: t.Nanoseconds}
	}
	return c
}

func memoryStats(s *stats.Sample) *api.MemoryStats {
	m := s.Memory
	if m == nil {
		return nil
	}
	a := &api.MemoryStats{
		Time: s.At.UTC(), UsageBytes: m.Usage, WorkingSetBytes: m.WorkingSet, RSSBytes: m.RSS,
		PageFaults: m.PageFaults, MajorPageFaults: m.MajorFaults, OOMKills: s.OOMKills,
	}
	if m.Limit > 0 {
		limit, available := m.Limit, m.Limit-min(m.WorkingSet, m.Limit)
		a.LimitBytes, a.AvailableBytes = &limit, &available
	}
	return a
}

func processStats(s *stats.Sample) *api.ProcessStats {
	if s.Pids == nil {
		return nil
	}
	return &api.ProcessStats{ProcessCount: *s.Pids}
}

func fsStats(at time.Time, bytes *int64) *api.FsStats {
	if bytes == nil {
		return nil
	}
	return &api.FsStats{Time: at.UTC(), UsedBytes: uint64(*bytes)} // not negative
}

// storageStats is the sum of the disk usage of a pod.
func storageStats(d *stats.Disk) *api.FsStats {
	if d.At.IsZero() {
		return nil
	}
	var total int64
	for _, c := range d.Containers {
		for _, bytes := range []*int64{c.Layer, c.Logs} {
			if bytes != nil {
				total += *bytes
			}
		}
	}
	return fsStats(d.At, &total)
}

func networkStats(n *stats.Network) *api.NetworkStats {
	if n == nil {
		return nil
	}
	s := &api.NetworkStats{Time: n.At.UTC()}
	for _, i := range n.Interfaces {
		s.Interfaces = append(s.Interfaces,
			api.InterfaceStats{Name: i.Name, RxBytes: i.RxBytes, RxErrors: i.RxErrors, TxBytes: i.TxBytes, TxErrors: i.TxErrors})
	}
	if at := slices.IndexFunc(s.Interfaces, func(i api.InterfaceStats) bool { return i.Name == "eth0" }); len(s.Interfaces) > 0 {
		s.InterfaceStats = s.Interfaces[max(at, 0)]
	}
	return s
}
