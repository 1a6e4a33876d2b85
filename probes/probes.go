// Package probes runs the probes of containers as the kubelet does: command, HTTP request, TCP connection, gRPC health check. It runs
// commands by an [Execer], and sends requests by a [Client]: one connection per request, closed afterwards; no proxy, no compression, no
// certificate verification; redirects followed only on the host of the first request. Package hooks uses both.
//
// It owns the handlers and the workers that run probes periodically. Package lifecycle decides what the result of a probe means for the
// container, and counts results. A probe takes at most its timeoutSeconds. It leaves no connection, goroutine or process.
package probes

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	// userAgent is that of the supported kubelet release. Applications look for "kube-probe/".
	userAgent = "kube-probe/" + spec.KubernetesVersion
	// MaxOutput is the maximum size of a response that is read or kept, in bytes.
	MaxOutput = 10 << 10
	// slotWait bounds how long a probe waits for a free slot. Slots smooth bursts of probes. Hanging probes must not block the
	// others.
	slotWait = time.Second
)

// Execer runs commands in containers.
type Execer interface {
	// Exec runs a command in a running container and returns when the command's first process has exited, with its standard
	// output followed by its standard error, truncated to max bytes. The command and its children are killed when the timeout
	// (0 for none), which includes its start, has expired or ctx is cancelled. The error is context.DeadlineExceeded if the timeout
	// expired. Other errors mean that the command could not be run.
	Exec(ctx context.Context, uid string, ref lifecycle.Ref, command []string, timeout time.Duration,
		max int) (code int, output []byte, err error)
}

// Options configure a [Prober]. The zero value is usable.
type Options struct {
	// Dial opens connections. The default uses the host network.
	Dial Dial
	// Parallel is the number of handlers of one kind (commands, connections) that run concurrently, unless they have waited for
	// more than a second. The default is 8 for commands and 64 for connections.
	Parallel int
	// Random returns a number in [0, 1). The default is the usual random source.
	Random func() float64
	// Observe is called with each result and how long the probe took; nil: never. It must not block.
	Observe func(uid, container string, kind lifecycle.ProbeKind, outcome lifecycle.ProbeOutcome, took time.Duration)
}

// Prober runs handlers. It is safe for concurrent use.
type Prober struct {
	exec     Execer
	now      func() lifecycle.Instant
	born     lifecycle.Instant
	random   func() float64
	observe  func(uid, container string, kind lifecycle.ProbeKind, outcome lifecycle.ProbeOutcome, took time.Duration)
	dial     Dial
	http     *Client
	commands slots
	network  slots
	answers  answers
}

// New returns a prober that runs commands with exec and reads the clock with now.
func New(exec Execer, now func() lifecycle.Instant, o Options) *Prober {
	if o.Dial == nil {
		o.Dial = netDialer().DialContext
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Observe == nil {
		o.Observe = func(string, string, lifecycle.ProbeKind, lifecycle.ProbeOutcome, time.Duration) {}
	}
	return &Prober{
		exec: exec, now: now, born: now(), random: o.Random, observe: o.Observe, dial: o.Dial, http: NewClient(o.Dial),
		commands: make(slots, cmp.Or(o.Parallel, 8)),
		network:  make(slots, cmp.Or(o.Parallel, 64)),
		answers:  answers{byPod: map[string]map[*worker]Answer{}},
	}
}

// Target is the container to probe.
type Target struct {
	UID       string
	Address   string // of the pod, empty if it has none
	Ref       lifecycle.Ref
	Container *spec.Container
}

// Run runs the handler of a probe once, when a slot is free. It returns early when ctx is cancelled, with a meaningless result. A
// panic in a handler is a probe error.
func (p *Prober) Run(ctx context.Context, t Target, probe *spec.Probe) (r lifecycle.ProbeResult) {
	defer func() {
		if cause := recover(); cause != nil {
			r = errored(fmt.Errorf("panic: %v", cause))
		}
	}()
	slots := p.network
	if probe.Exec != nil {
		slots = p.commands
	}
	defer slots.acquire(ctx)()
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
	return failed("probe has no handler")
}

// host returns the host of a handler: the one in the action, or else the pod.
func (t Target) host(named string) (string, error) {
	if host := cmp.Or(named, t.Address); host != "" {
		return host, nil
	}
	return "", fmt.Errorf("container %s: pod has no IP address", t.Ref.Container)
}

// endpoint returns the host and port of a handler. The host is the one in the action, or else the pod. The port may be named.
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

// slots holds a token for each running handler.
type slots chan struct{}

// acquire waits for a free slot for at most [slotWait] and returns a function that releases it.
func (s slots) acquire(ctx context.Context) (release func()) {
	select {
	case s <- struct{}{}:
		return func() { <-s }
	default:
	}
	timer := time.NewTimer(slotWait)
	defer timer.Stop()
	select {
	case s <- struct{}{}:
		return func() { <-s }
	case <-timer.C:
	case <-ctx.Done():
	}
	return func() {}
}
