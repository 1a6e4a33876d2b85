package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Period is the time in which a Quota may be used up, in microseconds: the kubelet's and the kernel's default.
const Period = 100_000

// Limits bound a cgroup with all that is below it. The zero value bounds nothing, but a cgroup without shares has the least.
type Limits struct {
	// Shares say how CPU time is divided where there is not enough, as cpu.shares of cgroup v1: 2 to 262144.
	Shares uint64
	// Quota is the CPU time in microseconds that may be used in each Period, on all processors together; 0: any.
	Quota int64
	// Memory is in bytes; 0: any.
	Memory int64
	// Pids is how many processes and threads there may be; 0: any.
	Pids int64
}

// MinShares and MaxShares are the kernel's bounds of shares.
const (
	MinShares = 2
	MaxShares = 262144
)

// PodWeight is the cpu.weight of cgroup v2 that the kubelet gives a pod of these shares: 2 becomes 1, and 262144 10000, with a
// straight line between. (The OCI runtimes take another curve for containers.)
func PodWeight(shares uint64) uint64 {
	shares = min(max(shares, MinShares), MaxShares)
	return 1 + (shares-MinShares)*9999/(MaxShares-MinShares)
}

// setting is a file of a controller with what is to be in it.
type setting struct {
	controller, file, value string
	optional                bool // a kernel that lacks the file does as it says
}

// settings are the files of a cgroup with these limits, in the order in which they are written.
func (l Limits) settings(unified bool) []setting {
	number := func(n int64, none string) string {
		if n <= 0 {
			return none
		}
		return strconv.FormatInt(n, 10)
	}
	shares := min(max(l.Shares, MinShares), MaxShares)
	period := strconv.Itoa(Period)
	if unified {
		return []setting{
			{CPU, "cpu.weight", strconv.FormatUint(PodWeight(shares), 10), false},
			{CPU, "cpu.max", number(l.Quota, "max") + " " + period, l.Quota <= 0},
			{Memory, "memory.max", number(l.Memory, "max"), false},
			{Pids, "pids.max", number(l.Pids, "max"), false},
		}
	}
	return []setting{
		{CPU, "cpu.shares", strconv.FormatUint(shares, 10), false},
		{CPU, "cpu.cfs_period_us", period, l.Quota <= 0},
		{CPU, "cpu.cfs_quota_us", number(l.Quota, "-1"), l.Quota <= 0},
		// Before Linux 5.11 a cgroup bounds what is below it only if it is told to, while there is nothing yet.
		{Memory, "memory.use_hierarchy", "1", true},
		{Memory, "memory.limit_in_bytes", number(l.Memory, "-1"), false},
		{Pids, "pids.max", number(l.Pids, "max"), false},
	}
}

// Bound makes the cgroup at path, if it is not there, and bounds it. Limits whose controller the machine has not are left out:
// whether that is allowed is the caller's to say.
func Bound(path string, l Limits) error {
	hs, err := hierarchies()
	if err != nil {
		return fmt.Errorf("bound cgroup %s: %w", path, err)
	}
	if err := bound(hs, path, l); err != nil {
		return fmt.Errorf("bound cgroup %s: %w", path, err)
	}
	return nil
}

func bound(hs []hierarchy, path string, l Limits) error {
	c, err := controllersOf(hs)
	if err != nil {
		return err
	}
	for _, h := range hs {
		if h.v2 != c.Unified {
			continue // the v2 of a hybrid, which has no controllers
		}
		held := slices.DeleteFunc(l.settings(c.Unified), func(s setting) bool {
			return !slices.Contains(h.names, s.controller) && (!c.Unified || !c.Has(s.controller))
		})
		if len(held) == 0 {
			continue
		}
		if err := os.MkdirAll(filepath.Join(h.mount, path), 0o755); err != nil {
			return err
		}
		if c.Unified {
			if err := enable(h.mount, path, held); err != nil {
				return err
			}
		}
		for _, s := range held {
			err := write(filepath.Join(h.mount, path, s.file), s.value)
			if err != nil && (!s.optional || !errors.Is(err, fs.ErrNotExist)) {
				return err
			}
		}
	}
	return nil
}

// enable lets the cgroup at path have the controllers of settings: each of its parents has to pass them on.
func enable(mount, path string, settings []setting) error {
	dir := mount
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		file := filepath.Join(dir, "cgroup.subtree_control")
		have, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		passed := strings.Fields(string(have))
		var more []string
		for _, s := range settings {
			if !slices.Contains(passed, s.controller) && !slices.Contains(more, "+"+s.controller) {
				more = append(more, "+"+s.controller)
			}
		}
		if len(more) > 0 {
			if err := write(file, strings.Join(more, " ")); err != nil {
				return fmt.Errorf("enable controllers %s: %w", strings.Join(more, " "), err)
			}
		}
		dir = filepath.Join(dir, name)
	}
	return nil
}

// write writes to a file of the kernel, which is there or not.
func write(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
