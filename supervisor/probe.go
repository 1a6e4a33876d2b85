package supervisor

import (
	"context"
	"reflect"
	"slices"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// setProbes starts and stops probes so that exactly the ordered ones run. A changed probe starts again.
func (e *effects) setProbes(ctx context.Context, orders []lifecycle.ProbeOrder, address string) {
	for _, p := range e.probes {
		p.ordered = false
	}
	for _, o := range orders {
		p, c := e.probes[o.ProbeRef], o.Definition
		if p != nil && (!reflect.DeepEqual(p.spec, o.Spec) || !slices.Equal(p.ports, c.Ports)) { // changed in place
			p.stop()
			p = nil
		}
		if p == nil {
			p = &activeProbe{stop: e.startProbe(ctx, o, c, address), spec: o.Spec, ports: c.Ports}
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
func (e *effects) startProbe(ctx context.Context, o lifecycle.ProbeOrder, c *spec.Container, address string) (stop context.CancelFunc) {
	probing, stop := context.WithCancel(ctx)
	e.running.Go(func() {
		e.shared.prober.Probe(probing, e.uid, address, c, o, func(events []lifecycle.Event) {
			e.mailbox.post(probing, probeEvents{watched{probing.Done()}, events})
		})
	})
	return stop
}
