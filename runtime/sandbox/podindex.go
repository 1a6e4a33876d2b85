package sandbox

import (
	"maps"
	"sync"

	"github.com/podstead/podstead/spec"
)

// Index holds pods by UID. It is safe for concurrent use.
type Index struct {
	mu      sync.Mutex
	pods    map[string]IndexedPod
	changed chan struct{}
}

// IndexedPod is a pod and its newest sandbox.
type IndexedPod struct {
	Pod     *spec.Pod
	Sandbox int
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{pods: map[string]IndexedPod{}, changed: make(chan struct{}, 1)}
}

// Changed receives a value after one or more changes by [Index.Put] and [Index.Update]. It is for a single reader.
func (x *Index) Changed() <-chan struct{} { return x.changed }

// Put adds a pod, or replaces the one with an older sandbox.
func (x *Index) Put(uid string, pod *spec.Pod, sandbox int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pods[uid].Sandbox > sandbox {
		return
	}
	x.set(uid, IndexedPod{pod, sandbox})
}

// set adds or replaces a pod. The caller holds the lock.
func (x *Index) set(uid string, p IndexedPod) {
	x.pods[uid] = p
	select {
	case x.changed <- struct{}{}:
	default:
	}
}

// Update replaces the definition of a pod that is in the index.
func (x *Index) Update(uid string, pod *spec.Pod) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p, exists := x.pods[uid]; exists && p.Pod != pod {
		x.set(uid, IndexedPod{pod, p.Sandbox})
	}
}

// replace is [Index.Update] without a value for [Index.Changed].
func (x *Index) replace(uid string, pod *spec.Pod) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p, exists := x.pods[uid]; exists {
		x.pods[uid] = IndexedPod{pod, p.Sandbox}
	}
}

// Get returns a pod.
func (x *Index) Get(uid string) (p IndexedPod, exists bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p, exists = x.pods[uid]
	return p, exists
}

// Remove removes a pod, unless it has a newer sandbox.
func (x *Index) Remove(uid string, sandbox int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pods[uid].Sandbox <= sandbox {
		delete(x.pods, uid)
	}
}

// All returns a copy of the index.
func (x *Index) All() map[string]IndexedPod {
	x.mu.Lock()
	defer x.mu.Unlock()
	return maps.Clone(x.pods)
}
