package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// limitedPod returns a pod of the containers app and other, of which app has a CPU limit.
func limitedPod(cpu string) *spec.Pod {
	pod := podOf(always, "app", "other")
	pod.Containers[0].Resources = limitedTo(cpu)
	return pod
}

func limitedTo(cpu string) spec.Resources {
	return spec.Resources{Limits: spec.ResourceList{spec.ResourceCPU: resource.MustParse(cpu)}}
}

// resizeTo changes the definition to another CPU limit, which restarts containers.
func resizeTo(from, to string, restarted ...string) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.DefinitionChanged{From: limitedPod(from), To: limitedPod(to), Restarted: restarted, At: t}
	}
}

var resizeRequested = resizeTo("1", "2")

func resizePod(n int) lifecycle.Action { return lifecycle.ResizePod{N: n, Sandbox: 1} }

func resizedPod(n int) happened {
	return func(t lifecycle.Instant) lifecycle.Event { return lifecycle.PodResized{N: n, At: t} }
}

// TestDecideResize checks when a pod is resized: when no container of an earlier definition runs and none is being started, once at a time,
// and again after a failure.
func TestDecideResize(t *testing.T) {
	both := history{up(), running("app", 1), running("other", 1)}
	failed := failing(resizePod(1), oops)
	decisions{
		{name: "all containers run", pod: limitedPod("2"), past: history{both, resizeRequested}, now: 1, want: do{resizePod(1)}},
		{name: "it is being resized", pod: limitedPod("2"), past: history{both, resizeRequested, resizePod(1)}, now: 1},
		{
			name: "it is resized again when the earlier resize has an outcome", pod: limitedPod("3"),
			past: history{both, resizeRequested, resizePod(1), resizeTo("2", "3")}, now: 1,
		},
		{
			name: "the earlier resize has an outcome", pod: limitedPod("3"),
			past: history{both, resizeRequested, resizePod(1), resizeTo("2", "3"), resizedPod(1)}, now: 1, want: do{resizePod(2)},
		},
		{
			name: "the earlier resize has failed", pod: limitedPod("3"),
			past: history{both, resizeRequested, resizePod(1), resizeTo("2", "3"), failed}, now: 1, want: do{resizePod(2)},
		},
		{name: "it was resized", pod: limitedPod("2"), past: history{both, resizeRequested, resizePod(1), resizedPod(1)}, now: 1},
		{
			name: "a container is being started", pod: limitedPod("2"),
			past: history{up(), running("app", 1), issued("other", 1), resizeRequested}, now: 1,
		},
		{
			name: "the delay after a failure has not passed", pod: limitedPod("2"),
			past: history{both, resizeRequested, failed}, now: 10.9, wake: 11,
		},
		{
			name: "a failure is repeated after a delay", pod: limitedPod("2"),
			past: history{both, resizeRequested, failed}, now: 11, want: do{resizePod(1)},
		},
		{
			name: "a container restarts for it", pod: limitedPod("2"), past: history{both, resizeTo("1", "2", "app")}, now: 1,
			want: do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonDefinitionChanged}},
		},
		{
			name: "the container has stopped for it", pod: limitedPod("2"),
			past: history{both, resizeTo("1", "2", "app"), stop("app", 1, 30*time.Second), exited("app", 1, 143), pulled("app", 2)}, now: 1,
			want: do{resizePod(1), start("app", 2, 1, 0)},
		},
	}.check(t)
}

// TestStatusOfResize checks what the status has while a resize is pending.
func TestStatusOfResize(t *testing.T) {
	both := history{up(), running("app", 1), running("other", 1)}
	pending := lifecycle.Condition{Type: lifecycle.PodResizeInProgress, Status: "True"}
	refused := pending
	refused.Reason, refused.Message = lifecycle.ReasonError, oops.Message
	for name, test := range map[string]struct {
		past history
		want *lifecycle.Condition
		cpu  string // the limit of app
	}{
		"unchanged":  {both, nil, "2"},
		"requested":  {history{both, resizeRequested}, &pending, "1"},
		"in process": {history{both, resizeRequested, resizePod(1)}, &pending, "1"},
		"failed":     {history{both, resizeRequested, failing(resizePod(1), oops)}, &refused, "1"},
		"repeated":   {history{both, resizeRequested, failing(resizePod(1), oops), resizePod(1)}, &refused, "1"},
		"completed":  {history{both, resizeRequested, resizePod(1), resizedPod(1)}, nil, "2"},
		"the first of two was completed": {
			history{both, resizeTo("1", "3"), resizePod(1), resizeTo("3", "2"), resizedPod(1)}, &pending, "1",
		},
		"the container has started again": {
			history{both, resizeRequested, failing(resizePod(1), oops), exited("app", 1, 1), issued("app", 2), started("app", 2)},
			&refused, "2",
		},
		"other fields have changed": {history{both, resizeTo("2", "2")}, nil, "2"},
		"the pod is stopped":        {history{both, resizeRequested, stopped(time.Minute)}, nil, "1"},
		"the sandbox is lost":       {history{both, resizeRequested, sandboxLost(1)}, nil, "1"},
		"the pod has no sandbox":    {history{resizeRequested}, nil, "2"},
		"another sandbox was started": {
			history{both, resizeRequested, exited("app", 1, 1), exited("other", 1, 1), sandboxRemoved(1), startSandbox(2)},
			nil, "2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := lifecycle.StatusOf(limitedPod("2"), fold(test.past), at(20))
			var found *lifecycle.Condition
			for _, c := range status.Conditions {
				if c.Type == lifecycle.PodResizeInProgress {
					found = &c
				}
			}
			if diff := cmp.Diff(test.want, found); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			limit := status.ContainerStatuses[0].Resources.Limits[spec.ResourceCPU]
			if limit.String() != test.cpu {
				t.Errorf("the limit is %s, want %s", limit.String(), test.cpu)
			}
		})
	}
}

// TestResizesFailed: other limits start a pod again that has failed, if they are those of a container that has.
func TestResizesFailed(t *testing.T) {
	change := lifecycle.DefinitionChanged{From: limitedPod("1"), To: limitedPod("2")}
	same := lifecycle.DefinitionChanged{From: limitedPod("1"), To: limitedPod("1")}
	for _, test := range []struct {
		name   string
		past   history
		change lifecycle.DefinitionChanged
		want   bool
	}{
		{"it has failed", history{up(), ran("app", 1, 137)}, change, true},
		{"it has failed, and its limits are the same", history{up(), ran("app", 1, 137)}, same, false},
		{"it has succeeded", history{up(), ran("app", 1, 0)}, change, false},
		{"it runs", history{up(), running("app", 1)}, change, false},
		{"another one has failed", history{up(), running("app", 1), ran("other", 1, 1)}, change, false},
		{"it has not been started", history{}, change, false},
	} {
		f := fold(test.past)
		if got := test.change.ResizesFailed(f); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
