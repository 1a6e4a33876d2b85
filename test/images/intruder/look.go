package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// inspections return what is visible.
var inspections = map[string]attempt{
	"descriptors":  words(1, descriptors),
	"environment":  words(1, environment),
	"processes":    words(0, processes),
	"mounts":       words(0, mounts),
	"capabilities": words(1, capabilities),
	"sockets":      words(0, sockets),
	"devices":      words(0, devices),
	"find":         words(2, find),
}

// descriptors returns the targets of a process's open descriptors, without inode numbers.
func descriptors(w []string) (string, error) {
	var all []string
	for i := range 1024 {
		target, err := os.Readlink(fmt.Sprintf("/proc/%s/fd/%d", w[0], i))
		if err != nil {
			if i > 2 {
				continue
			}
			return "", err
		}
		kind, _, _ := strings.Cut(target, ":[")
		// The Go runtime has descriptors for epoll and for the CPU limit of its cgroup.
		if i < 3 || !strings.HasPrefix(kind, "anon_inode:") && !strings.HasPrefix(kind, "/sys/fs/cgroup/") {
			all = append(all, fmt.Sprintf("%d %s", i, kind))
		}
	}
	return strings.Join(all, ", "), nil
}

// environment returns the names of the environment variables of a process.
func environment(w []string) (string, error) {
	text, err := os.ReadFile("/proc/" + w[0] + "/environ")
	if err != nil {
		return "", err
	}
	var names []string
	for variable := range strings.SplitSeq(strings.TrimRight(string(text), "\x00"), "\x00") {
		name, _, _ := strings.Cut(variable, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " "), nil
}

// processes returns the programs of all visible processes.
func processes([]string) (string, error) {
	var all []string
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	for _, name := range files {
		if text, err := os.ReadFile(name); err == nil {
			all = append(all, strings.TrimSpace(string(text)))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " "), err
}

// mounts returns all mount points with their type, and the path within their file system unless that is its root.
func mounts([]string) (string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer file.Close()
	var all []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) < 6 || len(kind) == 0 {
			return "", fmt.Errorf("parse mountinfo: %q", lines.Text())
		}
		access, _, _ := strings.Cut(fields[5], ",")
		entry := fields[4] + " " + kind[0] + " " + access
		if fields[3] != "/" {
			entry += " from " + fields[3]
		}
		all = append(all, entry)
	}
	return strings.Join(all, ", "), lines.Err()
}

// capabilities returns a capability set of this process ("CapEff") in the kernel's format.
func capabilities(w []string) (string, error) {
	text, err := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, w[0]+":"); found {
			return strings.TrimSpace(value), nil
		}
	}
	return "", err
}

// sockets returns the names of all unix sockets in this network namespace.
func sockets([]string) (string, error) {
	text, err := os.ReadFile("/proc/net/unix")
	var all []string
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 7 && fields[7] != "Path" {
			all = append(all, fields[7])
		}
	}
	if len(all) == 0 {
		return "none", err
	}
	return strings.Join(all, " "), err
}

// devices returns the names in /dev.
func devices([]string) (string, error) {
	entries, err := os.ReadDir("/dev")
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " "), err
}

// find looks below a directory for files whose names contain a string. It skips /proc and /sys.
func find(w []string) (string, error) {
	var all []string
	err := filepath.WalkDir(w[0], func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // not accessible, so not found
		case path == "/proc", path == "/sys":
			return filepath.SkipDir
		case strings.Contains(entry.Name(), w[1]):
			all = append(all, path)
		}
		return nil
	})
	if len(all) == 0 {
		return "nothing", err
	}
	return strings.Join(all, " "), err
}
