package server

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/spec"
)

const (
	// redactorLife is how long a redactor is used before the secrets are read again: they may have changed.
	redactorLife = 2 * time.Second
	// maxRedactors is the maximum number of redactors in memory. The secrets of further pods are read for each request.
	maxRedactors = 256
)

// redactors are the redactors of pods for all requests. A redactor, which has values of secrets, is dropped after [redactorLife]. It is
// safe for concurrent use.
type redactors struct {
	read func(ctx context.Context, pod *spec.Pod) ([]string, error) // returns when the context ends

	mu   sync.Mutex
	list map[redactorKey]*podRedactor
}

// redactorKey is a pod. Readers have their own redactors, so that other requests do not wait for those that readers wait for.
type redactorKey struct {
	uid    string
	reader bool
}

type podRedactor struct {
	names    map[string]bool // of the secrets
	done     chan struct{}   // closed when the secrets were read
	redactor *plain.Redactor
}

// of returns the redactor of a pod; nil: its secrets cannot be read.
func (r *redactors) of(ctx context.Context, pod *spec.Pod, key redactorKey) *plain.Redactor {
	names := pod.SecretNames()
	if len(names) == 0 {
		return plain.NewRedactor(nil)
	}
	p := r.entry(ctx, pod, key, names)
	select {
	case <-p.done:
		return p.redactor
	case <-ctx.Done():
		return nil
	}
}

// entry returns the redactor of a pod that is in memory, or starts to read its secrets. The pod may have got a container with another
// secret.
func (r *redactors) entry(ctx context.Context, pod *spec.Pod, key redactorKey, names map[string]bool) *podRedactor {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.list[key]; p != nil && maps.Equal(p.names, names) {
		return p
	}
	p := &podRedactor{names: names, done: make(chan struct{})}
	if _, replaced := r.list[key]; replaced || len(r.list) < maxRedactors {
		r.list[key] = p
	}
	go func() { // also for requests that come later, so it does not end with this one
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), historyLimit)
		defer cancel()
		if values, err := r.read(ctx, pod); err == nil {
			p.redactor = plain.NewRedactor(values)
		}
		close(p.done)
		timer := time.NewTimer(redactorLife)
		<-timer.C
		r.drop(key, p)
	}()
	return p
}

// drop removes a redactor unless another one has replaced it.
func (r *redactors) drop(key redactorKey, p *podRedactor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.list[key] == p {
		delete(r.list, key)
	}
}
