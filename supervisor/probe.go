package supervisor

import (
	"context"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// probing is a probe that is on.
type probing struct {
	stop context.CancelFunc
	turn *int // the newest one that ordered it
}

// probe switches probes on and off, so that those are on which the decision orders, and no others.
func (l *loop) probe(ctx context.Context, orders []lifecycle.ProbeOrder) {
	turn := new(int)
	for _, o := range orders {
		on := l.probes[o.ProbeRef]
		if on == nil {
			on = &probing{stop: l.ask(ctx, o)}
			l.probes[o.ProbeRef] = on
		}
		on.turn = turn
	}
	for ref, on := range l.probes {
		if on.turn != turn {
			on.stop()
			delete(l.probes, ref)
		}
	}
}

// ask begins to ask one probe. What it has to tell is told on the loop, as long as the probe is on.
func (l *loop) ask(ctx context.Context, o lifecycle.ProbeOrder) (stop context.CancelFunc) {
	asking, stop := context.WithCancel(ctx)
	c, address := l.pod.Container(o.Container), l.address()
	l.effects.Go(func() {
		l.shared.prober.Probe(asking, l.uid, address, c, o, func(told []lifecycle.Event) {
			l.post(asking, func(now lifecycle.Instant) {
				if asking.Err() != nil {
					return
				}
				for _, e := range told {
					l.fold(e, now)
				}
			})
		})
	})
	return stop
}

// address is where the pod's probes and hooks find it; "" while it has none.
func (l *loop) address() string {
	if l.pod.HostNetwork {
		return "127.0.0.1"
	}
	for _, ip := range l.facts.Sandbox.IPs {
		return ip
	}
	return ""
}
