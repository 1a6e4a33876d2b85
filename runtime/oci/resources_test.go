package oci

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/spec"
)

// amounts parses a list of resources such as "cpu=1".
func amounts(words string) spec.ResourceList {
	list := spec.ResourceList{}
	for word := range strings.FieldsSeq(words) {
		name, amount, _ := strings.Cut(word, "=")
		list[name] = resource.MustParse(amount)
	}
	return list
}

// with returns resources without defaulted requests.
func with(requests, limits string) spec.Resources {
	return spec.Resources{Requests: amounts(requests), Limits: amounts(limits)}
}

func TestShares(t *testing.T) {
	for milli, want := range map[int64]uint64{0: 2, 1: 2, 2: 2, 10: 10, 100: 102, 1000: 1024, 256_000: 262_144, 1 << 40: 262_144} {
		if got := sharesOf(milli); got != want {
			t.Errorf("%dm: %d shares, want %d", milli, got, want)
		}
	}
}

func TestQuota(t *testing.T) {
	for milli, want := range map[int64]int64{-1: 0, 0: 0, 1: 1000, 10: 1000, 11: 1100, 500: 50_000, 1000: 100_000, 64_000: 6_400_000} {
		if got := quotaOf(milli); got != want {
			t.Errorf("%dm: %d microseconds, want %d", milli, got, want)
		}
	}
}

// TestLimit tests the resources in the specification on hosts with different controllers.
func TestLimit(t *testing.T) {
	const mib = int64(1 << 20)
	cpu := func(shares uint64, quota int64) *specs.LinuxCPU {
		c := &specs.LinuxCPU{Shares: &shares}
		if period := uint64(100_000); quota > 0 {
			c.Quota, c.Period = &quota, &period
		}
		return c
	}
	memory := func(limit, swap int64) *specs.LinuxMemory {
		m := &specs.LinuxMemory{Limit: &limit}
		if swap > 0 {
			m.Swap = &swap
		}
		return m
	}
	v1 := Host{Controllers: cgroup.Controllers{Names: []string{"cpu", "memory", "pids"}}, HugePages: []string{"2MB"}}
	v2 := Host{
		UnifiedCgroups: true, Controllers: cgroup.Controllers{Unified: true, Names: []string{"cpu", "memory", "hugetlb"}},
		HugePages: []string{"2MB", "1GB"},
	}
	without := Host{UnifiedCgroups: true, Controllers: cgroup.Controllers{Unified: true, Names: []string{"io"}}, HugePages: []string{"2MB"}}
	hugeV1 := Host{Controllers: cgroup.Controllers{Names: []string{"cpu", "hugetlb"}}, HugePages: []string{"2MB", "1GB"}}
	huge := []specs.LinuxHugepageLimit{{Pagesize: "2MB"}, {Pagesize: "1GB"}}
	for _, test := range []struct {
		name     string
		host     Host
		pod      spec.Resources
		resource spec.Resources
		shows    PodCgroup
		want     specs.LinuxResources
	}{
		{"nothing, v1", v1, spec.Resources{}, spec.Resources{}, PodCgroup{Swap: true}, specs.LinuxResources{CPU: cpu(2, 0)}},
		{
			"nothing, v2", v2,
			spec.Resources{},
			spec.Resources{},
			PodCgroup{Swap: true, OOMGroup: true},
			specs.LinuxResources{
				CPU: cpu(2, 0), HugepageLimits: huge, Unified: map[string]string{"memory.swap.max": "0", "memory.oom.group": "1"},
			},
		},
		{
			"all, v1", v1,
			spec.Resources{},
			with("cpu=100m memory=1Mi", "cpu=0.5 memory=64Mi"),
			PodCgroup{Swap: true},
			specs.LinuxResources{CPU: cpu(102, 50_000), Memory: memory(64*mib, 64*mib)},
		},
		{
			"all, v1 without accounting of swap", v1,
			spec.Resources{},
			with("cpu=100m", "cpu=0.5 memory=64Mi"),
			PodCgroup{},
			specs.LinuxResources{CPU: cpu(102, 50_000), Memory: memory(64*mib, 0)},
		},
		{
			"all, v2 of an old kernel", v2,
			spec.Resources{},
			with("cpu=1", "cpu=2 memory=64Mi"),
			PodCgroup{},
			specs.LinuxResources{CPU: cpu(1024, 200_000), Memory: memory(64*mib, 0), HugepageLimits: huge, Unified: map[string]string{}},
		},
		{
			"huge pages", v2,
			spec.Resources{},
			with("", "cpu=1 hugepages-2Mi=6Mi"),
			PodCgroup{},
			specs.LinuxResources{
				CPU:            cpu(1024, 100_000),
				HugepageLimits: []specs.LinuxHugepageLimit{{Pagesize: "2MB", Limit: uint64(6 * mib)}, {Pagesize: "1GB"}},
				Unified:        map[string]string{},
			},
		},
		{
			"huge pages, v1", hugeV1,
			spec.Resources{},
			with("", "cpu=1 hugepages-1Gi=2Gi"),
			PodCgroup{},
			specs.LinuxResources{
				CPU:            cpu(1024, 100_000),
				HugepageLimits: []specs.LinuxHugepageLimit{{Pagesize: "2MB"}, {Pagesize: "1GB", Limit: uint64(2048 * mib)}},
			},
		},
		{
			"huge pages of the pod", hugeV1,
			with("", "hugepages-2Mi=6Mi hugepages-1Gi=2Gi"),
			with("", "cpu=1 hugepages-1Gi=0"),
			PodCgroup{},
			specs.LinuxResources{
				CPU:            cpu(1024, 100_000),
				HugepageLimits: []specs.LinuxHugepageLimit{{Pagesize: "2MB", Limit: uint64(6 * mib)}, {Pagesize: "1GB"}},
			},
		},
		{"shares of a limit", v1, spec.Resources{}, with("", "cpu=1"), PodCgroup{}, specs.LinuxResources{CPU: cpu(1024, 100_000)}},
		{"a request of nothing", v1, spec.Resources{}, with("cpu=0", "cpu=1"), PodCgroup{}, specs.LinuxResources{CPU: cpu(2, 100_000)}},
		{
			"limits of the pod", v1, with("", "cpu=1 memory=2Mi"), with("cpu=500m", ""),
			PodCgroup{},
			specs.LinuxResources{CPU: cpu(512, 100_000), Memory: memory(2*mib, 0)},
		},
		{"no controllers", without, spec.Resources{}, with("cpu=500m", "cpu=1 memory=1Mi"), PodCgroup{}, specs.LinuxResources{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := &spec.Pod{Resources: test.pod, Containers: []spec.Container{{Name: "app", Resources: test.resource}}}
			var got specs.LinuxResources
			limit(&got, &Input{Pod: pod, Container: &pod.Containers[0], Host: test.host, Cgroup: test.shows})
			if test.host.UnifiedCgroups && test.host.Controllers.Has(cgroup.Pids) {
				test.want.Pids = &specs.LinuxPids{Limit: new(int64(-1))}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Devices are kept, because the default specification denies all that are not allowed.
func TestLimitKeepsDevices(t *testing.T) {
	s := build(t, input())
	if len(s.Linux.Resources.Devices) == 0 || s.Linux.Resources.Devices[0].Allow {
		t.Errorf("devices: %+v", s.Linux.Resources.Devices)
	}
}

func TestPodLimits(t *testing.T) {
	for _, test := range []struct {
		name string
		pod  spec.Pod
		want cgroup.Limits
	}{
		{"nothing", spec.Pod{Containers: []spec.Container{{}}}, cgroup.Limits{Shares: 2, Pids: 7}},
		{
			"guaranteed",
			spec.Pod{Containers: []spec.Container{
				{Resources: with("cpu=1 memory=1Ki", "cpu=1 memory=1Ki")}, {Resources: with("cpu=2 memory=2Ki", "cpu=2 memory=2Ki")},
			}},
			cgroup.Limits{Shares: 3072, Quota: 300_000, Memory: 3072, Pids: 7},
		},
		{
			"one without a limit",
			spec.Pod{Containers: []spec.Container{
				{Resources: with("cpu=1", "cpu=1 memory=1Ki")}, {Resources: with("cpu=1", "memory=1Ki")},
			}},
			cgroup.Limits{Shares: 2048, Memory: 2048, Pids: 7},
		},
		{
			"of its own",
			spec.Pod{Resources: with("cpu=3", "cpu=4"), Containers: []spec.Container{{Resources: with("cpu=1", "memory=1Ki")}}},
			cgroup.Limits{Shares: 3072, Quota: 400_000, Memory: 1024, Pids: 7},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, (Host{}).PodLimits(&test.pod, 7)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPodHugePages: the pod's cgroup limits all sizes of huge pages of the host, if the host can do that.
func TestPodHugePages(t *testing.T) {
	container := func(limits string) spec.Container { return spec.Container{Resources: with(limits, limits)} }
	pod := spec.Pod{
		InitContainers: []spec.Container{container("cpu=1 hugepages-1Gi=3Gi")},
		Containers:     []spec.Container{container("cpu=1 hugepages-2Mi=2Mi"), container("cpu=1 hugepages-2Mi=4Mi hugepages-1Gi=1Gi")},
	}
	own := pod
	own.Resources = with("cpu=1 hugepages-2Mi=8Mi", "cpu=1 hugepages-2Mi=8Mi")
	controller := cgroup.Controllers{Names: []string{"cpu", "hugetlb"}}
	sizes := []string{"64KB", "2MB", "1GB"}
	for _, test := range []struct {
		name string
		host Host
		pod  spec.Pod
		want []cgroup.HugePages
	}{
		{
			"none",
			Host{Controllers: controller, HugePages: sizes},
			spec.Pod{},
			[]cgroup.HugePages{{Size: "64KB"}, {Size: "2MB"}, {Size: "1GB"}},
		},
		{
			"of the containers",
			Host{Controllers: controller, HugePages: sizes},
			pod,
			[]cgroup.HugePages{{Size: "64KB"}, {Size: "2MB", Bytes: 6 << 20}, {Size: "1GB", Bytes: 3 << 30}},
		},
		{
			"of the pod",
			Host{Controllers: controller, HugePages: sizes},
			own,
			[]cgroup.HugePages{{Size: "64KB"}, {Size: "2MB", Bytes: 8 << 20}, {Size: "1GB", Bytes: 3 << 30}},
		},
		{"no controller", Host{HugePages: sizes}, pod, nil},
	} {
		if diff := cmp.Diff(test.want, test.host.PodLimits(&test.pod, 0).HugePages); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestOOMScore tests the kubelet's formula on a host with 1000 MiB.
func TestOOMScore(t *testing.T) {
	const host = 1000 << 20
	container := func(name string, r spec.Resources) spec.Container { return spec.Container{Name: name, Resources: r} }
	sidecar := func(name string, r spec.Resources) spec.Container {
		c := container(name, r)
		c.RestartPolicy = spec.RestartAlways
		return c
	}
	asks := func(memory string) spec.Resources { return with("memory="+memory, "") }
	for _, test := range []struct {
		name string
		pod  spec.Pod
		want string
	}{
		{"best effort", spec.Pod{Containers: []spec.Container{container("a", spec.Resources{})}}, "a=1000"},
		{"guaranteed", spec.Pod{Containers: []spec.Container{container("a", with("cpu=1 memory=1Mi", "cpu=1 memory=1Mi"))}}, "a=-997"},
		{
			"burstable",
			spec.Pod{Containers: []spec.Container{container("a", asks("100Mi")), container("b", spec.Resources{})}},
			"a=900 b=999",
		},
		{
			"all of the memory, and more",
			spec.Pod{Containers: []spec.Container{container("a", asks("1000Mi")), container("b", asks("9000Mi"))}},
			"a=3 b=3",
		},
		{"a byte", spec.Pod{Containers: []spec.Container{container("a", asks("1"))}}, "a=999"},
		{"a small sidecar is as safe as the least regular container", spec.Pod{
			InitContainers: []spec.Container{sidecar("s", asks("1Mi")), container("i", asks("1Mi"))},
			Containers:     []spec.Container{container("a", asks("300Mi")), container("b", asks("200Mi"))},
		}, "s=800 i=999 a=700 b=800"},
		{"a large sidecar is safer", spec.Pod{
			InitContainers: []spec.Container{sidecar("s", asks("500Mi"))}, Containers: []spec.Container{container("a", asks("100Mi"))},
		}, "s=500 a=900"},
		{"what the pod asks for and no container does is shared", spec.Pod{
			Resources:      asks("500Mi"),
			InitContainers: []spec.Container{sidecar("s", asks("100Mi"))},
			Containers:     []spec.Container{container("a", asks("100Mi")), container("b", spec.Resources{})},
		}, "s=800 a=800 b=900"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, list := range [][]spec.Container{test.pod.InitContainers, test.pod.Containers} {
				for i := range list {
					got = append(got, list[i].Name+"="+strconv.Itoa(oomScoreOf(&test.pod, &list[i], host)))
				}
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	burstable := &spec.Pod{Containers: []spec.Container{container("a", asks("100Mi"))}}
	if got := oomScoreOf(burstable, &burstable.Containers[0], 0); got != oomScoreMost {
		t.Errorf("on a host of unknown memory: %d", got)
	}
}

func TestHugePages(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"hugepages-64kB", "hugepages-2048kB", "hugepages-1048576kB"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	got, err := hugePages(dir)
	if diff := cmp.Diff([]string{"1GB", "2MB", "64KB"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := hugePages(filepath.Join(dir, "none")); len(got) > 0 || err != nil {
		t.Errorf("kernel without huge pages: %v, %v", got, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "small"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := hugePages(dir); err == nil {
		t.Error("a directory with another name was accepted")
	}
}
