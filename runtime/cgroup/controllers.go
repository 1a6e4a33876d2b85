package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The controllers that set limits.
const (
	CPU     = "cpu"
	Memory  = "memory"
	Pids    = "pids"
	HugeTLB = "hugetlb"
)

// bandwidthFile exists if the kernel can limit CPU time (CONFIG_CFS_BANDWIDTH).
const bandwidthFile = "/proc/sys/kernel/sched_cfs_bandwidth_slice_us"

// Controllers are the controllers of a host. The zero value has none.
type Controllers struct {
	// Unified means that the host has cgroup v2 only.
	Unified bool
	// Names are the available controllers. On a hybrid host they are those of v1, which containers use.
	Names []string
	// Bandwidth means that the controller cpu can limit CPU time, not only distribute it by shares.
	Bandwidth bool
	// Mounts are the mount points of the hierarchies in which pods have cgroups.
	Mounts []string
}

// Has reports whether a controller is available.
func (c Controllers) Has(name string) bool { return slices.Contains(c.Names, name) }

// DetectControllers returns the controllers of the host.
func DetectControllers() (Controllers, error) {
	hs, err := hierarchies()
	if err != nil {
		return Controllers{}, fmt.Errorf("detect cgroup controllers: %w", err)
	}
	c, err := controllersOf(hs)
	if err != nil {
		return c, fmt.Errorf("detect cgroup controllers: %w", err)
	}
	_, err = os.Stat(bandwidthFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("detect cgroup controllers: %w", err)
	}
	c.Bandwidth = err == nil
	return c, nil
}

func controllersOf(hs []hierarchy) (Controllers, error) { return controllersAt(hs, "/") }

// controllersAt returns the controllers of a cgroup. With cgroup v1 all cgroups have all.
func controllersAt(hs []hierarchy, path string) (Controllers, error) {
	c := Controllers{Unified: len(hs) == 1 && hs[0].v2}
	for _, h := range hs {
		c.Mounts = append(c.Mounts, h.mount)
		if !h.v2 {
			c.Names = append(c.Names, h.names...)
			continue
		}
		if !c.Unified {
			continue
		}
		list, err := os.ReadFile(filepath.Join(h.mount, path, "cgroup.controllers"))
		if err != nil {
			return c, err
		}
		c.Names = strings.Fields(string(list))
	}
	return c, nil
}
