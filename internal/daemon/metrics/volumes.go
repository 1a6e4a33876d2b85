package metrics

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/podstead/podstead/supervisor"
)

// claims measures the persistent volumes that pods use. As in the kubelet, the figures are those of the file system: that of the state
// directory, unless another one is mounted on the volume. Gatherings do not overlap, so it needs no lock.
type claims struct {
	dir         string // with a directory for each volume; empty: none is measured
	log         *slog.Logger
	directories map[string]*directory // by name; a file system that hangs blocks only its volume
}

// names returns the persistent volumes that pods use, sorted.
func (c *claims) names(pods []supervisor.Snapshot) []string {
	used := map[string]bool{}
	for i := range pods {
		for _, v := range pods[i].Pod.Volumes {
			if c.dir != "" && v.PersistentVolumeClaim != nil {
				used[v.PersistentVolumeClaim.ClaimName] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(used))
}

// measure measures the file systems of volumes. One that does not exist or does not respond has none.
func (c *claims) measure(ctx context.Context, names []string) []*fileSystem {
	maps.DeleteFunc(c.directories, func(name string, d *directory) bool { return d.disk.Idle() && !slices.Contains(names, name) })
	systems := make([]*fileSystem, len(names))
	var running sync.WaitGroup
	for i, name := range names {
		d := c.directories[name]
		if d == nil {
			d = newDirectory(name, filepath.Join(c.dir, name), c.log)
			c.directories[name] = d
		}
		running.Go(func() { systems[i] = d.usage(ctx) })
	}
	running.Wait()
	return systems
}

// volume adds the figures of a persistent volume.
func (s *sample) volume(name string, f *fileSystem) {
	if f == nil {
		return
	}
	s.add(volumeCapacity, f.size, namespace, name)
	s.add(volumeAvailable, f.size-f.used, namespace, name)
	s.add(volumeUsed, f.used, namespace, name)
	s.add(volumeInodes, f.inodes, namespace, name)
	s.add(volumeInodesFree, f.inodes-f.inodesUsed, namespace, name)
	s.add(volumeInodesUsed, f.inodesUsed, namespace, name)
}
