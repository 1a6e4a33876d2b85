package metrics

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/stats"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
)

// cpuPeriod is the period of CPU limits in microseconds.
const cpuPeriod = 100_000

// targetOf returns what is measured of a pod.
func targetOf(p *supervisor.Snapshot) stats.Target {
	t := stats.Target{UID: p.Facts.UID, Pod: p.Pod, Sandbox: sandboxOf(p), Containers: map[string]string{}}
	for _, c := range p.Status.Every() {
		if _, id, ok := strings.Cut(c.ContainerID, "://"); ok && c.State.Running != nil {
			t.Containers[c.Name] = id
		}
	}
	return t
}

// usage adds what a pod uses.
func (s *sample) usage(p *supervisor.Snapshot, t *stats.Target, m *stats.Pod, now time.Time) {
	name := p.Pod.Name
	if m.Cgroup != "" {
		s.cgroup(&m.Sample, []string{namespace, name, "", m.Cgroup, "", ""}, now)
		s.network(m.Network, name, m.Cgroup)
	}
	list := p.Status.Every()
	for i := range list {
		c := &list[i]
		disk := m.Disk.Containers[c.Name]
		if disk.Logs != nil {
			s.add(logUsage, float64(*disk.Logs), namespace, name, p.Facts.UID, c.Name)
		}
		figures, ok := m.Containers[c.Name]
		if !ok || c.State.Running == nil {
			continue
		}
		labels := []string{namespace, name, c.Name, m.Cgroups[c.Name], c.Image, t.Containers[c.Name]}
		s.cgroup(&figures, labels, now)
		s.add(containerStart, float64(c.State.Running.StartedAt.Unix()), labels...)
		s.limits(cmp.Or(c.Resources, &spec.Resources{}).Limits, labels)
		if disk.Layer != nil {
			s.add(fsUsage, float64(*disk.Layer), labels...)
		}
	}
}

// limits adds the limits of a container that are in effect.
func (s *sample) limits(limits spec.ResourceList, labels []string) {
	memory := limits[spec.ResourceMemory]
	s.add(specMemoryLimit, float64(memory.Value()), labels...)
	s.add(specCPUPeriod, cpuPeriod, labels...)
	if cpu, ok := limits[spec.ResourceCPU]; ok {
		s.add(specCPUQuota, float64(cpu.MilliValue())*cpuPeriod/1000, labels...)
	}
}

// cgroup adds the figures of a cgroup.
func (s *sample) cgroup(f *stats.Sample, labels []string, now time.Time) {
	with := func(more ...string) []string { return append(slices.Clone(labels), more...) }
	if f.CPU != nil {
		s.add(lastSeen, float64(now.Unix()), labels...)
		s.add(cpuUsage, seconds(f.CPU.Nanoseconds), with("total")...)
	}
	if t := f.Throttling; t != nil && t.Periods > 0 { // without a CPU limit there are no periods
		s.add(cfsPeriods, float64(t.Periods), labels...)
		s.add(cfsThrottled, float64(t.Throttled), labels...)
		s.add(cfsThrottledTime, seconds(t.Nanoseconds), labels...)
	}
	if m := f.Memory; m != nil {
		s.add(memoryUsage, float64(m.Usage), labels...)
		s.add(memoryWorkingSet, float64(m.WorkingSet), labels...)
		s.add(memoryRSS, float64(m.RSS), labels...)
		s.add(memoryCache, float64(m.Cache), labels...)
		if m.Swap != nil {
			s.add(memorySwap, float64(*m.Swap), labels...)
		}
		s.add(memoryFailures, float64(m.PageFaults), with("pgfault", "hierarchy")...)
		s.add(memoryFailures, float64(m.MajorFaults), with("pgmajfault", "hierarchy")...)
	}
	if f.OOMKills != nil {
		s.add(oomEvents, float64(*f.OOMKills), labels...)
	}
	if f.Pids != nil {
		s.add(processes, float64(*f.Pids), labels...)
	}
	for i := range f.IO {
		d := &f.IO[i]
		device := deviceName(d)
		s.add(fsReadBytes, float64(d.ReadBytes), with(device)...)
		s.add(fsReads, float64(d.ReadOperations), with(device)...)
		s.add(fsWriteBytes, float64(d.WriteBytes), with(device)...)
		s.add(fsWrites, float64(d.WriteOperations), with(device)...)
	}
}

func seconds(nanoseconds uint64) float64 { return float64(nanoseconds) / 1e9 }

// network adds the traffic of a pod.
func (s *sample) network(n *stats.Network, name, id string) {
	if n == nil {
		return
	}
	for i := range n.Interfaces {
		f := &n.Interfaces[i]
		labels := []string{namespace, name, id, f.Name}
		s.add(rxBytes, float64(f.RxBytes), labels...)
		s.add(rxErrors, float64(f.RxErrors), labels...)
		s.add(rxPackets, float64(f.RxPackets), labels...)
		s.add(rxDropped, float64(f.RxDropped), labels...)
		s.add(txBytes, float64(f.TxBytes), labels...)
		s.add(txErrors, float64(f.TxErrors), labels...)
		s.add(txPackets, float64(f.TxPackets), labels...)
		s.add(txDropped, float64(f.TxDropped), labels...)
	}
}

// deviceNames are the names of block devices by number. They are read from sysfs once: the numbers of devices are seldom used again.
var deviceNames sync.Map

// deviceName returns the path of a block device, or its number if the kernel does not know it any more.
func deviceName(d *cgroup.DeviceIO) string {
	number := fmt.Sprintf("%d:%d", d.Major, d.Minor)
	if stored, ok := deviceNames.Load(number); ok {
		if name, isText := stored.(string); isText {
			return name
		}
	}
	link, err := os.Readlink("/sys/dev/block/" + number)
	if err != nil {
		return number
	}
	name := "/dev/" + strings.ReplaceAll(filepath.Base(link), "!", "/")
	deviceNames.Store(number, name)
	return name
}
