package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPodWeight(t *testing.T) {
	for shares, want := range map[uint64]uint64{0: 1, 2: 1, 28: 1, 29: 2, 102: 4, 1024: 39, 2048: 79, 262144: 10000, 1 << 40: 10000} {
		if got := PodWeight(shares); got != want {
			t.Errorf("%d shares: weight %d, want %d", shares, got, want)
		}
	}
}

func TestSettings(t *testing.T) {
	all := Limits{Shares: 512, Quota: 50_000, Memory: 64 << 20, Pids: 100}
	huge := []HugePages{{"2MB", 4 << 20}, {"1GB", 0}}
	for _, test := range []struct {
		name    string
		limits  Limits
		unified bool
		want    string
	}{
		{"v2", all, true, "cpu.weight=20 cpu.max=50000 100000 memory.max=67108864 pids.max=100"},
		{"v2, no limits", Limits{}, true, "cpu.weight=1 cpu.max=max 100000? memory.max=max pids.max=max"},
		{"v2, huge pages", Limits{Pids: 1, HugePages: huge}, true, "cpu.weight=1 cpu.max=max 100000? memory.max=max pids.max=1 " +
			"hugetlb.2MB.max=4194304 hugetlb.2MB.rsvd.max=4194304? hugetlb.1GB.max=0 hugetlb.1GB.rsvd.max=0?"},
		{"v1, huge pages", Limits{Pids: 1, HugePages: huge}, false, "cpu.shares=2 cpu.cfs_period_us=100000? cpu.cfs_quota_us=-1? " +
			"memory.use_hierarchy=1? memory.limit_in_bytes=-1 pids.max=1 hugetlb.2MB.limit_in_bytes=4194304 " +
			"hugetlb.2MB.rsvd.limit_in_bytes=4194304? hugetlb.1GB.limit_in_bytes=0 hugetlb.1GB.rsvd.limit_in_bytes=0?"},
		{"v1", all, false, "cpu.shares=512 cpu.cfs_period_us=100000 cpu.cfs_quota_us=50000 memory.use_hierarchy=1? " +
			"memory.limit_in_bytes=67108864 pids.max=100"},
		{"v1, no limits", Limits{}, false, "cpu.shares=2 cpu.cfs_period_us=100000? cpu.cfs_quota_us=-1? memory.use_hierarchy=1? " +
			"memory.limit_in_bytes=-1 pids.max=max"},
		{"too many shares", Limits{Shares: 1 << 30}, false, "cpu.shares=262144 cpu.cfs_period_us=100000? cpu.cfs_quota_us=-1? " +
			"memory.use_hierarchy=1? memory.limit_in_bytes=-1 pids.max=max"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, s := range test.limits.settings(test.unified) {
				text := s.file + "=" + s.value
				if s.optional {
					text += "?"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAtLeast(t *testing.T) {
	for _, test := range []struct {
		name          string
		l, now, bound Limits
	}{
		{"both grow", Limits{Quota: 2, Memory: 4}, Limits{Quota: 1, Memory: 3}, Limits{Quota: 2, Memory: 4}},
		{"both shrink", Limits{Quota: 1, Memory: 3}, Limits{Quota: 2, Memory: 4}, Limits{Quota: 2, Memory: 4}},
		{"one each", Limits{Quota: 2, Memory: 3}, Limits{Quota: 1, Memory: 4}, Limits{Quota: 2, Memory: 4}},
		{"limits are added", Limits{Quota: 2, Memory: 3}, Limits{}, Limits{}},
		{"limits are removed", Limits{}, Limits{Quota: 2, Memory: 3}, Limits{}},
		{"shares and processes are new", Limits{Shares: 1, Pids: 2}, Limits{Shares: 3, Pids: 4}, Limits{Shares: 1, Pids: 2}},
	} {
		if diff := cmp.Diff(test.bound, test.l.AtLeast(test.now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestLimitsOf(t *testing.T) {
	v2 := func(files map[string]string) []hierarchy { return []hierarchy{{mount: writeFiles(t, files), v2: true}} }
	v1 := func(quota, memory string) []hierarchy {
		cpu := map[string]string{"p/cpu.cfs_quota_us": quota + "\n", "p/cpu.cfs_period_us": "100000\n"}
		return []hierarchy{
			{mount: writeFiles(t, cpu), names: []string{CPU}},
			{mount: writeFiles(t, map[string]string{"p/memory.limit_in_bytes": memory + "\n"}), names: []string{Memory}},
		}
	}
	for _, test := range []struct {
		name  string
		hs    []hierarchy
		want  Limits
		found bool
	}{
		{"v2", v2(map[string]string{"p/cpu.max": "25000 100000\n", "p/memory.max": "4096\n"}), Limits{Quota: 25000, Memory: 4096}, true},
		{"v2, no limits", v2(map[string]string{"p/cpu.max": "max 100000\n", "p/memory.max": "max\n"}), Limits{}, true},
		{"v2, no controllers", v2(map[string]string{"p/cgroup.procs": ""}), Limits{}, true},
		{"v2, no cgroup", v2(map[string]string{"q/memory.max": "4096\n"}), Limits{}, false},
		{"v1", v1("1000", "8192"), Limits{Quota: 1000, Memory: 8192}, true},
		{"v1, no limits", v1("-1", "9223372036854771712"), Limits{}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := limitsIn(test.hs, "p")
			if !cmp.Equal(got, test.want) || test.found != (err == nil) || err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

// writeFiles creates files in a temporary directory, and returns the directory.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// wantFiles compares the content of files in a directory.
func wantFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != text {
			t.Errorf("%s: %q, %v; want %q", name, got, err, text)
		}
	}
}

// Every parent enables the controllers that are available and needed. Limits of other controllers are skipped.
func TestSetLimitsV2(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"cgroup.controllers": "cpuset cpu memory\n", "cgroup.subtree_control": "cpu memory\n", "pods/cgroup.subtree_control": "",
		"pods/uid/cpu.weight": "", "pods/uid/cpu.max": "", "pods/uid/memory.max": "", "pods/uid/pids.max": "",
	})
	hs := []hierarchy{{mount: dir, v2: true, names: []string{""}}}
	if err := setLimits(hs, "/", "/pods/uid", Limits{Shares: 1024, Memory: 4096, Pids: 9}); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, map[string]string{
		"cgroup.subtree_control": "cpu memory\n", "pods/cgroup.subtree_control": "+cpu +memory",
		"pods/uid/cpu.weight": "39", "pods/uid/cpu.max": "max 100000", "pods/uid/memory.max": "4096", "pods/uid/pids.max": "",
	})
}

// The controllers of a delegated cgroup are its own ones, and are enabled from there on: nothing is written above it.
func TestSetLimitsBelow(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"cgroup.controllers": "cpu memory pids\n", "cgroup.subtree_control": "", "user/cgroup.subtree_control": "",
		"user/scope/cgroup.controllers": "memory pids\n", "user/scope/cgroup.subtree_control": "",
		"user/scope/uid/cpu.weight": "", "user/scope/uid/cpu.max": "", "user/scope/uid/memory.max": "", "user/scope/uid/pids.max": "",
	})
	hs := []hierarchy{{mount: dir, v2: true, names: []string{""}}}
	if err := setLimits(hs, "/user/scope", "/user/scope/uid", Limits{Shares: 1024, Memory: 4096, Pids: 9}); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, map[string]string{
		"cgroup.subtree_control": "", "user/cgroup.subtree_control": "", "user/scope/cgroup.subtree_control": "+memory +pids",
		"user/scope/uid/cpu.weight": "", "user/scope/uid/cpu.max": "", "user/scope/uid/memory.max": "4096", "user/scope/uid/pids.max": "9",
	})
}

// The protection of a cgroup counts within that of its parent. Neither is created.
func TestProtectMemory(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"cgroup.controllers": "cpu memory\n", "cgroup.subtree_control": "", "pods/cgroup.subtree_control": "",
		"pods/memory.min": "", "pods/monitor/memory.min": "",
	})
	hs := []hierarchy{{mount: dir, v2: true, names: []string{""}}}
	if err := protectMemory(hs, "/pods/monitor", 4096); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, map[string]string{
		"cgroup.subtree_control": "+memory", "pods/cgroup.subtree_control": "+memory", "pods/memory.min": "4096",
		"pods/monitor/memory.min": "4096",
	})
	if err := protectMemory(hs, "/pods/none", 4096); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a cgroup that does not exist: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "pods/none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a cgroup that does not exist was created: %v", err)
	}
	v1 := []hierarchy{{mount: filepath.Join(dir, "memory"), names: []string{Memory}}}
	if err := protectMemory(v1, "/pods/monitor", 4096); err != nil {
		t.Errorf("cgroup v1: %v", err)
	}
}

// Each controller has its own hierarchy. Hierarchies without limits are not changed.
func TestSetLimitsV1(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"cpu/p/cpu.shares": "", "cpu/p/cpu.cfs_period_us": "", "cpu/p/cpu.cfs_quota_us": "", "memory/p/memory.limit_in_bytes": "",
		"unified/cgroup.controllers": "hugetlb", "freezer/tasks": "",
	})
	var hs []hierarchy
	for _, name := range []string{"cpu", "memory", "freezer"} {
		hs = append(hs, hierarchy{mount: filepath.Join(dir, name), names: []string{name}})
	}
	hs = append(hs, hierarchy{mount: filepath.Join(dir, "unified"), v2: true, names: []string{""}})
	if err := setLimits(hs, "/", "/p", Limits{Shares: 4, Quota: 1000}); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, map[string]string{
		"cpu/p/cpu.shares": "4", "cpu/p/cpu.cfs_period_us": "100000", "cpu/p/cpu.cfs_quota_us": "1000",
		"memory/p/memory.limit_in_bytes": "-1",
	})
	for _, none := range []string{"freezer/p", "unified/p"} {
		if _, err := os.Stat(filepath.Join(dir, none)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was created", none)
		}
	}
}

// A limit that cannot be written is an error. A missing file for a limit that is not set is no error.
func TestSetLimitsErrors(t *testing.T) {
	const quota, memory, none = "cpu.max", "memory.max", ""
	for _, test := range []struct {
		missing string
		limits  Limits
		want    string // part of the error
	}{
		{quota, Limits{}, none},
		{quota, Limits{Quota: 1000}, quota},
		{memory, Limits{}, memory},
	} {
		files := map[string]string{
			"cgroup.controllers": "cpu memory", "cgroup.subtree_control": "cpu memory",
			"p/cpu.weight": "", "p/cpu.max": "", "p/memory.max": "",
		}
		delete(files, "p/"+test.missing)
		err := setLimits([]hierarchy{{mount: writeFiles(t, files), v2: true}}, "/", "/p", test.limits)
		if (err != nil) != (test.want != none) || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("without %s, with %+v: %v", test.missing, test.limits, err)
		}
	}
	err := setLimits([]hierarchy{{mount: writeFiles(t, map[string]string{"cgroup.controllers": "cpu"}), v2: true}}, "/", "/p", Limits{})
	if err == nil || !strings.Contains(err.Error(), "subtree_control") {
		t.Errorf("parent without cgroup.subtree_control: %v", err)
	}
}

func TestControllers(t *testing.T) {
	dir := writeFiles(t, map[string]string{"cgroup.controllers": "cpu io pids\n"})
	unified := hierarchy{mount: dir, v2: true, names: []string{""}}
	for _, test := range []struct {
		name string
		hs   []hierarchy
		want Controllers
	}{
		{"v2", []hierarchy{unified}, Controllers{Unified: true, Names: []string{"cpu", "io", "pids"}, Mounts: []string{dir}}},
		{
			"hybrid",
			[]hierarchy{
				unified, {mount: "/c/cpu", names: []string{"cpu", "cpuacct"}}, {mount: "/c/systemd", names: []string{"name=systemd"}},
			},
			Controllers{Names: []string{"cpu", "cpuacct", "name=systemd"}, Mounts: []string{dir, "/c/cpu", "/c/systemd"}},
		},
	} {
		got, err := controllersOf(test.hs)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", test.name, err, diff)
		}
		if !got.Has("cpu") || got.Has("memory") {
			t.Errorf("%s: has cpu %v, memory %v", test.name, got.Has("cpu"), got.Has("memory"))
		}
	}
	if _, err := controllersOf([]hierarchy{{mount: filepath.Join(dir, "none"), v2: true}}); err == nil {
		t.Error("a hierarchy that does not exist has controllers")
	}
	if c, err := DetectControllers(); err != nil || len(c.Names) == 0 && !c.Unified {
		t.Errorf("controllers of this host: %+v, %v", c, err)
	}
}

func TestOOMKills(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"v1/memory.oom_control":  "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
		"old/memory.oom_control": "oom_kill_disable 0\nunder_oom 1\n",
		"v2/memory.events":       "low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 1\n", "bad/memory.events": "oom_kill many\n",
		"bad/memory.peak":              "many\n",
		"v1/memory.max_usage_in_bytes": "1048576\n", "v2/memory.peak": "2097152\n",
	})
	for _, test := range []struct {
		name    string
		unified bool
		want    int64
		bad     bool
	}{
		{"v1", false, 3, false},
		{"old", false, 0, false},
		{"v2", true, 1, false},
		{"bad", true, 0, true},
		{"none", true, 0, true},
	} {
		m := MemoryGroupIn(filepath.Join(dir, test.name), test.unified)
		got, err := m.OOMKills()
		if got != test.want || (err != nil) != test.bad || test.name == "none" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %d, %v", test.name, got, err)
		}
		if up := m.Parent(); up.dir != dir || up.Unified() != test.unified {
			t.Errorf("%s: parent %+v", test.name, up)
		}
	}
	for name, want := range map[string]int64{"v1": 1048576, "old": 0, "v2": 2097152, "bad": 0, "none": 0} {
		if got := MemoryGroupIn(filepath.Join(dir, name), name != "v1").MemoryPeak(); got != want {
			t.Errorf("%s: peak %d, want %d", name, got, want)
		}
	}
	if _, err := MemoryGroupOf(-1); err == nil {
		t.Error("a process that does not exist has a cgroup")
	}
}
