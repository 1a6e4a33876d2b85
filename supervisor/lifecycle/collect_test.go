package lifecycle_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

var (
	collectionRequested happened = func(t lifecycle.Instant) lifecycle.Event { return lifecycle.CollectionRequested{At: t} }
	podCollected        happened = func(t lifecycle.Instant) lifecycle.Event { return lifecycle.PodCollected{At: t} }
)

func TestDecideCollection(t *testing.T) {
	pod := podOf(never, "app")
	collect := lifecycle.CollectPod{}
	succeeded := history{up(), ran("app", 1, 0), sandboxRemoved(1), tick(100), collectionRequested}
	decisions{
		{name: "finished pod is collected", pod: pod, past: succeeded, now: 100, want: do{collect}},
		{name: "collection in progress is not repeated", pod: pod, past: history{succeeded, collect}, now: 100},
		{name: "a failure backs off", pod: pod, past: history{succeeded, failing(collect, oops)}, now: 101, wake: 110},
		{name: "failed collection is retried", pod: pod, past: history{succeeded, failing(collect, oops)}, now: 110, want: do{collect}},
		{name: "collected pod needs nothing", pod: pod, past: history{succeeded, collect, podCollected}, now: 110},
		{name: "collected pod is started by a user", pod: pod, past: history{succeeded, collect, podCollected, restartRequested}, now: 110, want: do{lifecycle.StartAgain{Round: 2}}},
		{name: "in a new sandbox", pod: pod, past: history{succeeded, collect, podCollected, restartRequested, lifecycle.StartAgain{Round: 2}}, now: 110, want: do{startSandbox2}},
		{name: "after the collection", pod: pod, past: history{succeeded, collect, restartRequested, lifecycle.StartAgain{Round: 2}}, now: 110},
		{name: "collected pod is deleted", pod: pod, past: history{succeeded, collect, podCollected, deleted(time.Second)}, now: 110, want: do{lifecycle.RemovePod{}}},
		{
			name: "pod that a user stopped before it started again keeps its volumes", pod: pod,
			past: history{succeeded, failing(collect, oops), restartRequested, stopped(time.Second)}, now: 200,
		},
	}.check(t)
	if !fold(history{succeeded, collect, podCollected}).Collected() || fold(history{succeeded, collect}).Collected() {
		t.Error("the pod is collected when the collection is complete, and not before")
	}
	f := fold(history{succeeded, collect, podCollected, restartRequested, lifecycle.StartAgain{Round: 2}, startSandbox2})
	if f.Collected() || !f.Collection.Requested.IsZero() {
		t.Errorf("collection of a pod that was started again: %+v", f.Collection)
	}
}

func TestFinished(t *testing.T) {
	pod := podOf(never, "app")
	finished := history{up(), ran("app", 1, 0), tick(50), sandboxRemoved(1)}
	lastly := at(50).Mono
	for name, tt := range map[string]struct {
		past history
		want bool
	}{
		"finished":               {finished, true},
		"its sandbox exists":     {history{up(), ran("app", 1, 0)}, false},
		"running":                {history{up(), running("app", 1)}, false},
		"stopped by a user":      {history{up(), running("app", 1), stopped(time.Second), exited("app", 1, 0), sandboxRemoved(1)}, false},
		"is deleted":             {history{finished, deleted(time.Second)}, false},
		"is started again":       {history{finished, restartRequested}, false},
		"exceeded its deadline":  {history{up(), running("app", 1), failPod(time.Second), exited("app", 1, 0), tick(50), sandboxRemoved(1)}, true},
		"lost its sandbox":       {history{up(), tick(20), sandboxLost(1), sandboxRemoved(1)}, false},
		"lost its sandbox first": {history{up(), running("app", 1), tick(20), sandboxLost(1), tick(30), sandboxRemoved(1), tick(50), exited("app", 1, 137)}, true},
		"finished before a boot": {history{finished, tick(60), happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.Booted{Saved: t, At: t} })}, true},
	} {
		at := lifecycle.Finished(pod, fold(tt.past))
		if at.IsZero() == tt.want || tt.want && at.Mono != lastly {
			t.Errorf("%s: finished at %v", name, at)
		}
	}
}
