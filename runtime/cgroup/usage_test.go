package cgroup

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The files of a container with limits on a hybrid host (Linux 5.10) and on a host with cgroup v2 (Linux 6.1), some lines of memory.stat
// left out.
var (
	filesV1 = map[string]string{
		"cpu,cpuacct/pod/c/cpuacct.usage":    "2718281828\n",
		"cpu,cpuacct/pod/c/cpu.stat":         "nr_periods 120\nnr_throttled 30\nthrottled_time 1500000000\n",
		"memory/pod/c/memory.usage_in_bytes": "52428800\n",
		"memory/pod/c/memory.limit_in_bytes": "67108864\n",
		"memory/pod/c/memory.stat": "cache 12288\nrss 0\ninactive_file 1\nhierarchical_memory_limit " +
			"67108864\ntotal_cache 12582912\ntotal_rss 39845888\ntotal_swap 8192\ntotal_pgfault 9001\ntotal_pgmajfault " +
			"7\ntotal_inactive_file 10485760\ntotal_active_file 2097152\n",
		"memory/pod/c/memory.oom_control":      "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
		"pids/pod/c/pids.current":              "4\n",
		"memory/free/memory.usage_in_bytes":    "4096\n",
		"memory/free/memory.limit_in_bytes":    "9223372036854771712\n",
		"memory/free/memory.stat":              "total_inactive_file 8192\n",
		"memory/free/memory.oom_control":       "oom_kill_disable 0\nunder_oom 0\n",
		"memory/partial/memory.usage_in_bytes": "4096\n",
		"cpu,cpuacct/partial/cpuacct.usage":    "not a number\n",
		"unified/pod/c/memory.current":         "1\n",
		"cpu,cpuacct/partial/cpu.stat":         "\n",
		"pids/partial/pids.current":            "\n",
		"blkio/pod/c/blkio.throttle.io_service_bytes_recursive": "8:0 Read 4096\n8:0 Write 8192\n8:0 Sync 1\n8:0 Total 12288\n253:1 Read " +
			"1\nTotal 12289\n",
		"blkio/pod/c/blkio.throttle.io_serviced_recursive":   "8:0 Read 2\n8:0 Write 3\nTotal 5\n",
		"blkio/partial/blkio.throttle.io_serviced_recursive": "x Read 2\n8 Read 3\n8:0 Read many\n",
		"memory/partial/memory.oom_control":                  "oom_kill many\n",
		"memory/partial/memory.limit_in_bytes":               "-1\n",
	}
	filesV2 = map[string]string{
		"pod/c/cpu.stat": "usage_usec 2718281\nuser_usec 2000000\nsystem_usec 718281\nnr_periods 120\nnr_throttled " +
			"30\nthrottled_usec 1500000\nnr_bursts 0\nburst_usec 0\n",
		"pod/c/memory.current":      "52428800\n",
		"pod/c/memory.max":          "67108864\n",
		"pod/c/memory.swap.current": "8192\n",
		"pod/c/memory.stat": "anon 39845888\nfile 12582912\nkernel_stack 16384\ninactive_anon 0\ninactive_file " +
			"10485760\nactive_file 2097152\npgfault 9001\npgmajfault 7\n",
		"pod/c/memory.events": "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n",
		"pod/c/pids.current":  "4\n",
		"pod/c/io.stat": "253:1 rbytes=1 wbytes=0 rios=0 wios=0 dbytes=0 dios=0\n8:0 rbytes=4096 wbytes=8192 rios=2 " +
			"wios=3\n7:0\nx rbytes=1\n",
		"free/cpu.stat":       "usage_usec 5\nuser_usec 3\nsystem_usec 2\n",
		"free/memory.current": "8192\n",
		"free/memory.max":     "max\n",
		"free/memory.stat":    "anon 4096\nfile 0\ninactive_file 0\n",
	}
)

func TestUsage(t *testing.T) {
	v1, v2 := writeFiles(t, filesV1), writeFiles(t, filesV2)
	hybrid := []hierarchy{
		{mount: filepath.Join(v1, "unified"), v2: true, names: []string{""}},
		{mount: filepath.Join(v1, "cpu,cpuacct"), names: []string{"cpu", "cpuacct"}},
		{mount: filepath.Join(v1, "memory"), names: []string{"memory"}},
		{mount: filepath.Join(v1, "pids"), names: []string{"pids"}},
		{mount: filepath.Join(v1, "blkio"), names: []string{"blkio"}},
	}
	traffic := []DeviceIO{{8, 0, 4096, 8192, 2, 3}, {253, 1, 1, 0, 0, 0}}
	pure := []hierarchy{{mount: v2, v2: true, names: []string{""}}}
	memory := &MemoryUsage{
		Usage: 52428800, WorkingSet: 41943040, RSS: 39845888, Limit: 67108864, PageFaults: 9001, MajorFaults: 7, Cache: 12582912,
		Swap: new(uint64(8192)),
	}
	for _, test := range []struct {
		name string
		hs   []hierarchy
		path string
		want Usage
	}{
		{
			"v1 with limits", hybrid, "/pod/c",
			Usage{&CPUUsage{2718281828}, &Throttling{120, 30, 1500000000}, memory, new(uint64(2)), new(uint64(4)), traffic},
		},
		{"v1 without limit, inactive files above the usage", hybrid, "/free", Usage{Memory: &MemoryUsage{Usage: 4096}}},
		{"v1 with missing and invalid files", hybrid, "/partial", Usage{Throttling: &Throttling{}, IO: []DeviceIO{{Major: 8}}}},
		{"v1 without the cgroup", hybrid, "/none", Usage{}},
		{
			"v1 without the controllers memory and pids", hybrid[:2], "/pod/c",
			Usage{CPU: &CPUUsage{2718281828}, Throttling: &Throttling{120, 30, 1500000000}},
		},
		{
			"v2 with limits", pure, "/pod/c",
			Usage{&CPUUsage{2718281000}, &Throttling{120, 30, 1500000000}, memory, new(uint64(2)), new(uint64(4)), traffic},
		},
		{
			"v2 without limit and controllers", pure, "/free",
			Usage{CPU: &CPUUsage{5000}, Memory: &MemoryUsage{Usage: 8192, WorkingSet: 8192, RSS: 4096}},
		},
		{"v2 without the cgroup", pure, "/none", Usage{}},
		{"no cgroups", nil, "/pod/c", Usage{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, usageIn(test.hs, test.path)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
