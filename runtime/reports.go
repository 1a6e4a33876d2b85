package runtime

import (
	"sync"

	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/runtime/engine"
)

// receiver passes on reports to a function that is set later. It is safe for concurrent use.
type receiver[T any] struct {
	maxEarly int // bounds the reports before there is a function; 0: no bound

	mu     sync.Mutex
	early  []T
	report func(T)
}

func (r *receiver[T]) add(one T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.report != nil:
		r.report(one)
	case r.maxEarly == 0 || len(r.early) < r.maxEarly:
		r.early = append(r.early, one)
	}
}

// set sets the function. It is called at once with what was added before.
func (r *receiver[T]) set(report func(T)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report = report
	for _, one := range r.early {
		report(one)
	}
	r.early = nil
}

// clearing is what was killed and removed in the cgroup of a pod.
type clearing struct {
	uid string
	podcgroup.Cleared
}

func (r *Runtime) addCleared(uid string, cleared podcgroup.Cleared) {
	if cleared.Any() {
		r.cleared.add(clearing{uid, cleared})
	}
}

// OnCleared sets the function that receives what was killed and removed in the cgroup of a pod because it belonged to none of the pod's
// containers. The function is called at once with what was found at the start.
func (r *Runtime) OnCleared(report func(uid string, cleared podcgroup.Cleared)) {
	r.cleared.set(func(c clearing) { report(c.uid, c.Cleared) })
}

// maxEarlyMonitorReports bounds the reports before there is a receiver: the daemon may take long to start.
const maxEarlyMonitorReports = 16

// OnMonitor sets the function that receives changes of the monitor. It is called at once with those since the start.
func (r *Runtime) OnMonitor(report func(engine.MonitorReport)) { r.monitorReports.set(report) }
