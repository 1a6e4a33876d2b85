package doctor

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/runtime/cgroup"
)

// TestControllers: what limits cannot be held is said, with the cure.
func TestControllers(t *testing.T) {
	all := []string{"cpuset", "cpu", "memory", "pids"}
	for _, test := range []struct {
		name         string
		c            cgroup.Controllers
		grade        Grade
		detail, mend string // parts
	}{
		{"all", cgroup.Controllers{Names: all, Bandwidth: true}, OK, "v1 with", ""},
		{"all of v2", cgroup.Controllers{Unified: true, Names: all, Bandwidth: true}, OK, "v2 with", ""},
		{"no memory", cgroup.Controllers{Unified: true, Names: []string{"cpu", "pids"}, Bandwidth: true}, Warn, "v2 without memory:", "cgroup_enable=memory"},
		{"nothing", cgroup.Controllers{}, Warn, "v1 without cpu, memory, pids:", "delegate"},
		{"no bandwidth", cgroup.Controllers{Names: all}, Warn, "bandwidth", "CONFIG_CFS_BANDWIDTH"},
	} {
		l := controllers(test.c)
		if l.grade != test.grade || !strings.Contains(l.detail, test.detail) || !strings.Contains(l.mend, test.mend) {
			t.Errorf("%s: %+v", test.name, l)
		}
	}
}

// TestCheckThatHangs: a check that never comes back holds the others up for a bounded time.
func TestCheckThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := make(chan look)
		start := time.Now()
		if l := inTime(func() look { return <-never }); l.grade != Warn || l.mend == "" {
			t.Errorf("of a check that hangs: %+v", l)
		}
		if took := time.Since(start); took != patience {
			t.Errorf("it was given up after %v", took)
		}
		never <- look{}
		if l := inTime(func() look { return ok("well") }); l != ok("well") {
			t.Errorf("of one that answers: %+v", l)
		}
	})
}
