package stats

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
)

func TestPause(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: 10 * time.Second, 2 * time.Second: 10 * time.Second, measureDiskTimeout: 8 * time.Minute,
	} {
		if got := pauseAfter(10*time.Second, took); got != want {
			t.Errorf("after a measurement of %v: %v, want %v", took, got, want)
		}
	}
}

// The limits are checked in the kubelet's order.
func TestExceeded(t *testing.T) {
	disk := func(limit string) spec.Resources {
		return spec.Resources{Limits: spec.ResourceList{spec.ResourceEphemeralStorage: resource.MustParse(limit)}}
	}
	pod := &spec.Pod{
		InitContainers: []spec.Container{{Name: "init", Resources: disk("1k")}},
		Containers:     []spec.Container{{Name: "a", Resources: disk("2k")}, {Name: "b"}},
	}
	for _, test := range []struct {
		volumes    int64
		containers map[string]int64
		want       string
	}{
		{0, nil, ""},
		{500, map[string]int64{"a": 1500}, ""},
		{501, map[string]int64{"a": 1500}, "Pod ephemeral local storage usage exceeds the total limit of containers 2k. "},
		{0, map[string]int64{"b": 2001}, "Pod ephemeral local storage usage exceeds the total limit of containers 2k. "},
		{0, map[string]int64{"init": 1001}, `Container init exceeded its local ephemeral storage limit "1k". `},
		{0, map[string]int64{"a": 2000, "init": 0}, ""},
	} {
		volumes := []volume.Usage{{Bytes: test.volumes}, {Bytes: 1 << 30, HugePages: true}} // these are not on disk
		if got := exceededLimit(pod, volumes, test.containers); got != test.want {
			t.Errorf("volumes %d, containers %v: %q, want %q", test.volumes, test.containers, got, test.want)
		}
	}
	limited := func(medium string) []spec.Volume {
		return []spec.Volume{{Name: "v", EmptyDir: &spec.EmptyDirVolume{Medium: medium, SizeLimit: new(resource.MustParse("1k"))}}}
	}
	for _, test := range []struct {
		pod  spec.Pod
		want bool
	}{
		{*pod, true},
		{spec.Pod{Containers: []spec.Container{{Name: "b"}}}, false},
		{spec.Pod{Volumes: limited("")}, true},
		{spec.Pod{Volumes: limited("Memory")}, false}, // the tmpfs has a size
		{spec.Pod{Volumes: limited("HugePages-2Mi")}, true},
	} {
		if got := hasLimit(&test.pod); got != test.want {
			t.Errorf("%+v: has limit %v, want %v", test.pod, got, test.want)
		}
	}
}
