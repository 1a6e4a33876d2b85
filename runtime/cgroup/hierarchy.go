package cgroup

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hierarchy is a mounted cgroup hierarchy: the one of cgroup v2, or one of several of v1.
type hierarchy struct {
	mount string // where it is mounted
	own   string // the cgroup of this process, from the mount's root
	v2    bool
	names []string // v1: its controllers, or name=…
}

// Join makes the cgroup at path, which is relative to the root of the hierarchies, and moves this process there.
//
// With cgroup v1 there is a hierarchy for each controller, and to join one costs some milliseconds each. Since the
// purpose is to leave the cgroup of a service, this process stays where it is in those where it lies at the root.
func Join(path string) error {
	hs, err := hierarchies()
	if err != nil {
		return fmt.Errorf("join cgroup %s: %w", path, err)
	}
	alone := len(hs) == 1
	for _, h := range hs {
		if h.own == "/" && !alone {
			continue
		}
		if err := h.join(path); err != nil {
			return fmt.Errorf("join cgroup %s: %w", path, err)
		}
	}
	return nil
}

// Remove removes the cgroup at path from every hierarchy. It is no error if there is none; one that has
// processes or children is.
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

// Lists is where a hierarchy is mounted in which every container has a cgroup, and that lists its processes therefore: the one of
// memory, where there is one.
func Lists() (string, error) {
	hs, err := hierarchies()
	if err != nil {
		return "", fmt.Errorf("look at cgroups: %w", err)
	}
	return lists(hs), nil
}

func lists(hs []hierarchy) string {
	best := hs[0]
	for _, h := range hs {
		if best.v2 || slices.Contains(h.names, Memory) { // the v2 of a hybrid has no controllers, and older OCI runtimes do not use it
			best = h
		}
	}
	return best.mount
}

// Dirs are the folders that the cgroup at path has: one in each hierarchy in which it was made.
func Dirs(path string) ([]string, error) {
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

// RemoveTree removes a folder of a cgroup with all below it. It is no error if there is none; one with processes is.
func RemoveTree(dir string) error {
	err := os.Remove(dir)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	children, listErr := os.ReadDir(dir)
	if listErr != nil {
		return errors.Join(err, listErr)
	}
	for _, c := range children { // its files go with it
		if c.IsDir() {
			if err := RemoveTree(filepath.Join(dir, c.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove cgroup: %w", err)
	}
	return nil
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
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0) // 0 is the writer
}

// inheritCpuset gives each cgroup of path its parent's processors and memory nodes: in v1 a new one has none, and can
// have no processes.
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

// hierarchies lists the mounted hierarchies with the place of this process in each.
func hierarchies() ([]hierarchy, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	hs := parseHierarchies(string(mounts), string(own))
	if len(hs) == 0 {
		return nil, errors.New("no cgroup hierarchy is mounted")
	}
	return hs, nil
}

// parseHierarchies joins the contents of /proc/self/mountinfo and /proc/self/cgroup.
func parseHierarchies(mountinfo, cgroup string) []hierarchy {
	places := map[string]string{} // by the comma-joined controllers; "" is v2
	for lines := bufio.NewScanner(strings.NewReader(cgroup)); lines.Scan(); {
		if f := strings.SplitN(lines.Text(), ":", 3); len(f) == 3 {
			places[f[1]] = f[2]
		}
	}
	var hs []hierarchy
	for lines := bufio.NewScanner(strings.NewReader(mountinfo)); lines.Scan(); {
		// 31 24 0:27 /root /mount/point rw,… [optional]… - fstype source rw,controller,…
		before, after, ok := strings.Cut(lines.Text(), " - ")
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
		for names, place := range places {
			if h.v2 == (names == "") && (h.v2 || containsAll(options, strings.Split(names, ","))) {
				h.own = place
				h.names = strings.Split(names, ",")
				hs = append(hs, h)
				break
			}
		}
	}
	return hs
}

func containsAll(set, want []string) bool {
	for _, w := range want {
		if !slices.Contains(set, w) {
			return false
		}
	}
	return true
}
