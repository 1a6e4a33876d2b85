//go:build e2e

package runtime_test

import (
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/oci"
)

// hugePagesFile has two containers with limits of huge pages. The first one prints what it sees of its volume.
const hugePagesFile = `
securityContext.fsGroup = 1234

[[containers]]
name = "a"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''
sed -nE 's|.* /huge (hugetlbfs) .*pagesize=([0-9A-Z]*).*|\1 \2|p' /proc/mounts
stat -c '%a %g' /huge
echo $PAGES
echo ready
exec sleep 100000
''']
resources.limits = { cpu = "250m", hugepages-2Mi = "4Mi" }
env.PAGES.resourceFieldRef = { resource = "limits.hugepages-2Mi", divisor = "1Mi" }
volumeMounts.huge = "/huge"

[[containers]]
name = "b"
image = "localhost/podstead/busybox:1"
resources.limits = { memory = "64Mi", hugepages-2Mi = "2Mi" }

[volumes.huge.emptyDir]
medium = "HugePages"
mode = 0o1700
`

// TestFieldsHugePages tests the limits of huge pages of a container and of its pod, where the cgroups have a controller for them, and a
// volume in huge pages. None need be reserved for that.
//
// fields: containers[].resources.limits, volumes[].emptyDir.{medium,mode}, containers[].env[].valueFrom.resourceFieldRef.resource
func TestFieldsHugePages(t *testing.T) {
	host, err := oci.DetectHost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := newTestHost(t)
	p := newPod(m, m.parse(hugePagesFile))
	ref := p.serve("a")
	wantLines(t, p.log(ref), "hugetlbfs 2M", "3770 1234", "4", "ready")
	if host.Controllers.Has(cgroup.HugeTLB) {
		g, file := p.groups(ref), ".limit_in_bytes"
		if g.unified {
			file = ".max"
		}
		own, pod := g.dir(cgroup.HugeTLB), filepath.Dir(g.dir(cgroup.HugeTLB))
		for _, size := range host.HugePages {
			container, all := "0", "0"
			if size == "2MB" {
				container, all = "4194304", "6291456"
			}
			for _, limit := range []struct{ dir, file, want string }{
				{own, "hugetlb." + size + file, container},
				{pod, "hugetlb." + size + file, all},
				{pod, "hugetlb." + size + ".rsvd" + file, all},
			} {
				if got := g.read(limit.dir, limit.file); got != limit.want {
					t.Errorf("%s/%s: %s, want %s", limit.dir, limit.file, got, limit.want)
				}
			}
		}
	}
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Fatal(err)
	}
}
