package cgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// hierarchy is a mounted cgroup hierarchy: that of cgroup v2, or one of v1.
type hierarchy struct {
	mount string // the mount point
	own   string // the cgroup of this process, relative to the mount point
	v2    bool
	names []string // v1: controllers, or name=…
}

// Join creates the cgroup at path and moves this process to it.
//
// cgroup v1 has a hierarchy for each controller, and joining a cgroup takes some milliseconds in each. The purpose is to leave the cgroup
// of a service, therefore hierarchies in which this process is in the root cgroup are skipped.
func Join(path string) error {
	hs, err := hierarchies()
	if err != nil {
		return fmt.Errorf("join cgroup %s: %w", path, err)
	}
	alone := len(hs) == 1
	for _, h := range hs {
		if h.own == "/" && !alone && !slices.Contains(h.names, Memory) { // the memory of this process is limited
			continue
		}
		if err := h.join(path); err != nil {
			return fmt.Errorf("join cgroup %s: %w", path, err)
		}
	}
	return nil
}

// Remove removes the cgroup at path from every hierarchy. It is no error if the cgroup does not exist. It is an error if it has processes
// or children.
func Remove(path string) error {
	hs, err := hierarchies()
	if err != nil {
		return fmt.Errorf("remove cgroup %s: %w", path, err)
	}
	var errs []error
	for _, h := range hs {
		if err := os.Remove(filepath.Join(h.mount, path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove cgroup %s: %w", path, err))
		}
	}
	return errors.Join(errs...)
}

// ProcessMount returns the mount point of a hierarchy in which every container has a cgroup, so that it lists the container's processes:
// that of the memory controller, if there is one.
func ProcessMount() (string, error) {
	hs, err := hierarchies()
	if err != nil {
		return "", fmt.Errorf("detect cgroups: %w", err)
	}
	return processHierarchy(hs).mount, nil
}

// ProcessDirOf returns the directory that lists the processes of the cgroup of a process, in the hierarchy of [ProcessMount].
func ProcessDirOf(pid int) (string, error) {
	hs, err := hierarchiesOf(strconv.Itoa(pid))
	if err != nil {
		return "", err
	}
	if len(hs) == 0 {
		return "", errors.New("no cgroup hierarchy is mounted")
	}
	best := processHierarchy(hs)
	return filepath.Join(best.mount, best.own), nil
}

func processHierarchy(hs []hierarchy) hierarchy {
	best := hs[0]
	for _, h := range hs {
		if best.v2 || slices.Contains(h.names, Memory) { // on a hybrid host v2 has no controllers, and older OCI runtimes do not use it
			best = h
		}
	}
	return best
}

// Dirs returns the directories of the cgroup at path, one for each hierarchy in which it exists. An empty path is no cgroup.
func Dirs(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	hs, err := hierarchies()
	if err != nil {
		return nil, fmt.Errorf("find cgroup %s: %w", path, err)
	}
	var dirs []string
	for _, h := range hs {
		dir := filepath.Join(h.mount, path)
		switch _, err := os.Stat(dir); {
		case err == nil:
			dirs = append(dirs, dir)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("find cgroup %s: %w", path, err)
		}
	}
	return dirs, nil
}

// exitTime is how long a process that was killed may keep its cgroup busy. With cgroup v1 of Linux 6.18 that was seen for processes that
// /proc had as zombies and cgroup.procs still listed, and for those that it did not list any more.
const exitTime = time.Second

// RemoveTree removes the directory of a cgroup and its descendants. It is no error if it does not exist. It is an error if a
// process stays in it: it waits for those that exit.
func RemoveTree(ctx context.Context, dir string) error {
	err := os.Remove(dir)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	children, listErr := os.ReadDir(dir)
	if listErr != nil {
		return errors.Join(err, listErr)
	}
	for _, c := range children { // files are removed with the directory
		if c.IsDir() {
			if err := RemoveTree(ctx, filepath.Join(dir, c.Name())); err != nil {
				return err
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, exitTime)
	defer cancel()
	for {
		switch err := os.Remove(dir); {
		case err == nil, errors.Is(err, fs.ErrNotExist):
			return nil
		case !errors.Is(err, unix.EBUSY) || ctx.Err() != nil:
			return fmt.Errorf("remove cgroup: %w", err)
		}
		select {
		case <-time.After(exitTime / 100):
		case <-ctx.Done():
		}
	}
}

func (h hierarchy) join(path string) error {
	dir := filepath.Join(h.mount, path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if slices.Contains(h.names, "cpuset") {
		if err := inheritCpuset(h.mount, path); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0) // 0 is the writing process
}

// inheritCpuset copies the processors and memory nodes of the parent to each cgroup of path. In v1 a new cgroup has none, and cannot have
// processes without.
func inheritCpuset(root, path string) error {
	dir := root
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		parent := dir
		dir = filepath.Join(dir, name)
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			have, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				return err
			}
			if len(bytes.TrimSpace(have)) > 0 {
				continue
			}
			want, err := os.ReadFile(filepath.Join(parent, file))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, file), want, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// hierarchies returns the mounted hierarchies with the cgroup of this process in each.
func hierarchies() ([]hierarchy, error) {
	hs, err := hierarchiesOf("self")
	if err == nil && len(hs) == 0 {
		err = errors.New("no cgroup hierarchy is mounted")
	}
	return hs, err
}

// hierarchiesOf returns the mounted hierarchies with the cgroup of a process in each. There may be none.
func hierarchiesOf(process string) ([]hierarchy, error) {
	mounts, err := mounted.hierarchies()
	if err != nil {
		return nil, err
	}
	cgroups, err := os.ReadFile(filepath.Join("/proc", process, "cgroup"))
	if err != nil {
		return nil, err
	}
	return parseHierarchies(mounts, string(cgroups)), nil
}

// parseHierarchies parses the contents of /proc/self/mountinfo and /proc/self/cgroup.
func parseHierarchies(mountinfo, cgroup string) []hierarchy {
	own := map[string]string{} // cgroup of the process by comma-separated controllers; "" is v2
	for line := range strings.SplitSeq(cgroup, "\n") {
		if f := strings.SplitN(line, ":", 3); len(f) == 3 {
			own[f[1]] = f[2]
		}
	}
	var hs []hierarchy
	for line := range strings.SplitSeq(mountinfo, "\n") {
		// 31 24 0:27 /root /mount/point rw,… [optional]… - fstype source rw,controller,…
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		h := hierarchy{mount: left[4], v2: right[0] == "cgroup2"}
		if !h.v2 && right[0] != "cgroup" {
			continue
		}
		if slices.ContainsFunc(hs, func(o hierarchy) bool { return o.mount == h.mount }) {
			continue
		}
		options := strings.Split(right[2], ",")
		for names, path := range own {
			if h.v2 == (names == "") && (h.v2 || containsAll(options, strings.Split(names, ","))) {
				h.own = path
				h.names = strings.Split(names, ",")
				hs = append(hs, h)
				break
			}
		}
	}
	return hs
}

func containsAll(set, want []string) bool {
	return !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(set, w) })
}
