package cgroup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseHierarchies(t *testing.T) {
	const hybridMounts = `22 1 8:1 / / rw - ext4 /dev/sda1 rw
30 22 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro
31 30 0:27 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw
32 30 0:28 / /sys/fs/cgroup/systemd rw shared:10 master:1 - cgroup cgroup rw,xattr,name=systemd
33 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
34 30 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
`
	const hybridCgroups = `3:cpuset:/
2:cpu,cpuacct:/system.slice
1:name=systemd:/system.slice/podstead.service
0::/system.slice/podstead.service
`
	const pureMounts = "30 22 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	tests := []struct {
		name, mounts, cgroups string
		want                  []hierarchy
	}{
		{"hybrid", hybridMounts, hybridCgroups, []hierarchy{
			{"/sys/fs/cgroup/unified", "/system.slice/podstead.service", true, []string{""}},
			{"/sys/fs/cgroup/systemd", "/system.slice/podstead.service", false, []string{"name=systemd"}},
			{"/sys/fs/cgroup/cpu,cpuacct", "/system.slice", false, []string{"cpu", "cpuacct"}},
			{"/sys/fs/cgroup/cpuset", "/", false, []string{"cpuset"}},
		}},
		{"pure v2", pureMounts, "0::/user.slice\n", []hierarchy{{"/sys/fs/cgroup", "/user.slice", true, []string{""}}}},
		{"mounted twice", pureMounts + pureMounts, "0::/\n", []hierarchy{{"/sys/fs/cgroup", "/", true, []string{""}}}},
		{"none", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n", "", nil},
		{"invalid lines", "a b\n\n1 2 3 4 /x - cgroup2\n", "::\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := parseHierarchies(tt.mounts, tt.cgroups)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(hierarchy{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestProcessMount(t *testing.T) {
	v1 := func(names ...string) hierarchy { return hierarchy{mount: "/" + names[0], names: names} }
	v2 := hierarchy{mount: "/unified", v2: true, names: []string{""}}
	for want, hs := range map[string][]hierarchy{
		"/unified": {v2},
		"/memory":  {v2, v1("cpu", "cpuacct"), v1("memory"), v1("pids")},
		"/cpu":     {v2, v1("cpu", "cpuacct"), v1("pids")},
		"/pids":    {v1("pids"), v2},
	} {
		if got := processHierarchy(hs).mount; got != want {
			t.Errorf("%v: %s, want %s", hs, got, want)
		}
	}
}

func TestRemoveTree(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "a")
	for _, below := range []string{"b/c", "d"} {
		if err := os.MkdirAll(filepath.Join(dir, below), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time it does not exist
		if err := RemoveTree(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	busy := filepath.Join(writeFiles(t, map[string]string{"a/b/process": ""}), "a")
	if err := RemoveTree(t.Context(), busy); err == nil {
		t.Error("a cgroup with processes was removed")
	}
}
