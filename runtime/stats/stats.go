// Package stats measures what pods use: CPU time, memory and processes from their cgroups, network traffic from their network namespaces,
// and the disk usage of their containers and volumes. It changes nothing on the host.
//
// A [Collector] measures on request only. A figure that cannot be read in time is left out. It affects no other figure and no other pod.
//
// A [DiskMonitor] measures the disk usage, and detects pods that must be evicted, because they exceed a limit of ephemeral-storage or of an
// emptyDir volume. The messages are the kubelet's (localStorageEviction). It also detects pods with a volume whose device has failed, which
// the kubelet does not.
package stats

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/spec"
)

const (
	// diskTimeout is how long a request waits for the disk usage of pods. A measurement continues for the next request.
	diskTimeout = 2 * time.Second
	// readTimeout bounds reading everything else, after that.
	readTimeout = 2 * time.Second
	// maxParallel bounds how many pods are read at the same time.
	maxParallel = 8
)

// Target is a pod to measure.
type Target struct {
	UID     string
	Pod     *spec.Pod
	Sandbox int // the number of the running sandbox; 0: none
	// Containers are the engine's IDs of the running containers, by name.
	Containers map[string]string
}

// Pod is what a pod uses.
type Pod struct {
	UID string
	// Sample is that of all processes of the pod.
	Sample
	Containers map[string]Sample // of the running containers, by name
	Network    *Network          // nil: it is not known, or that of the host
	Disk       Disk
	// Cgroup and Cgroups are the paths of the cgroups of the pod and of its running containers, by name. Only [Collector.Read] sets them.
	Cgroup  string
	Cgroups map[string]string
}

// Sample is the usage of a cgroup at a time.
type Sample struct {
	At time.Time
	cgroup.Usage
	// NanoCores is the CPU time in nanoseconds for each second since the sample before; nil: it is not known.
	NanoCores *uint64
}

// Network is the traffic of the interfaces of a pod, without the loopback interface.
type Network struct {
	At         time.Time
	Interfaces []Interface
}

// Interface is the traffic of an interface since it was created.
type Interface struct {
	Name                                       string
	RxBytes, RxErrors, TxBytes, TxErrors       uint64
	RxPackets, RxDropped, TxPackets, TxDropped uint64
}

// Disks measures the disk usage of pods.
type Disks interface {
	Disk(ctx context.Context, uid string, pod *spec.Pod) Disk
}

// Collector measures pods. It is safe for concurrent use.
type Collector struct {
	cgroups podcgroup.Groups
	dirs    record.Dirs
	disks   Disks
	log     *slog.Logger
	reading *semaphore.Weighted
	samples samples

	// Replaced in tests.
	usage      func(path string) cgroup.Usage
	interfaces func(netns string) ([]Interface, error)
}

// NewCollector returns a collector.
func NewCollector(cgroups podcgroup.Groups, dirs record.Dirs, disks Disks, log *slog.Logger) *Collector {
	return &Collector{
		cgroups: cgroups, dirs: dirs, disks: disks, log: log, reading: semaphore.NewWeighted(maxParallel), samples: newSamples(),
		usage: cgroup.UsageOf, interfaces: interfaces,
	}
}

// Collect measures pods, in the order of the targets. It takes at most a few seconds. A pod without an earlier sample in the last minutes
// is read twice, since its CPU usage is the difference of two samples.
func (c *Collector) Collect(ctx context.Context, targets []Target) []Pod {
	pods := c.each(ctx, targets, c.read)
	c.addRates(ctx, targets, pods)
	return pods
}

// Read measures pods, in the order of the targets, for a client that computes rates itself: it reads each cgroup once. The disk usage is
// that of an earlier measurement. If that is old, a new one begins and is for the next request. Read takes at most a few seconds.
func (c *Collector) Read(ctx context.Context, targets []Target) []Pod {
	return c.each(ctx, targets, c.readOnce)
}

// each measures the targets at the same time. Pods that are not measured in time have no figures.
func (c *Collector) each(ctx context.Context, targets []Target, read func(context.Context, *Target) Pod) []Pod {
	pods := make([]Pod, len(targets))
	for i := range targets {
		pods[i].UID = targets[i].UID
	}
	limited, cancel := context.WithTimeout(ctx, diskTimeout+readTimeout)
	defer cancel()
	type result struct {
		index int
		pod   Pod
	}
	results := make(chan result, len(targets))
	for i := range targets {
		go func() { results <- result{i, read(limited, &targets[i])} }()
	}
	for missing := len(targets); missing > 0; missing-- {
		select {
		case r := <-results:
			pods[r.index] = r.pod
		case <-limited.Done():
			missing = 0 // these pods have no figures
		}
	}
	return pods
}

// readOnce measures a pod for [Collector.Read].
func (c *Collector) readOnce(ctx context.Context, t *Target) Pod {
	done, cancel := context.WithCancel(ctx)
	cancel()
	p := c.readWith(ctx, t, c.disks.Disk(done, t.UID, t.Pod),
		func(path string) Sample { return Sample{Usage: c.usage(path), At: time.Now()} })
	if p.Containers != nil {
		p.Cgroup, p.Cgroups = c.cgroups.Pod(t.UID), map[string]string{}
		for name := range p.Containers {
			p.Cgroups[name] = c.cgroups.Container(t.UID, t.Containers[name])
		}
	}
	return p
}

// read measures a pod.
func (c *Collector) read(ctx context.Context, t *Target) Pod {
	waiting, cancel := context.WithTimeout(ctx, diskTimeout)
	disk := c.disks.Disk(waiting, t.UID, t.Pod)
	cancel()
	return c.readWith(ctx, t, disk, c.sample)
}

// readWith measures a pod whose disk usage is known.
func (c *Collector) readWith(ctx context.Context, t *Target, disk Disk, sample func(path string) Sample) Pod {
	p := Pod{UID: t.UID, Disk: disk}
	if record.CheckUID(t.UID) != nil || c.reading.Acquire(ctx, 1) != nil {
		return p
	}
	read, err := guard.Call(ctx, 0, c.log, func(context.Context) (Pod, error) {
		defer c.reading.Release(1)
		f := p
		if len(t.Containers) == 0 {
			return f, nil
		}
		f.Sample = sample(c.cgroups.Pod(t.UID))
		f.Containers = map[string]Sample{}
		for name, id := range t.Containers {
			f.Containers[name] = sample(c.cgroups.Container(t.UID, id))
		}
		f.Network = c.network(t)
		return f, nil
	})
	if err != nil {
		return p
	}
	return read
}

// sample reads a cgroup. The rate is missing if there was no sample before.
func (c *Collector) sample(path string) Sample {
	s := Sample{Usage: c.usage(path), At: time.Now()}
	if s.CPU != nil {
		s.NanoCores = c.samples.rate(path, s.At, s.CPU.Nanoseconds)
	}
	return s
}

// addRates reads the cgroups without a rate a second time.
func (c *Collector) addRates(ctx context.Context, targets []Target, pods []Pod) {
	missing := func(s *Sample) bool { return s.CPU != nil && s.NanoCores == nil }
	waited := false
	again := func(path string, s *Sample) {
		if !missing(s) {
			return
		}
		if !waited {
			waited = true
			wait := time.NewTimer(minWindow)
			defer wait.Stop()
			select {
			case <-wait.C:
			case <-ctx.Done():
			}
		}
		if second := c.sample(path); second.CPU != nil { // it may have exited
			*s = second
		}
	}
	for i := range pods {
		again(c.cgroups.Pod(pods[i].UID), &pods[i].Sample)
		for name, s := range pods[i].Containers {
			again(c.cgroups.Container(pods[i].UID, targets[i].Containers[name]), &s)
			pods[i].Containers[name] = s
		}
	}
}

// network returns the traffic of a pod with a network namespace.
func (c *Collector) network(t *Target) *Network {
	if t.Sandbox == 0 || t.Pod.HostNetwork {
		return nil
	}
	path := namespace.Paths(c.dirs.Sandbox(t.UID, t.Sandbox), namespace.Options{Network: true}).Network
	list, err := c.interfaces(path)
	if err != nil || len(list) == 0 {
		return nil
	}
	return &Network{At: time.Now(), Interfaces: list}
}
