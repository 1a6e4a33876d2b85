package simulate

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// isEvent reports whether an event has a reason or a kind.
func isEvent(name string) bool {
	return slices.ContainsFunc(api.EventEntries(), func(e api.EventEntry) bool { return e.Reason == name || string(e.Kind) == name })
}

// assert checks what the scenario asserts.
func (r *runner) assert() {
	for i := range r.scenario.Assert {
		a := &r.scenario.Assert[i]
		if field, why := r.fails(a); why != "" {
			r.result.Failures = append(r.result.Failures, Failure{i, why, r.scenario.problem(field, why, "")})
		}
	}
}

// fails returns why an assertion does not hold, and a pointer to its field; empty: it holds.
func (r *runner) fails(a *Assertion) (field any, why string) {
	p, from, to := r.results[r.podOf[a]], a.From.Duration(), r.result.For
	if a.To != "" {
		to = min(to, a.To.Duration())
	}
	switch {
	case p == nil:
		return &a.Pod, "the pod of the update does not exist" // the simulation ends before the update
	case a.ReadyWithin != "":
		return &a.ReadyWithin, p.notReadyWithin(from, a.ReadyWithin.Duration(), r.result.For)
	case a.MaxRestarts != nil:
		return a.MaxRestarts, p.tooManyRestarts(a, from, to)
	case a.MaxUnready != "":
		return &a.MaxUnready, p.unreadyFor(a.MaxUnready.Duration(), from, to)
	case a.Phase != "":
		return &a.Phase, p.notInPhase(a, r.result.For)
	}
	return &a.Event, r.wrongEvents(p.Name, a, from, to)
}

func (p *PodResult) notReadyWithin(from, within, end time.Duration) string {
	due := from + within
	if due > end {
		return fmt.Sprintf("pod %q: ready within %s of %s: the simulation ends at %s", p.Name, offset(within), offset(from), offset(end))
	}
	for _, s := range p.Ready {
		became := s.From >= from && s.From <= due
		if became || s.From <= due && s.To > due {
			return ""
		}
		if s.From > due {
			return fmt.Sprintf("pod %q is ready after %s, not within %s", p.Name, offset(s.From-from), offset(within))
		}
	}
	return fmt.Sprintf("pod %q is not ready within %s, nor later", p.Name, offset(within))
}

func (p *PodResult) tooManyRestarts(a *Assertion, from, to time.Duration) string {
	for _, container := range slices.Sorted(maps.Keys(p.Restarts)) {
		if a.Container != "" && a.Container != container {
			continue
		}
		in := to - from
		if a.In != "" {
			in = a.In.Duration()
		}
		times := slices.DeleteFunc(slices.Clone(p.Restarts[container]), func(t time.Duration) bool { return t < from || t > to })
		most, begin := 0, 0
		for i, t := range times {
			for times[begin] < t-in {
				begin++
			}
			most = max(most, i-begin+1)
		}
		if most > int(*a.MaxRestarts) {
			return fmt.Sprintf("container %q of pod %q restarts %d times in %s", container, p.Name, most, offset(in))
		}
	}
	return ""
}

func (p *PodResult) unreadyFor(limit, from, to time.Duration) string {
	for i, s := range p.Ready {
		until := to
		if i+1 < len(p.Ready) {
			until = min(p.Ready[i+1].From, to)
		}
		if begin := max(s.To, from); until-begin > limit {
			return fmt.Sprintf("pod %q is not ready for %s, from %s", p.Name, offset(until-begin), offset(begin))
		}
	}
	if len(p.Ready) == 0 {
		return fmt.Sprintf("pod %q does not become ready", p.Name)
	}
	return ""
}

func (p *PodResult) notInPhase(a *Assertion, at time.Duration) string {
	if a.At != "" {
		at = min(at, a.At.Duration())
	}
	phase := lifecycle.PhasePending
	for _, c := range p.phases {
		if c.at <= at {
			phase = c.phase
		}
	}
	if string(phase) == a.Phase {
		return ""
	}
	return fmt.Sprintf("pod %q is %s at %s", p.Name, phase, offset(at))
}

func (r *runner) wrongEvents(pod string, a *Assertion, from, to time.Duration) string {
	for i := range r.result.Timeline {
		e := &r.result.Timeline[i]
		matches := e.Pod == pod && (a.Container == "" || e.Container == a.Container) && (e.Reason == a.Event || string(e.Kind) == a.Event)
		if !matches || e.At < from || e.At > to {
			continue
		}
		if a.Never {
			return fmt.Sprintf("event %s at %s: %s", a.Event, offset(e.At), e.Message)
		}
		return ""
	}
	if a.Never {
		return ""
	}
	return fmt.Sprintf("pod %q has no event %s", pod, a.Event)
}
