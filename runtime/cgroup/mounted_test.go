package cgroup

import (
	"errors"
	"slices"
	"testing"
)

// TestMountTable expects that the table of mounts is read once, and again when a hierarchy is no longer mounted.
func TestMountTable(t *testing.T) {
	const cpu = "33 30 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
	const v2 = "31 30 0:27 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n"
	const moved = "31 30 0:27 / /elsewhere rw - cgroup2 cgroup2 rw\n"
	const other = "40 22 0:31 / /run/x rw - overlay cgroup rw,lowerdir=/sys/fs/cgroup\nx - cgroup\n"
	reads, text, failure := 0, other, error(nil)
	is := []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"}
	table := mountTable{
		read:        func() (string, error) { reads++; return text, failure },
		isHierarchy: func(path string) bool { return slices.Contains(is, path) },
	}
	failed := errors.New("no /proc")
	for _, step := range []struct {
		name  string
		do    func()
		want  string
		err   error
		reads int
	}{
		{"none", func() {}, "", nil, 1},
		{"still none", func() {}, "", nil, 1},
		{"mounted", func() { text = other + cpu + v2 + other }, cpu + v2, nil, 1},
		{"kept while all are mounted", func() { text += moved }, cpu + v2, nil, 0},
		{"moved", func() { text, is = cpu+moved, []string{"/sys/fs/cgroup/cpu", "/elsewhere"} }, cpu + moved, nil, 1},
		{"kept after the move", func() {}, cpu + moved, nil, 0},
		{"unmounted, and the table cannot be read", func() { is, failure = nil, failed }, "", failed, 1},
		{"after that", func() { text, failure = v2, nil }, v2, nil, 1},
	} {
		reads = 0
		step.do()
		got, err := table.hierarchies()
		if got != step.want || !errors.Is(err, step.err) || reads != step.reads {
			t.Errorf("%s: got %q, %v after %d reads; want %q, %v after %d", step.name, got, err, reads, step.want, step.err, step.reads)
		}
	}
}

// TestMounted compares the kept lines with the hierarchies of this host.
func TestMounted(t *testing.T) {
	text, err := mounted.read()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		lines, err := mounted.hierarchies()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(parseHierarchies(lines, "0::/\n")), len(parseHierarchies(text, "0::/\n")); got != want {
			t.Errorf("%d hierarchies in the kept lines, want %d", got, want)
		}
	}
	for _, path := range mounted.paths {
		if !mounted.isHierarchy(path) {
			t.Errorf("%s is no hierarchy", path)
		}
	}
	if mounted.isHierarchy("/") {
		t.Error("/ is a hierarchy")
	}
}
