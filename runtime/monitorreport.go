package runtime

import (
	"sync"

	"github.com/podstead/podstead/runtime/engine"
)

// monitorReports passes on changes of the monitor. It is safe for concurrent use.
type monitorReports struct {
	mu     sync.Mutex
	early  []engine.MonitorReport // before there is a receiver
	report func(engine.MonitorReport)
}

// maxEarly bounds the reports before there is a receiver: the daemon may take long to start.
const maxEarly = 16

func (m *monitorReports) add(r engine.MonitorReport) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.report != nil:
		m.report(r)
	case len(m.early) < maxEarly:
		m.early = append(m.early, r)
	}
}

// OnMonitor sets the function that receives changes of the monitor. It is called at once with those since the start.
func (r *Runtime) OnMonitor(report func(engine.MonitorReport)) {
	m := r.monitorReports
	m.mu.Lock()
	defer m.mu.Unlock()
	m.report = report
	for _, one := range m.early {
		report(one)
	}
	m.early = nil
}
