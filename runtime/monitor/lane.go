package monitor

// lane orders the work for one container: what changes whether it exists or runs is done in the order in which it was requested, and what
// was requested after that waits for it. The loop owns it.
type lane struct {
	busy  bool
	queue []work
}

// work is started by run. Exclusive work calls done when it is over, other work does not.
type work struct {
	exclusive bool
	run       func(done func())
}

// enter queues work for a container.
func (m *Monitor) enter(id string, w work) {
	l := m.lanes[id]
	if l == nil {
		l = &lane{}
		m.lanes[id] = l
	}
	l.queue = append(l.queue, w)
	m.advance(id, l)
}

// advance starts what can be started.
func (m *Monitor) advance(id string, l *lane) {
	for !l.busy && len(l.queue) > 0 {
		w := l.queue[0]
		l.queue = l.queue[1:]
		l.busy = w.exclusive
		w.run(func() {
			l.busy = false
			m.advance(id, l)
		})
	}
	if !l.busy && len(l.queue) == 0 && m.lanes[id] == l {
		delete(m.lanes, id)
	}
}
