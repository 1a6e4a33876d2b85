package supervisor

import (
	"context"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// setProbes starts and stops probes so that exactly the ordered ones run.
func (e *effects) setProbes(ctx context.Context, orders []lifecycle.ProbeOrder, address string) {
	for _, p := range e.probes {
		p.ordered = false
	}
	for _, o := range orders {
		p := e.probes[o.ProbeRef]
		if p == nil {
			p = &activeProbe{stop: e.startProbe(ctx, o, address)}
			e.probes[o.ProbeRef] = p
		}
		p.ordered = true
	}
	for ref, p := range e.probes {
		if !p.ordered {
			p.stop()
			delete(e.probes, ref)
		}
	}
}

// startProbe starts one probe. It sends [probeEvents] until the probe is stopped.
func (e *effects) startProbe(ctx context.Context, o lifecycle.ProbeOrder, address string) (stop context.CancelFunc) {
	probing, stop := context.WithCancel(ctx)
	c := e.pod.Load().Container(o.Container)
	e.running.Go(func() {
		e.shared.prober.Probe(probing, e.uid, address, c, o, func(events []lifecycle.Event) {
			e.mailbox.post(probing, probeEvents{watched{probing.Done()}, events})
		})
	})
	return stop
}
