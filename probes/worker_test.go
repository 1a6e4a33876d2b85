package probes

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// script returns a sequence of results, the last one repeatedly, and records when it was called.
type script struct {
	mu    sync.Mutex
	codes []int
	err   error
	start time.Time
	asked []time.Duration
	panic bool
	takes time.Duration
}

func (s *script) Exec(context.Context, string, lifecycle.Ref, []string, time.Duration, int) (int, []byte, error) {
	s.mu.Lock()
	takes := s.takes
	s.mu.Unlock()
	time.Sleep(takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, time.Since(s.start))
	if s.panic {
		panic("a bug")
	}
	code := s.codes[0]
	if len(s.codes) > 1 {
		s.codes = s.codes[1:]
	}
	return code, []byte("no good"), s.err
}

func order(kind lifecycle.ProbeKind, s spec.Probe) lifecycle.ProbeOrder {
	s.Exec = &spec.ExecAction{Command: []string{"x"}}
	s.PeriodSeconds, s.TimeoutSeconds, s.SuccessThreshold, s.FailureThreshold = 10, 1, 1, 3
	holds := map[lifecycle.ProbeKind]lifecycle.Verdict{
		lifecycle.ProbeReadiness: lifecycle.VerdictFailure, lifecycle.ProbeLiveness: lifecycle.VerdictSuccess,
	}[kind]
	return lifecycle.ProbeOrder{
		ProbeRef: lifecycle.ProbeRef{Ref: ref, Kind: kind}, Spec: &s, Started: instant(), Initial: holds,
	}
}

// describe formats events for comparison.
func describe(events ...lifecycle.Event) string {
	var lines []string
	for _, e := range events {
		switch e := e.(type) {
		case lifecycle.ProbeChanged:
			lines = append(lines, fmt.Sprintf("%s is %s after %d: %s", e.Kind, e.Verdict, e.Count, e.Message))
		case lifecycle.ProbeFailed:
			lines = append(lines, fmt.Sprintf("%s %s %d: %s", e.Kind, e.Result.Outcome, e.Count, e.Result.Message))
		case lifecycle.ProbeWarned:
			lines = append(lines, fmt.Sprintf("%s warns: %s", e.Kind, e.Result.Message))
		default:
			lines = append(lines, fmt.Sprintf("%T", e))
		}
	}
	return strings.Join(lines, "; ")
}

func TestWorker(t *testing.T) {
	for _, test := range []struct {
		name    string
		kind    lifecycle.ProbeKind
		probe   spec.Probe
		script  *script
		emitted []string
		asked   []time.Duration // seconds
	}{
		{
			"only changes are emitted", lifecycle.ProbeReadiness,
			spec.Probe{},
			&script{codes: []int{0}},
			[]string{"readiness is Success after 1: "},
			[]time.Duration{0, 10, 20, 30, 40},
		},
		{
			"the first answer waits for the initial delay", lifecycle.ProbeReadiness,
			spec.Probe{InitialDelaySeconds: 25},
			&script{codes: []int{0}},
			[]string{"readiness is Success after 1: "},
			[]time.Duration{25, 35, 45},
		},
		{
			"a liveness that has failed is not asked again", lifecycle.ProbeLiveness,
			spec.Probe{},
			&script{codes: []int{0, 1}},
			[]string{
				"liveness Failure 1: no good", "liveness Failure 2: no good",
				"liveness Failure 3: no good; liveness is Failure after 3: no good",
			},
			[]time.Duration{0, 10, 20, 30},
		},
		{
			"a handler that cannot run is tried three times at once", lifecycle.ProbeLiveness,
			spec.Probe{},
			&script{codes: []int{0}, err: io.ErrUnexpectedEOF},
			slices.Repeat([]string{"liveness Error 0: unexpected EOF"}, 5),
			[]time.Duration{0, 0, 0, 10, 10, 10, 20, 20, 20, 30, 30, 30, 40, 40, 40},
		},
		{
			"a panic is survived", lifecycle.ProbeLiveness,
			spec.Probe{},
			&script{panic: true},
			slices.Repeat([]string{"liveness Error 0: panic: a bug"}, 5),
			[]time.Duration{0, 0, 0, 10, 10, 10, 20, 20, 20, 30, 30, 30, 40, 40, 40},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := prober(test.script, nil)
				o := order(test.kind, test.probe)
				test.script.start = time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 46*time.Second)
				defer cancel()
				var emitted []string
				p.Probe(ctx, "u", "", &spec.Container{}, o,
					func(events []lifecycle.Event) { emitted = append(emitted, describe(events...)) })
				if left := p.Answers("u"); len(left) > 0 {
					t.Errorf("answers after the worker returned: %v", left)
				}
				if diff := cmp.Diff(test.emitted, emitted); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				var asked []time.Duration
				for _, at := range test.script.asked {
					asked = append(asked, at/time.Second)
				}
				if diff := cmp.Diff(test.asked, asked); diff != "" {
					t.Errorf("probed after seconds (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// After a restart of the supervisor the probes of running containers are spread over their period. Containers that start later
// are probed at once, and so are all if the supervisor is older than the period.
func TestSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := order(lifecycle.ProbeLiveness, spec.Probe{})
		time.Sleep(time.Hour)
		p := New(nil, instant, Options{Random: func() float64 { return 0.7 }})
		if got := p.spread(before); got != 7*time.Second {
			t.Errorf("a probe of an older run is delayed by %v, want 7 s", got)
		}
		if got := p.spread(order(lifecycle.ProbeLiveness, spec.Probe{})); got != 0 {
			t.Errorf("a probe of a new run is delayed by %v", got)
		}
		time.Sleep(10 * time.Second)
		if got := p.spread(before); got != 0 {
			t.Errorf("with an old supervisor a probe is delayed by %v", got)
		}
	})
}

func TestCancelledProbeEmitsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		prober(&execer{takes: time.Hour}, nil).Probe(ctx, "u", "", &spec.Container{}, order(lifecycle.ProbeLiveness, spec.Probe{}),
			func(events []lifecycle.Event) { t.Errorf("emitted %s", describe(events...)) })
	})
}

// The clock continues while the host is suspended, timers do not. A probe must run soon after the resume.
func TestProbeRunsAfterSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64
		now := func() lifecycle.Instant { return instant().Add(time.Duration(slept.Load())) }
		s := &script{codes: []int{0}, start: time.Now()}
		p := New(s, now, Options{})
		o := order(lifecycle.ProbeLiveness, spec.Probe{})
		o.Spec.PeriodSeconds = 3600
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		time.AfterFunc(90*time.Second, func() { slept.Store(int64(2 * time.Hour)) })
		p.Probe(ctx, "u", "", &spec.Container{}, o, func([]lifecycle.Event) {})
		if len(s.asked) < 2 || s.asked[1] != 2*time.Minute {
			t.Errorf("probed after %v, want a run after 2 minutes", s.asked)
		}
	})
}

func TestNoGoroutineLeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() {
				defer server.Close()
				_, _ = server.Read(make([]byte, 1<<12))
				_, _ = io.WriteString(server, "HTTP/1.1 500 Oh no\r\nContent-Length: 0\r\n\r\n")
				_, _ = io.Copy(io.Discard, server)
			}()
			return client, nil
		}
		p := New(&execer{takes: time.Hour}, instant, Options{Dial: dial})
		ctx, cancel := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		port := spec.Port{Number: 80}
		handlers := []spec.Probe{
			{Exec: &spec.ExecAction{Command: []string{"x"}}},
			{HTTPGet: &spec.HTTPGetAction{Port: port}},
			{TCPSocket: &spec.TCPSocketAction{Port: port}},
		}
		for i := range 30 {
			o := order(lifecycle.ProbeReadiness, spec.Probe{})
			exec, http, tcp := o.Spec.Exec, handlers[i%3].HTTPGet, handlers[i%3].TCPSocket
			if i%3 != 0 {
				exec = nil
			}
			o.Spec.Exec, o.Spec.HTTPGet, o.Spec.TCPSocket = exec, http, tcp
			o.Spec.PeriodSeconds = spec.Seconds(60 + i)
			workers.Go(func() { p.Probe(ctx, "u", "192.0.2.1", &spec.Container{}, o, func([]lifecycle.Event) {}) })
		}
		settled := func() int {
			time.Sleep(30 * time.Second)
			synctest.Wait()
			return runtime.NumGoroutine()
		}
		before := settled()
		time.Sleep(6 * time.Hour)
		if after := settled(); after > before+4 { // goroutines of a running probe
			stacks := make([]byte, 1<<16)
			t.Errorf("%d goroutines after six hours, %d before\n%s", after, before,
				strings.TrimSpace(string(stacks[:runtime.Stack(stacks, true)])))
		}
		cancel()
		workers.Wait()
	})
}

// TestAnswers checks that a prober has the newest answer of each probe that runs, and that a worker that returns takes only its own away.
func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{codes: []int{1, 0}}
		p := prober(s, nil)
		run := func(kind lifecycle.ProbeKind) (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			var workers sync.WaitGroup
			workers.Go(func() {
				p.Probe(ctx, "u", "", &spec.Container{}, order(kind, spec.Probe{}), func([]lifecycle.Event) {})
			})
			synctest.Wait()
			return func() { cancel(); workers.Wait() }
		}
		outcomes := func() (list []string) {
			for _, a := range p.Answers("u") {
				list = append(list, fmt.Sprintf("%s %s %s", a.Container, a.Kind, a.Outcome))
			}
			return list
		}
		first := run(lifecycle.ProbeReadiness)
		for _, step := range []struct {
			name string
			do   func()
			want []string
		}{
			{"the first answer", func() {}, []string{"c readiness Failure"}},
			{"the next answer", func() { time.Sleep(10 * time.Second); synctest.Wait() }, []string{"c readiness Success"}},
			{"another probe", func() { t.Cleanup(run(lifecycle.ProbeLiveness)) }, []string{"c liveness Success", "c readiness Success"}},
			{
				"the same probe of the next run, beside the first", func() { t.Cleanup(run(lifecycle.ProbeReadiness)); first() },
				[]string{"c liveness Success", "c readiness Success"},
			},
		} {
			step.do()
			if diff := cmp.Diff(step.want, outcomes()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step.name, diff)
			}
		}
		const takes = 300 * time.Millisecond
		s.mu.Lock()
		s.takes = takes
		s.mu.Unlock()
		time.Sleep(11 * time.Second)
		synctest.Wait()
		for _, a := range p.Answers("u") {
			if a.Took != takes {
				t.Errorf("the %s probe took %v, want %v", a.Kind, a.Took, takes)
			}
		}
		if other := p.Answers("other"); len(other) > 0 {
			t.Errorf("answers of another pod: %v", other)
		}
	})
}
