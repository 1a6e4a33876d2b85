// Package probes asks containers how they are: by a command, an HTTP request, a connection, or a gRPC health check, as
// the kubelet does (Kubernetes: Probe).
//
// It owns the handlers and the workers that run them in their rhythm. What an answer means for the container is decided
// in package lifecycle, and nothing here keeps a count. A handler takes no longer than the probe's timeoutSeconds, each
// time, and leaves nothing behind: no connection, no goroutine, no process.
package probes

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/podstead/podstead/internal/httpget"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	// userAgent is the kubelet's, of the release whose contract is kept: applications look for "kube-probe/".
	userAgent = "kube-probe/" + spec.KubernetesVersion
	// maxOutput is how much of an answer is read or kept, in bytes.
	maxOutput = 10 << 10
	// turnWait bounds how long a probe waits for others of its kind. The limit is on stampedes, not on probes: those
	// that hang must not keep the rest from running.
	turnWait = time.Second
)

// Execer runs commands in containers.
type Execer interface {
	// Exec runs a command in a run of a container that is running, and returns as soon as the command's first process
	// has ended, with what it has written to its standard output followed by its standard error, cut to max bytes. The
	// command and all that it has started are killed when the timeout (0: none) is over, which counts from its start, or
	// when ctx ends. An error that is a context.DeadlineExceeded says that the timeout was over; any other, that the
	// command could not be run.
	Exec(ctx context.Context, uid string, ref lifecycle.Ref, command []string, timeout time.Duration, max int) (code int, output []byte, err error)
}

// Options say how a [Prober] differs from the usual one.
type Options struct {
	// Dial makes the connections; nil is for the machine's own network.
	Dial httpget.Dial
	// Parallel is how many handlers of one kind (commands, connections) run at the same time, unless they wait for
	// longer than a second; 0 is for 8 commands and 64 connections.
	Parallel int
	// Random returns a number from 0 to 1, exclusively; nil is for the usual source of them.
	Random func() float64
}

// Prober runs handlers. It is safe for concurrent use.
type Prober struct {
	exec     Execer
	now      func() lifecycle.Instant
	born     lifecycle.Instant
	random   func() float64
	dial     httpget.Dial
	http     *httpget.Client
	commands turns
	network  turns
}

// New returns a prober that runs commands by exec and reads the clock now.
func New(exec Execer, now func() lifecycle.Instant, o Options) *Prober {
	if o.Dial == nil {
		o.Dial = httpget.Dialer().DialContext
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return &Prober{
		exec: exec, now: now, born: now(), random: o.Random, dial: o.Dial, http: httpget.New(o.Dial),
		commands: make(turns, cmp.Or(o.Parallel, 8)),
		network:  make(turns, cmp.Or(o.Parallel, 64)),
	}
}

// Target is whom a probe asks.
type Target struct {
	UID       string
	Address   string // of the pod; empty while it has none
	Ref       lifecycle.Ref
	Container *spec.Container
}

// Ask runs the handler of a probe once, when it is its turn. It ends early with ctx, and then its result means nothing. A
// handler that panics could not do its work.
func (p *Prober) Ask(ctx context.Context, t Target, probe *spec.Probe) (r lifecycle.ProbeResult) {
	defer func() {
		if cause := recover(); cause != nil {
			r = errored(fmt.Errorf("panic: %v", cause))
		}
	}()
	turns := p.network
	if probe.Exec != nil {
		turns = p.commands
	}
	defer turns.take(ctx)()
	timeout := probe.TimeoutSeconds.Duration()
	switch {
	case probe.Exec != nil:
		return p.command(ctx, t, probe.Exec, timeout)
	case probe.HTTPGet != nil:
		return p.httpGet(ctx, t, probe.HTTPGet, timeout)
	case probe.TCPSocket != nil:
		return p.tcpSocket(ctx, t, probe.TCPSocket, timeout)
	case probe.GRPC != nil:
		return p.grpc(ctx, t, probe.GRPC, timeout)
	}
	return failed("the probe has no handler")
}

// host is where a handler finds its container: at the host that it names, or else in its pod.
func (t Target) host(named string) (string, error) {
	if host := cmp.Or(named, t.Address); host != "" {
		return host, nil
	}
	return "", fmt.Errorf("container %s: its pod has no address yet", t.Ref.Container)
}

// endpoint is the host and the port that a handler asks: the named host, or else the pod, and a port that may be named too.
func (t Target) endpoint(named string, port spec.Port) (host string, number int, err error) {
	if host, err = t.host(named); err != nil {
		return "", 0, err
	}
	number, err = t.Container.PortNumber(port)
	return host, number, err
}

func succeeded() lifecycle.ProbeResult {
	return lifecycle.ProbeResult{Outcome: lifecycle.ProbeSuccess}
}

func warned(message string) lifecycle.ProbeResult {
	return lifecycle.ProbeResult{Outcome: lifecycle.ProbeWarning, Message: message}
}

func failed(message string) lifecycle.ProbeResult {
	return lifecycle.ProbeResult{Outcome: lifecycle.ProbeFailure, Message: message}
}

func errored(err error) lifecycle.ProbeResult {
	return lifecycle.ProbeResult{Outcome: lifecycle.ProbeError, Message: err.Error()}
}

// turns holds a token for each handler that runs.
type turns chan struct{}

// take waits for a turn, not longer than [turnWait], and returns what gives it back.
func (t turns) take(ctx context.Context) (giveBack func()) {
	select {
	case t <- struct{}{}:
		return func() { <-t }
	default:
	}
	timer := time.NewTimer(turnWait)
	defer timer.Stop()
	select {
	case t <- struct{}{}:
		return func() { <-t }
	case <-timer.C:
	case <-ctx.Done():
	}
	return func() {}
}
