package doctor

import (
	"strings"
	"testing"

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
