package metrics

import (
	"context"
	"log/slog"
	"net/http"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/runtime/stats"
	"github.com/podstead/podstead/supervisor"
)

const (
	// maxRequests is the number of requests in progress. Further ones are rejected.
	maxRequests = 8
	// reuse is the age up to which figures are used for another request, so that many clients cost no more than one.
	reuse = 500 * time.Millisecond
)

// Options are the options of [New]. Supervisor, Recorder and Log are required.
type Options struct {
	Supervisor *supervisor.Supervisor
	Recorder   *Recorder
	// ReadStats measures pods, in the order of the targets, within a few seconds; nil: nothing is measured.
	ReadStats func(ctx context.Context, targets []stats.Target) []stats.Pod
	// CheckEngine checks that the container engine responds. It may hang; nil: the metrics do not have the state of the engine.
	CheckEngine func(ctx context.Context) error
	// Directories are paths whose file systems are measured, by name.
	Directories map[string]string
	// Claims is the directory of the persistent volumes; empty: they are not measured.
	Claims  string
	Version string
	Node    string // host name of the host
	Log     *slog.Logger
}

// Metrics serves the metrics of a daemon. It is safe for concurrent use.
type Metrics struct {
	o           Options
	directories []*directory
	claims      claims
	engine      *disk.Caller         // for CheckEngine
	address     atomic.Pointer[bool] // whether the address is served; nil: there is none
	requests    chan struct{}
	gathering   chan struct{} // held while figures are read
	newest      atomic.Pointer[gathered]
	idle        time.Duration // after which an idle connection to the address is closed
}

type gathered struct {
	at     time.Time
	sample *sample
}

// New returns the metrics of a daemon.
func New(o Options) *Metrics {
	m := &Metrics{
		o: o, engine: disk.NewCaller(o.Log), idle: idleTimeout, claims: claims{o.Claims, o.Log, map[string]*directory{}},
		requests: make(chan struct{}, maxRequests), gathering: make(chan struct{}, 1),
	}
	for name, path := range o.Directories {
		m.directories = append(m.directories, newDirectory(name, path, o.Log))
	}
	return m
}

// registerLibrary registers the metrics of the process and of the Go runtime.
func registerLibrary(r *prometheus.Registry) {
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// ServeHTTP sends all metrics. A client that closes the connection ends its request.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case m.requests <- struct{}{}:
		defer func() { <-m.requests }()
	default:
		m.o.Recorder.scrapeRejected.Inc()
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests for metrics at once", http.StatusServiceUnavailable)
		return
	}
	s, err := m.sample(r.Context())
	if err != nil {
		http.Error(w, "read metrics: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	now := prometheus.NewRegistry()
	now.MustRegister(s)
	promhttp.HandlerFor(prometheus.Gatherers{m.o.Recorder.registry, now}, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(m.o.Log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
	}).ServeHTTP(w, r)
}

// sample returns figures of now, or of at most [reuse] ago. One request reads them at a time.
func (m *Metrics) sample(ctx context.Context) (*sample, error) {
	select {
	case m.gathering <- struct{}{}:
		defer func() { <-m.gathering }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if g := m.newest.Load(); g != nil && time.Since(g.at) < reuse {
		return g.sample, nil
	}
	s := m.gather(ctx)
	if ctx.Err() != nil { // the figures may be incomplete
		return nil, context.Cause(ctx)
	}
	m.newest.Store(&gathered{time.Now(), s})
	return s, nil
}

// checkEngine returns nil if the container engine responds before ctx ends.
func (m *Metrics) checkEngine(ctx context.Context) error {
	_, err := disk.Call(ctx, m.engine, func() (struct{}, error) { return struct{}{}, m.o.CheckEngine(ctx) })
	return err
}

// gather reads all figures at the same time.
func (m *Metrics) gather(ctx context.Context) *sample {
	list := m.o.Supervisor.Pods()
	targets := make([]stats.Target, len(list))
	for i := range list {
		targets[i] = targetOf(&list[i])
	}
	var running sync.WaitGroup
	var measured []stats.Pod
	if m.o.ReadStats != nil {
		running.Go(func() { measured = m.o.ReadStats(ctx, targets) })
	}
	systems := make([]*fileSystem, len(m.directories))
	for i, d := range m.directories {
		running.Go(func() { systems[i] = d.usage(ctx) })
	}
	names := m.claims.names(list)
	var volumes []*fileSystem
	running.Go(func() { volumes = m.claims.measure(ctx, names) })
	var lag, response time.Duration
	var silent, engineErr error
	running.Go(func() { lag, silent = timed(ctx, m.o.Supervisor.Heartbeat) })
	if m.o.CheckEngine != nil {
		running.Go(func() { response, engineErr = timed(ctx, m.checkEngine) })
	}
	running.Wait()

	s, now := &sample{}, time.Now()
	s.states(list, m.o.Node)
	s.add(nodeName, 1, m.o.Node)
	for i := range list {
		m.o.Recorder.of(s, list[i].Pod.Name, list[i].Facts.UID)
	}
	for i := range measured {
		s.usage(&list[i], &targets[i], &measured[i], now)
	}
	for i, d := range m.directories {
		s.directory(d, systems[i])
	}
	for i, name := range names {
		s.volume(name, volumes[i])
	}
	s.machine()
	s.add(loopLag, lag.Seconds())
	s.flag(loopsResponding, silent == nil)
	if m.o.CheckEngine != nil {
		s.flag(engineUp, engineErr == nil)
		s.add(engineResponse, response.Seconds())
	}
	if up := m.address.Load(); up != nil {
		s.flag(addressUp, *up)
	}
	s.add(buildInfo, 1, m.o.Version, goruntime.Version())
	return s
}
