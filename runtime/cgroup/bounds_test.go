package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

func TestBounds(t *testing.T) {
	const unlimited = "9223372036854771712\n" // of v1
	for _, test := range []struct {
		name   string
		groups []map[string]string
		want   Bounds
	}{
		{"none", []map[string]string{{}}, Bounds{}},
		{"unlimited, v2", []map[string]string{{"memory.max": "max\n", "cpu.max": "max 100000\n"}}, Bounds{}},
		{
			"unlimited, v1",
			[]map[string]string{{"memory.limit_in_bytes": unlimited, "cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}},
			Bounds{Memory: 9223372036854771712},
		},
		{"v2", []map[string]string{{"memory.max": "1048576\n", "cpu.max": "150000 100000\n"}}, Bounds{CPU: 1500, Memory: 1 << 20}},
		{
			"v1",
			[]map[string]string{{"memory.limit_in_bytes": "1048576\n", "cpu.cfs_quota_us": "50000\n", "cpu.cfs_period_us": "100000\n"}},
			Bounds{CPU: 500, Memory: 1 << 20},
		},
		{
			"the lowest of several",
			[]map[string]string{
				{"memory.max": "2\n", "cpu.max": "100 100"}, {"memory.max": "1\n", "cpu.max": "200 100"}, {"memory.max": "max\n"},
			},
			Bounds{CPU: 1000, Memory: 1},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got Bounds
			for _, files := range test.groups {
				dir := t.TempDir()
				for name, text := range files {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				got.add(dir)
			}
			if got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}
