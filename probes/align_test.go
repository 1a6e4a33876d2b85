package probes

import (
	"context"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestProbesShareWakeUps expects that probes with connections run at the same instants after their first run, whenever they start, and that
// each keeps its period. Commands keep their own schedule: together they would use all processors.
func TestProbesShareWakeUps(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name    string
		period  spec.Seconds
		exec    bool
		starts  time.Duration
		instant []time.Duration // since the start of the test
	}{
		{"at an instant of all", 1, false, 0, []time.Duration{0, 1000 * ms, 2000 * ms, 3000 * ms}},
		{"just before one", 1, false, 190 * ms, []time.Duration{190 * ms, 1200 * ms, 2200 * ms, 3200 * ms}},
		{"just after one", 1, false, 210 * ms, []time.Duration{210 * ms, 1400 * ms, 2400 * ms, 3400 * ms}},
		{"longer period", 2, false, 210 * ms, []time.Duration{210 * ms, 2400 * ms, 4400 * ms, 6400 * ms}},
		{"at most a second late", 60, false, 210 * ms, []time.Duration{210 * ms, 61 * time.Second, 121 * time.Second, 181 * time.Second}},
		{"command", 1, true, 210 * ms, []time.Duration{210 * ms, 1210 * ms, 2210 * ms, 3210 * ms}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{codes: []int{0}, start: time.Now()}
				var dialed []time.Duration
				p := New(s, instant, Options{Dial: func(context.Context, string, string) (net.Conn, error) {
					dialed = append(dialed, time.Since(s.start))
					return nil, io.EOF
				}})
				time.Sleep(test.starts)
				o := order(lifecycle.ProbeReadiness, spec.Probe{})
				o.Spec.PeriodSeconds = test.period
				if !test.exec {
					o.Spec.Exec, o.Spec.TCPSocket = nil, &spec.TCPSocketAction{Port: spec.Port{Number: 80}}
				}
				ctx, cancel := context.WithTimeout(t.Context(), test.instant[3]+test.period.Duration()/2)
				defer cancel()
				p.Probe(ctx, "u", "192.0.2.1", &spec.Container{}, o, func([]lifecycle.Event) {})
				if diff := cmp.Diff(test.instant, slices.Concat(dialed, s.asked)); diff != "" {
					t.Errorf("probed (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestRetriesAreNotDelayed expects that a handler that cannot run is tried again at once, not at the next instant of all probes.
func TestRetriesAreNotDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(210 * time.Millisecond)
		var errored []lifecycle.Event
		o := order(lifecycle.ProbeReadiness, spec.Probe{})
		o.Spec.Exec, o.Spec.TCPSocket = nil, &spec.TCPSocketAction{Port: spec.Port{Number: 80}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		prober(nil, nil).Probe(ctx, "u", "", &spec.Container{}, o, func(events []lifecycle.Event) { // without an address it is an error
			errored = append(errored, events...)
		})
		if len(errored) != 1 {
			t.Errorf("events within a millisecond: %q, want the one after three attempts", describe(errored...))
		}
	})
}
