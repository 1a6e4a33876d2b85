package doctor

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/runtime/cgroup"
)

// TestControllers checks that resource limits that cannot be enforced are reported with a hint.
func TestControllers(t *testing.T) {
	all := []string{"cpuset", "cpu", "memory", "pids"}
	for _, test := range []struct {
		name         string
		c            cgroup.Controllers
		grade        Grade
		detail, hint string // substrings
	}{
		{"all controllers on v1", cgroup.Controllers{Names: all, Bandwidth: true}, OK, "v1 with", ""},
		{"all controllers on v2", cgroup.Controllers{Unified: true, Names: all, Bandwidth: true}, OK, "v2 with", ""},
		{
			"no memory",
			cgroup.Controllers{Unified: true, Names: []string{"cpu", "pids"}, Bandwidth: true},
			Warn, "v2 without memory;",
			"cgroup_enable=memory",
		},
		{"no controllers", cgroup.Controllers{}, Warn, "v1 without cpu, memory, pids;", "delegate"},
		{"no bandwidth", cgroup.Controllers{Names: all}, Warn, "bandwidth", "CONFIG_CFS_BANDWIDTH"},
	} {
		r := controllers(test.c)
		if r.grade != test.grade || !strings.Contains(r.detail, test.detail) || !strings.Contains(r.hint, test.hint) {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
}

// TestReadOnlyHierarchies: what counts is where the hierarchies are mounted. The directory above them is read-only on hosts with cgroup v1.
func TestReadOnlyHierarchies(t *testing.T) {
	c, err := cgroup.DetectControllers()
	if err != nil || len(c.Mounts) == 0 || !c.Unified && slices.Contains(c.Mounts, cgroupRoot) {
		t.Errorf("mount points %v, %v", c.Mounts, err)
	}
	dir := t.TempDir()
	if got := readOnly([]string{dir, dir + "/none"}); !slices.Equal(got, []string{dir + "/none"}) {
		t.Errorf("mount points in which nothing can be created: %v", got)
	}
}

// TestUnwritableDirectory checks a file system that claims to be writable and has free space, but on which no file can be created, as after
// errors=remount-ro.
func TestUnwritableDirectory(t *testing.T) {
	if r := diskSpace("/proc/self", false); r.grade != Fail || r.hint == "" || !strings.Contains(r.detail, "/proc/self") {
		t.Errorf("directory in which no file can be created: %+v", r)
	}
	dir := t.TempDir()
	if r := diskSpace(dir, false); r.grade == Fail {
		t.Errorf("writable directory: %+v", r)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files that the check has left: %v, %v", left, err)
	}
}

func TestCheckTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := make(chan result)
		start := time.Now()
		if r := withTimeout(func() result { return <-blocked }); r.grade != Warn || r.hint == "" {
			t.Errorf("check that blocks: %+v", r)
		}
		if elapsed := time.Since(start); elapsed != checkTimeout {
			t.Errorf("check that blocks: timed out after %v, want %v", elapsed, checkTimeout)
		}
		blocked <- result{} // lets the goroutine of the check exit
		if r := withTimeout(func() result { return ok("done") }); r != ok("done") {
			t.Errorf("check that returns: %+v", r)
		}
	})
}
