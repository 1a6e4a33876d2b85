//go:build soak

package supervisor_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
)

// TestDay runs 20 pods with probes for 24 hours of virtual time. A container of each pod exits repeatedly, and the readiness of another
// one changes every hour. The daemon restarts every six hours. From the fourth hour on, when the ring of events is full, memory,
// goroutines and state must not grow.
func TestDay(t *testing.T) {
	const pods, hours = 20, 24
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers(map[string]string{"live": "true", "ready": "true"})
		m := newMachine(t, fakeruntime.Options{Exec: a.program})
		m.start()
		for i := range pods {
			p := pod(fmt.Sprintf("p%d", i), spec.RestartAlways, "sleep 1000000", "sleep 30; exit 1")
			p.Containers[0].LivenessProbe, p.Containers[0].ReadinessProbe = execProbe("live"), execProbe("ready")
			m.add(p)
		}
		var full usage
		for hour := 1; hour <= hours; hour++ {
			time.Sleep(30 * time.Minute)
			a.set("ready", "exit 1")
			time.Sleep(time.Minute)
			a.set("ready", "true")
			time.Sleep(29 * time.Minute)
			if hour%6 == 0 {
				m.leave()
				m.start()
				time.Sleep(time.Minute)
			}
			synctest.Wait()
			now := m.usage()
			t.Logf("hour %d: %+v, %d probes", hour, now, a.count("live")+a.count("ready"))
			if hour == 4 {
				full = now
			}
			if hour > 4 && !now.within(full) {
				t.Errorf("hour %d: %+v, in hour 4: %+v", hour, now, full)
			}
		}
		restarts := 0
		for i := range pods {
			s, _ := m.Pod(fmt.Sprintf("p%d", i))
			if c := s.Status.ContainerStatuses; c[0].RestartCount != 0 || !c[0].Ready {
				t.Errorf("container c0: %+v", c[0])
			}
			restarts += s.Status.ContainerStatuses[1].RestartCount
			m.delete(fmt.Sprintf("p%d", i))
		}
		if probes := a.count("live"); probes < pods*hours*350 || restarts < pods*hours*10 {
			t.Errorf("%d liveness probes, %d restarts", probes, restarts)
		}
	})
}

// usage is what the supervisor needs at one moment.
type usage struct {
	heap       int // bytes after a garbage collection
	goroutines int
	state      int // bytes of the state files
	events     int
}

func (m *machine) usage() usage {
	m.t.Helper()
	m.engine.ForgetCalls()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	m.disk.mu.Lock()
	text, err := json.Marshal(m.disk.files)
	m.disk.mu.Unlock()
	if err != nil {
		m.t.Fatal(err)
	}
	events, _ := m.Events().Since(0)
	return usage{int(memory.HeapAlloc), runtime.NumGoroutine(), len(text), len(events)}
}

// within reports whether the usage is at most a quarter above an earlier one.
func (u usage) within(earlier usage) bool {
	more := func(now, before int) bool { return now > before+before/4 }
	return !more(u.heap, earlier.heap) && !more(u.goroutines, earlier.goroutines) && !more(u.state, earlier.state)
}
