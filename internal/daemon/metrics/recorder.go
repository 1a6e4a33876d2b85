package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Buckets of histograms, in seconds.
var (
	operationBuckets = prometheus.ExponentialBuckets(.005, 2.5, 14) // those of the kubelet
	startBuckets     = []float64{
		0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600,
	}
	pullBuckets  = []float64{1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}
	probeBuckets = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10}
)

// Recorder counts what happens, since the start of the daemon. It is safe for concurrent use. [Recorder.Runtime], [Recorder.Hooks] and
// [Recorder.Probe] must be connected to the supervisor, and [Recorder.Follow] must run.
type Recorder struct {
	registry *prometheus.Registry

	startedPods                             prometheus.Counter
	startedContainers                       *prometheus.CounterVec
	podStart                                prometheus.Histogram
	operations, operationErrors             *prometheus.CounterVec
	operationDuration, stepDuration         *prometheus.HistogramVec
	pulls                                   *prometheus.CounterVec
	pullDuration                            *prometheus.HistogramVec
	pullBytes, eventsMissed, scrapeRejected prometheus.Counter
	events                                  *prometheus.CounterVec

	mu   sync.Mutex
	pods map[string]*podRecord // by UID
}

// podRecord is what was counted for a pod.
type podRecord struct {
	probes   map[probeKey]*probeRecord
	restarts map[restartKey]uint64
}

type probeKey struct {
	container string
	kind      lifecycle.ProbeKind
}

type probeRecord struct {
	results map[string]uint64
	took    *distribution
}

type restartKey struct{ container, cause string }

// NewRecorder returns a recorder.
func NewRecorder() *Recorder {
	r := &Recorder{registry: prometheus.NewRegistry(), pods: map[string]*podRecord{}}
	r.startedPods, r.startedContainers = r.counter(startedPods), r.counters(startedContainers)
	r.operations, r.operationErrors = r.counters(operations), r.counters(operationErrors)
	r.operationDuration, r.stepDuration = r.histograms(operationDuration,
		operationBuckets), r.histograms(startStepDuration, operationBuckets)
	r.podStart, r.pullDuration = r.histogram(podStartDuration, startBuckets), r.histograms(imagePullDuration, pullBuckets)
	r.pulls, r.pullBytes = r.counters(imagePulls), r.counter(imagePullBytes)
	r.events, r.eventsMissed, r.scrapeRejected = r.counters(events), r.counter(eventsMissed), r.counter(scrapesRejected)
	for _, result := range []string{pullSucceeded, pullFailed, pullCanceled} { // rates need a value before the first event
		r.pulls.WithLabelValues(result)
	}
	registerLibrary(r.registry)
	return r
}

func (r *Recorder) counter(m *Metric) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: m.Name, Help: m.Help})
	r.registry.MustRegister(c)
	return c
}

func (r *Recorder) counters(m *Metric) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
	r.registry.MustRegister(c)
	return c
}

func (r *Recorder) histogram(m *Metric, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: buckets})
	r.registry.MustRegister(h)
	return h
}

func (r *Recorder) histograms(m *Metric, buckets []float64) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: buckets}, m.Labels)
	r.registry.MustRegister(h)
	return h
}

// pod returns the record of a pod. r.mu must be held.
func (r *Recorder) pod(uid string) *podRecord {
	p := r.pods[uid]
	if p == nil {
		p = &podRecord{probes: map[probeKey]*probeRecord{}, restarts: map[restartKey]uint64{}}
		r.pods[uid] = p
	}
	return p
}

// forget deletes what was counted for a pod.
func (r *Recorder) forget(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, uid)
}

// Probe counts a result of a probe.
func (r *Recorder) Probe(uid, container string, kind lifecycle.ProbeKind, outcome lifecycle.ProbeOutcome, took time.Duration) {
	result := "unknown"
	switch outcome {
	case lifecycle.ProbeSuccess, lifecycle.ProbeWarning:
		result = "successful"
	case lifecycle.ProbeFailure:
		result = "failed"
	case lifecycle.ProbeError:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pod(uid)
	key := probeKey{container, kind}
	if p.probes[key] == nil {
		p.probes[key] = &probeRecord{map[string]uint64{}, newDistribution(probeBuckets)}
	}
	p.probes[key].results[result]++
	p.probes[key].took.observe(took.Seconds())
}

// restarted counts a restart of a container.
func (r *Recorder) restarted(uid, container, cause string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pod(uid).restarts[restartKey{container, cause}]++
}

// of adds what was counted for a pod.
func (r *Recorder) of(s *sample, name, uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[uid]
	if p == nil {
		return
	}
	for key, n := range p.restarts {
		s.add(restartsByCause, float64(n), namespace, name, uid, key.container, key.cause)
	}
	for key, probe := range p.probes {
		kind := probeType(key.kind)
		for result, n := range probe.results {
			s.add(probeResults, float64(n), namespace, name, uid, key.container, kind, result)
		}
		s.distribution(probeDuration, probe.took, namespace, name, key.container, kind)
	}
}
