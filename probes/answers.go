package probes

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Answer is the newest result of a probe that runs.
type Answer struct {
	Container string
	Kind      lifecycle.ProbeKind
	Outcome   lifecycle.ProbeOutcome
	At        lifecycle.Instant
	Took      time.Duration
}

// answers holds the newest answer of each worker, by the UID of the pod. It has none of workers that have returned.
type answers struct {
	mu    sync.Mutex
	byPod map[string]map[*worker]Answer
}

// worker identifies a call of [Prober.Probe].
type worker struct{ uid string }

func (a *answers) set(w *worker, answer Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byPod[w.uid] == nil {
		a.byPod[w.uid] = map[*worker]Answer{}
	}
	a.byPod[w.uid][w] = answer
}

func (a *answers) remove(w *worker) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byPod[w.uid], w)
	if len(a.byPod[w.uid]) == 0 {
		delete(a.byPod, w.uid)
	}
}

// Answers returns the newest answers of the probes of a pod that run and have answered, by container. It does not block.
func (p *Prober) Answers(uid string) []Answer {
	p.answers.mu.Lock()
	defer p.answers.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.answers.byPod[uid]), func(a, b Answer) int {
		return cmp.Or(cmp.Compare(a.Container, b.Container), cmp.Compare(a.Kind, b.Kind))
	})
}
