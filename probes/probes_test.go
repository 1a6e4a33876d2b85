package probes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ref = lifecycle.Ref{Container: "c", Round: 1, Attempt: 3}

// execer returns a fixed result for every command and records the commands.
type execer struct {
	code    int
	output  string
	err     error
	takes   time.Duration
	mu      sync.Mutex
	ran     [][]string
	running int
	most    int // maximum number of concurrent commands
}

func (e *execer) Exec(
	ctx context.Context, uid string, r lifecycle.Ref, command []string, timeout time.Duration, limit int,
) (int, []byte, error) {
	if uid != "u" || r != ref || timeout <= 0 || limit != 10<<10 {
		return 0, nil, fmt.Errorf("unexpected arguments: %q %+v %v %d", uid, r, timeout, limit)
	}
	e.mu.Lock()
	e.ran = append(e.ran, command)
	e.running++
	e.most = max(e.most, e.running)
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.running--
		e.mu.Unlock()
	}()
	select {
	case <-time.After(min(e.takes, timeout)):
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
	if e.takes > timeout {
		return 0, nil, fmt.Errorf("exec: %w", context.DeadlineExceeded)
	}
	return e.code, []byte(e.output), e.err
}

func prober(e Execer, dial Dial) *Prober { return New(e, instant, Options{Dial: dial}) }

func instant() lifecycle.Instant {
	now := time.Now()
	return lifecycle.Instant{Boot: "b", Mono: now.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), Wall: now}
}

func target(address string, c *spec.Container) Target {
	return Target{UID: "u", Address: address, Ref: ref, Container: c}
}

func want(t *testing.T, got lifecycle.ProbeResult, outcome lifecycle.ProbeOutcome, message string) {
	t.Helper()
	if got.Outcome != outcome || !strings.Contains(got.Message, message) || (message == "") != (got.Message == "") {
		t.Errorf("got %s %q, want %s %q", got.Outcome, got.Message, outcome, message)
	}
}

func TestExec(t *testing.T) {
	c := &spec.Container{Name: "c", Env: []spec.EnvVar{
		{Name: "A", Value: "one"},
		{Name: "B", Value: "$(A)"},
		{Name: "C", Value: "static"},
		{Name: "C", ValueFrom: &spec.EnvVarSource{}},
	}}
	command := []string{"sh", "-c", "$(A) $(B) $(C) $(NONE) $$(A)"}
	expanded := []string{"sh", "-c", "one $(A) $(C) $(NONE) $(A)"}
	for _, test := range []struct {
		name    string
		execer  *execer
		outcome lifecycle.ProbeOutcome
		message string
	}{
		{"status 0", &execer{output: "fine"}, lifecycle.ProbeSuccess, ""},
		{"status 1", &execer{code: 1, output: "not yet"}, lifecycle.ProbeFailure, "not yet"},
		{"status 127 of the shell", &execer{code: 127, output: "sh: x: not found"}, lifecycle.ProbeFailure, "sh: x: not found"},
		{
			"timeout", &execer{takes: time.Hour}, lifecycle.ProbeFailure,
			`command timed out: "sh -c one $(A) $(C) $(NONE) $(A)" timed out after 2s`,
		},
		{"no such program", &execer{err: errors.New("exec failed")}, lifecycle.ProbeError, "exec failed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := prober(test.execer, nil).Run(t.Context(), target("", c), &spec.Probe{
					Exec: &spec.ExecAction{Command: command}, TimeoutSeconds: 2,
				})
				want(t, got, test.outcome, test.message)
				for _, ran := range test.execer.ran {
					if diff := cmp.Diff(expanded, ran); diff != "" {
						t.Errorf("command (-want +got):\n%s", diff)
					}
				}
				if len(test.execer.ran) != 1 {
					t.Errorf("ran %d times, want once", len(test.execer.ran))
				}
			})
		})
	}
}

// Cancellation of the context ends a probe without a retry.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		e := &execer{takes: time.Hour}
		prober(e, nil).Run(ctx, target("", &spec.Container{}), &spec.Probe{
			Exec: &spec.ExecAction{Command: []string{"x"}}, TimeoutSeconds: 7200,
		})
		if len(e.ran) != 1 || time.Since(start) != time.Second {
			t.Errorf("ran %d times in %v, want one run of a second", len(e.ran), time.Since(start))
		}
	})
}

// Of a thousand concurrent probes a few run at a time. Hanging probes delay the others by at most one second.
func TestConcurrencyIsLimited(t *testing.T) {
	for _, test := range []struct {
		name        string
		takes, last time.Duration
		most        int
	}{
		{"quick ones take slots", 4 * time.Millisecond, 500 * time.Millisecond, 8},
		{"slow ones do not starve the rest", time.Minute, time.Minute + time.Second, 1000},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &execer{takes: test.takes}
				p := prober(e, nil)
				start := time.Now()
				var group sync.WaitGroup
				for range 1000 {
					group.Go(func() {
						p.Run(t.Context(), target("", &spec.Container{}), &spec.Probe{
							Exec: &spec.ExecAction{Command: []string{"x"}}, TimeoutSeconds: 100,
						})
					})
				}
				group.Wait()
				if took := time.Since(start); took != test.last || e.most != test.most {
					t.Errorf("took %v with %d concurrent commands, want %v with %d", took, e.most, test.last, test.most)
				}
			})
		})
	}
}

func TestNoAddress(t *testing.T) {
	for _, probe := range []*spec.Probe{
		{HTTPGet: &spec.HTTPGetAction{Port: spec.Port{Number: 80}}},
		{TCPSocket: &spec.TCPSocketAction{Port: spec.Port{Number: 80}}},
		{GRPC: &spec.GRPCAction{Port: 80}},
	} {
		got := prober(&execer{}, nil).Run(t.Context(), target("", &spec.Container{}), probe)
		want(t, got, lifecycle.ProbeError, "container c: pod has no IP address")
	}
}

func TestUnknownPort(t *testing.T) {
	for _, probe := range []*spec.Probe{
		{HTTPGet: &spec.HTTPGetAction{Port: spec.Port{Name: "web"}}},
		{TCPSocket: &spec.TCPSocketAction{Port: spec.Port{Name: "web"}}},
	} {
		got := prober(&execer{}, nil).Run(t.Context(), target("127.0.0.1", &spec.Container{Name: "c"}), probe)
		want(t, got, lifecycle.ProbeError, `container "c": port "web" not found`)
	}
}

func TestNoHandler(t *testing.T) {
	got := prober(&execer{}, nil).Run(t.Context(), target("", &spec.Container{}), &spec.Probe{})
	want(t, got, lifecycle.ProbeFailure, "probe has no handler")
}

// listen returns a listener on an address of this host, and its port.
func listen(t *testing.T, address string) (net.Listener, int32) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, int32(l.Addr().(*net.TCPAddr).Port)
}

// closedPort is a port without a listener. It is never assigned dynamically.
const closedPort = 1

func TestTCPSocket(t *testing.T) {
	_, v4 := listen(t, "127.0.0.1")
	_, v6 := listen(t, "::1")
	c := &spec.Container{Ports: []spec.ContainerPort{{Name: "web", ContainerPort: v4}}}
	for _, test := range []struct {
		name, address string
		action        spec.TCPSocketAction
		outcome       lifecycle.ProbeOutcome
		message       string
	}{
		{"open", "127.0.0.1", spec.TCPSocketAction{Port: spec.Port{Number: v4}}, lifecycle.ProbeSuccess, ""},
		{"named port", "127.0.0.1", spec.TCPSocketAction{Port: spec.Port{Name: "web"}}, lifecycle.ProbeSuccess, ""},
		{"IPv6", "::1", spec.TCPSocketAction{Port: spec.Port{Number: v6}}, lifecycle.ProbeSuccess, ""},
		{"own host", "192.0.2.1", spec.TCPSocketAction{Port: spec.Port{Number: v4}, Host: "127.0.0.1"}, lifecycle.ProbeSuccess, ""},
		{
			"closed", "127.0.0.1",
			spec.TCPSocketAction{Port: spec.Port{Number: closedPort}},
			lifecycle.ProbeFailure, "connect: connection refused",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := prober(nil, nil).Run(t.Context(), target(test.address, c), &spec.Probe{TCPSocket: &test.action, TimeoutSeconds: 10})
			want(t, got, test.outcome, test.message)
		})
	}
}

// A network that drops all packets delays a probe by its timeout.
func TestTimeout(t *testing.T) {
	swallow := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	port := spec.Port{Number: 80}
	for _, test := range []struct {
		probe   spec.Probe
		message string
	}{
		{spec.Probe{TCPSocket: &spec.TCPSocketAction{Port: port}}, "context deadline exceeded"},
		{
			spec.Probe{HTTPGet: &spec.HTTPGetAction{Port: port}},
			`Get "http://192.0.2.1:80": context deadline exceeded`,
		},
		{
			spec.Probe{GRPC: &spec.GRPCAction{Port: 80}},
			`timeout: failed to connect service "192.0.2.1:80" within 1.5s: context deadline exceeded`,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			test.probe.TimeoutSeconds = 1.5
			start := time.Now()
			got := prober(nil, swallow).Run(t.Context(), target("192.0.2.1", &spec.Container{}), &test.probe)
			want(t, got, lifecycle.ProbeFailure, test.message)
			if took := time.Since(start); took != 1500*time.Millisecond {
				t.Errorf("took %v, want 1.5 s", took)
			}
		})
	}
}
