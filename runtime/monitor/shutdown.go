package monitor

import (
	"time"
)

const (
	// shutdownTimeout bounds the wait for work in progress before the monitor stops. It is shorter than the daemon waits.
	shutdownTimeout = 3 * time.Second
	// shutdownCheck is the interval at which it is looked for work in progress.
	shutdownCheck = 20 * time.Millisecond
)

// shutdownWhenIdle stops a monitor without containers when nothing is in progress: a probe of a container that was deleted meanwhile ends
// a moment later, and a container of the monitor before may still have to be removed.
func (m *Monitor) shutdownWhenIdle(c *connection, q request, end time.Time) {
	settled := 0
	for _, o := range m.containers {
		if o.settled {
			settled++
		}
	}
	switch busy := len(m.containers) > 0 || m.flights.any(); {
	case settled > 0:
		c.answer(q.ID, nil, errorf(ClassPrecondition, "%d containers exist", settled))
	case !busy:
		c.answer(q.ID, struct{}{}, nil)
		m.stop()
	case time.Now().Before(end):
		m.loop.after(shutdownCheck, func() { m.shutdownWhenIdle(c, q, end) })
	default:
		c.answer(q.ID, nil, errorf(ClassPrecondition, "work is in progress"))
	}
}
