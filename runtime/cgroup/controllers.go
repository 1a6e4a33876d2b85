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

// The controllers that limits need.
const (
	CPU     = "cpu"
	Memory  = "memory"
	Pids    = "pids"
	HugeTLB = "hugetlb"
)

// bandwidthFile is there where the kernel can bound CPU time (CONFIG_CFS_BANDWIDTH).
const bandwidthFile = "/proc/sys/kernel/sched_cfs_bandwidth_slice_us"

// Controllers are those of a machine. The zero value has none.
type Controllers struct {
	// Unified says that there is cgroup v2 and no controller of v1.
	Unified bool
	// Names are those that cgroups can have. In a hybrid they are those of v1: containers lie there.
	Names []string
	// Bandwidth says that the controller cpu can bound CPU time, and not only share it out.
	Bandwidth bool
}

// Has reports whether there is a controller.
func (c Controllers) Has(name string) bool { return slices.Contains(c.Names, name) }

// LookAtControllers finds out which controllers the machine has.
func LookAtControllers() (Controllers, error) {
	hs, err := hierarchies()
	if err != nil {
		return Controllers{}, fmt.Errorf("look at cgroup controllers: %w", err)
	}
	c, err := controllersOf(hs)
	if err != nil {
		return c, fmt.Errorf("look at cgroup controllers: %w", err)
	}
	_, err = os.Stat(bandwidthFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("look at cgroup controllers: %w", err)
	}
	c.Bandwidth = err == nil
	return c, nil
}

func controllersOf(hs []hierarchy) (Controllers, error) {
	c := Controllers{Unified: len(hs) == 1 && hs[0].v2}
	for _, h := range hs {
		if !h.v2 {
			c.Names = append(c.Names, h.names...)
			continue
		}
		if !c.Unified {
			continue
		}
		list, err := os.ReadFile(filepath.Join(h.mount, "cgroup.controllers"))
		if err != nil {
			return c, err
		}
		c.Names = strings.Fields(string(list))
	}
	return c, nil
}
