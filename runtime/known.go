package runtime

import (
	"maps"
	"sync"

	"github.com/podstead/podstead/spec"
)

// knownPods are the pods whose sandbox is there, by UID: those that have to be kept up to date while they run. The zero value
// is ready for use.
type knownPods struct {
	mu      sync.Mutex
	pods    map[string]knownPod
	changed chan struct{} // holds one word that there was a change
}

// knownPod is a pod and its newest sandbox.
type knownPod struct {
	pod     *spec.Pod
	sandbox int
}

func newKnownPods() *knownPods {
	return &knownPods{pods: map[string]knownPod{}, changed: make(chan struct{}, 1)}
}

func (k *knownPods) put(uid string, pod *spec.Pod, sandbox int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pods[uid].sandbox > sandbox {
		return
	}
	k.pods[uid] = knownPod{pod, sandbox}
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// drop forgets a pod, unless it has a newer sandbox.
func (k *knownPods) drop(uid string, sandbox int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pods[uid].sandbox <= sandbox {
		delete(k.pods, uid)
	}
}

func (k *knownPods) all() map[string]knownPod {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.pods)
}
