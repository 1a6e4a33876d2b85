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

// Period is the period of a Quota in microseconds. It is the default of the kubelet and of the kernel.
const Period = 100_000

// Limits are the limits of a cgroup and its descendants. The zero value has no limits, and the minimum of shares.
type Limits struct {
	// Shares is the relative share of CPU time under contention, as cpu.shares of cgroup v1: 2 to 262144.
	Shares uint64
	// Quota is the CPU time in microseconds in each Period, summed over all processors; 0: no limit.
	Quota int64
	// Memory is in bytes; 0: no limit.
	Memory int64
	// Pids is the number of processes and threads; 0: no limit.
	Pids int64
	// HugePages are the huge pages by their sizes. Those of sizes that are not in it are not limited.
	HugePages []HugePages
}

// HugePages is the limit of the huge pages of a size.
type HugePages struct {
	Size  string // as the files of the controller have it, such as 2MB
	Bytes int64  // 0: none can be used
}

// MinShares and MaxShares are the kernel's limits of shares.
const (
	MinShares = 2
	MaxShares = 262144
)

// PodWeight returns the cpu.weight of cgroup v2 that the kubelet sets for a pod with these shares: a linear mapping of 2…262144 to 1…10000.
// (OCI runtimes use a different curve for containers.)
func PodWeight(shares uint64) uint64 {
	shares = min(max(shares, MinShares), MaxShares)
	return 1 + (shares-MinShares)*9999/(MaxShares-MinShares)
}

// setting is a file of a controller and its content.
type setting struct {
	controller, file, value string
	optional                bool // a kernel without the file behaves as if it had this content
}

// settings returns the files of a cgroup with these limits, in the order in which they must be written.
func (l Limits) settings(unified bool) []setting {
	number := func(n int64, none string) string {
		if n <= 0 {
			return none
		}
		return strconv.FormatInt(n, 10)
	}
	shares := min(max(l.Shares, MinShares), MaxShares)
	period := strconv.Itoa(Period)
	limit := "limit_in_bytes"
	if unified {
		limit = "max"
	}
	var most []setting
	for _, pages := range l.HugePages {
		file, bytes := "hugetlb."+pages.Size+".", strconv.FormatInt(pages.Bytes, 10)
		// The second one refuses to reserve more pages (Linux 5.7). Without it, a program is killed when it uses more.
		most = append(most, setting{HugeTLB, file + limit, bytes, false}, setting{HugeTLB, file + "rsvd." + limit, bytes, true})
	}
	if unified {
		return append([]setting{
			{CPU, "cpu.weight", strconv.FormatUint(PodWeight(shares), 10), false},
			{CPU, "cpu.max", number(l.Quota, "max") + " " + period, l.Quota <= 0},
			{Memory, "memory.max", number(l.Memory, "max"), false},
			{Pids, "pids.max", number(l.Pids, "max"), false},
		}, most...)
	}
	return append([]setting{
		{CPU, "cpu.shares", strconv.FormatUint(shares, 10), false},
		{CPU, "cpu.cfs_period_us", period, l.Quota <= 0},
		{CPU, "cpu.cfs_quota_us", number(l.Quota, "-1"), l.Quota <= 0},
		// Before Linux 5.11, the limit applies to descendants only if this is set before they exist.
		{Memory, "memory.use_hierarchy", "1", true},
		{Memory, "memory.limit_in_bytes", number(l.Memory, "-1"), false},
		{Pids, "pids.max", number(l.Pids, "max"), false},
	}, most...)
}

// SetLimits creates the cgroup at path if it does not exist, and sets its limits. Limits whose controller is not available are skipped; the
// caller decides whether that is acceptable.
func SetLimits(path string, l Limits) error {
	hs, err := hierarchies()
	if err != nil {
		return fmt.Errorf("set limits of cgroup %s: %w", path, err)
	}
	if err := setLimits(hs, "/", path, l); err != nil {
		return fmt.Errorf("set limits of cgroup %s: %w", path, err)
	}
	return nil
}

// SetLimitsBelow is [SetLimits] for a cgroup below top, which is delegated to this user. Controllers are those of top, and are enabled from
// there on.
func SetLimitsBelow(top, path string, l Limits) error {
	hs, err := hierarchies()
	if err == nil {
		err = setLimits(hs, top, path, l)
	}
	if err != nil {
		return fmt.Errorf("set limits of cgroup %s: %w", path, err)
	}
	return nil
}

// AtLeast returns the limits with the CPU time and the memory of others where those are higher.
func (l Limits) AtLeast(o Limits) Limits {
	higher := func(a, b int64) int64 {
		if a <= 0 || b <= 0 {
			return 0
		}
		return max(a, b)
	}
	l.Quota, l.Memory = higher(l.Quota, o.Quota), higher(l.Memory, o.Memory)
	return l
}

// LimitsOf returns the limits of CPU time and of memory of the cgroup at path, and no others. The error is [fs.ErrNotExist] if there is no
// such cgroup. A limit whose controller is not available is 0.
func LimitsOf(path string) (Limits, error) {
	hs, err := hierarchies()
	if err != nil {
		return Limits{}, fmt.Errorf("read limits of cgroup %s: %w", path, err)
	}
	return limitsIn(hs, path)
}

func limitsIn(hs []hierarchy, path string) (l Limits, err error) {
	found := false
	for _, h := range hs {
		dir := filepath.Join(h.mount, path)
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		found = true
		var b Bounds
		b.add(dir)
		if b.Memory > 0 && b.Memory < unlimitedV1 {
			l.Memory = b.Memory
		}
		if b.CPU > 0 {
			l.Quota = b.CPU * Period / 1000
		}
	}
	if !found {
		err = fmt.Errorf("read limits of cgroup %s: %w", path, fs.ErrNotExist)
	}
	return l, err
}

// SetMemory is [SetLimits] for memory only, in bytes; 0: no limit.
func SetMemory(path string, bytes int64) error {
	hs, err := hierarchies()
	if err == nil {
		err = set(hs, "/", path, func(unified bool) []setting {
			return slices.DeleteFunc(Limits{Memory: bytes}.settings(unified), func(s setting) bool { return s.controller != Memory })
		})
	}
	if err != nil {
		return fmt.Errorf("set memory limit of cgroup %s: %w", path, err)
	}
	return nil
}

// ProtectMemory protects the memory of the cgroup at path, up to this number of bytes, from being reclaimed for others (memory.min). Its
// parent gets the same protection, which limits that of the cgroup. ProtectMemory does nothing if the cgroup does not exist, and with
// cgroup v1, which has no protection.
func ProtectMemory(path string, bytes int64) error {
	hs, err := hierarchies()
	if err == nil {
		err = protectMemory(hs, path, bytes)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("protect memory of cgroup %s: %w", path, err)
	}
	return nil
}

func protectMemory(hs []hierarchy, path string, bytes int64) error {
	c, err := controllersOf(hs)
	if err != nil || !c.Unified || !c.Has(Memory) {
		return err
	}
	for _, h := range hs {
		if !h.v2 {
			continue
		}
		s := setting{Memory, "memory.min", strconv.FormatInt(bytes, 10), false}
		if err := enable(h.mount, "/", path, []setting{s}); err != nil {
			return err
		}
		for _, dir := range []string{filepath.Dir(path), path} {
			if err := Write(filepath.Join(h.mount, dir, s.file), s.value); err != nil {
				return err
			}
		}
	}
	return nil
}

func setLimits(hs []hierarchy, top, path string, l Limits) error {
	return set(hs, top, path, l.settings)
}

// set writes the settings of the cgroup at path, whose controllers are enabled from top on.
func set(hs []hierarchy, top, path string, of func(unified bool) []setting) error {
	c, err := controllersAt(hs, top)
	if err != nil {
		return err
	}
	for _, h := range hs {
		if h.v2 != c.Unified {
			continue // v2 on a hybrid host, which has no controllers
		}
		settings := slices.DeleteFunc(of(c.Unified), func(s setting) bool {
			return !slices.Contains(h.names, s.controller) && (!c.Unified || !c.Has(s.controller))
		})
		if len(settings) == 0 {
			continue
		}
		if err := os.MkdirAll(filepath.Join(h.mount, path), 0o755); err != nil {
			return err
		}
		if c.Unified {
			if err := enable(h.mount, top, path, settings); err != nil {
				return err
			}
		}
		for _, s := range settings {
			err := Write(filepath.Join(h.mount, path, s.file), s.value)
			if err != nil && (!s.optional || !errors.Is(err, fs.ErrNotExist)) {
				return err
			}
		}
	}
	return nil
}

// enable enables the controllers of settings for the cgroup at path, in top and in each cgroup between them (cgroup.subtree_control).
func enable(mount, top, path string, settings []setting) error {
	dir := filepath.Join(mount, top)
	for name := range strings.SplitSeq(strings.Trim(strings.TrimPrefix(path, top), "/"), "/") {
		file := filepath.Join(dir, "cgroup.subtree_control")
		have, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		enabled := strings.Fields(string(have))
		var more []string
		for _, s := range settings {
			if !slices.Contains(enabled, s.controller) && !slices.Contains(more, "+"+s.controller) {
				more = append(more, "+"+s.controller)
			}
		}
		if len(more) > 0 {
			if err := Write(file, strings.Join(more, " ")); err != nil {
				return fmt.Errorf("enable controllers %s: %w", strings.Join(more, " "), err)
			}
		}
		dir = filepath.Join(dir, name)
	}
	return nil
}

// Write writes to a file of the kernel. The file is not created.
func Write(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
