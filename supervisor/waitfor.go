package supervisor

import (
	"cmp"
	"context"
	"slices"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// setWatches starts and stops the probes and the watches of conditions and devices so that exactly those of a decision run. The address is
// that of the pod, for probes; since is when the pod started to wait.
func (e *effects) setWatches(ctx context.Context, d *lifecycle.Decision, address string, since lifecycle.Instant) {
	e.setProbes(ctx, d.Probes, address)
	e.setWaits(ctx, d.Waits, since)
	e.setDevices(ctx, d.Devices)
}

// forgetWatches forgets the probes and the watches of conditions and devices. Their context is done.
func (e *effects) forgetWatches() {
	clear(e.probes)
	clear(e.waits)
	clear(e.devices)
}

// setWaits starts and stops watches so that exactly the ordered conditions are watched.
func (e *effects) setWaits(ctx context.Context, orders []lifecycle.WaitRef, since lifecycle.Instant) {
	for ref, stop := range e.waits {
		if !slices.Contains(orders, ref) {
			stop()
			delete(e.waits, ref)
		}
	}
	for _, ref := range orders {
		if e.waits[ref] == nil {
			e.waits[ref] = e.startWait(ctx, ref, since)
		}
	}
}

// startWait watches a condition. It sends a [waitReport] whenever the reason why it is not met changes, and one when it is met.
func (e *effects) startWait(ctx context.Context, ref lifecycle.WaitRef, since lifecycle.Instant) (stop context.CancelFunc) {
	watching, stop := context.WithCancel(ctx)
	condition := spec.ParseWaitCondition(ref.Condition)
	e.watch(watching, "wait for "+ref.Condition, func(ctx context.Context) (message, error) {
		last := ""
		err := e.shared.waitFor(ctx, e.pod.Load().Name, condition, since, func(unmet string) {
			if unmet != last {
				last = unmet
				e.mailbox.post(ctx, waitReport{watched{watching.Done()}, ref, unmet})
			}
		})
		return waitReport{watched: watched{watching.Done()}, ref: ref}, err
	})
	return stop
}

// waitFor returns nil when a condition is met, for a pod that has waited since an instant. It calls report with why it is not met.
func (s *shared) waitFor(
	ctx context.Context, pod string, c spec.WaitCondition, since lifecycle.Instant, report func(unmet string),
) error {
	switch c.Kind {
	case spec.WaitPod:
		return waitForPod(ctx, s.peers, s.ring, c, since, report)
	case spec.WaitJob:
		return waitForTurn(ctx, s.peers, pod, c, report)
	}
	return s.conditions.WaitFor(ctx, c, report)
}

// waitForPod waits for another pod. A pod that succeeded during the wait, which a restart of the daemon does not end, counts even if it was
// deleted at once.
func waitForPod(
	ctx context.Context, pods peers, ring *event.Ring, c spec.WaitCondition, since lifecycle.Instant, report func(unmet string),
) error {
	events := peerEvents{ring: ring, pod: c.Object, since: since}
	for {
		s, changed := pods.peer(c.Object)
		unmet := unmetBy(s, c.State)
		if unmet == "" {
			return nil
		}
		events.read()
		if c.State == spec.WaitSucceeded && events.succeeded {
			return nil
		}
		if s == nil {
			unmet = cmp.Or(events.refused, unmet)
		}
		report(unmet)
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// peerEvents are what the events of a pod say that its snapshot does not.
type peerEvents struct {
	ring  *event.Ring
	pod   string
	since lifecycle.Instant

	seen      uint64 // the newest event that was read
	succeeded bool   // after since, an instant of this boot
	refused   string // why the pod does not exist although it was to be created, if that is known
}

// read reads the events that are new.
func (p *peerEvents) read() {
	events, _ := p.ring.Since(p.seen)
	for i := range events {
		e := &events[i]
		p.seen = e.Seq
		if e.Pod != p.pod {
			continue
		}
		switch e.Kind { //nolint:exhaustive // the others do not matter
		case api.EventPodSucceeded:
			p.succeeded = p.succeeded || isAfter(e, p.since)
		case api.EventPodRejected, api.EventFileRejected:
			p.refused = "rejected: " + e.Fields["error"]
		case api.EventFileInvalid:
			p.refused = "its file is invalid"
		case api.EventPodAccepted, api.EventFileAccepted, api.EventPodRemoved:
			p.refused = ""
		}
	}
}

// isAfter reports whether an event is later than an instant of this boot. Events of earlier versions have only the time of the wall clock.
func isAfter(e *event.Event, t lifecycle.Instant) bool {
	if e.Boot == "" {
		return e.Time.After(t.Wall)
	}
	return e.Boot == t.Boot && e.Mono > t.Mono
}

// unmetBy returns why a pod is not in a state of [spec.WaitCondition]; empty if it is.
func unmetBy(s *Snapshot, state string) string {
	if s == nil {
		return "not found"
	}
	switch {
	case state == spec.WaitSucceeded && s.Status.Phase == lifecycle.PhaseSucceeded:
		return ""
	case state == spec.WaitSucceeded && s.Status.Phase == lifecycle.PhaseFailed:
		return "failed"
	case state == spec.WaitSucceeded:
		return "not succeeded"
	case s.condition(lifecycle.PodReady).Status != "True":
		return "not ready"
	}
	return ""
}

// event returns the lifecycle event of a report.
func (m waitReport) event(now lifecycle.Instant) lifecycle.Event {
	if m.unmet == "" {
		return lifecycle.ConditionMet{WaitRef: m.ref, At: now}
	}
	return lifecycle.ConditionUnmet{WaitRef: m.ref, Message: m.unmet}
}
