package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Source is where the name, the labels and the meaning of a metric come from.
type Source string

// The sources.
const (
	Kubelet   Source = "kubelet"
	CAdvisor  Source = "cAdvisor"
	KubeState Source = "kube-state-metrics"
	Own       Source = "Podstead"
	Library   Source = "Prometheus client library"
)

// Kind is the type of a metric.
type Kind string

// The types of metrics.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
	Summary   Kind = "summary"
)

// Metric describes a metric.
type Metric struct {
	Name   string
	Kind   Kind
	Labels []string
	Help   string
	Source Source

	desc *prometheus.Desc
}

// known are the metrics of this package, in the order of their declaration.
var known []*Metric

// declare adds a metric. Labels are separated by spaces.
func declare(source Source, kind Kind, name, labels, help string) *Metric {
	m := &Metric{Name: name, Kind: kind, Labels: strings.Fields(labels), Help: help, Source: source}
	m.desc = prometheus.NewDesc(name, help, m.Labels, nil)
	known = append(known, m)
	return m
}

// sample is the set of metrics of one request.
type sample struct{ list []prometheus.Metric }

// Describe implements [prometheus.Collector]. The metrics are not known before they are collected.
func (*sample) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (s *sample) Collect(ch chan<- prometheus.Metric) {
	for _, m := range s.list {
		ch <- m
	}
}

// add adds a value of a metric that is not a histogram.
func (s *sample) add(m *Metric, value float64, labels ...string) {
	kind := prometheus.GaugeValue
	if m.Kind == Counter {
		kind = prometheus.CounterValue
	}
	s.list = append(s.list, prometheus.MustNewConstMetric(m.desc, kind, value, valid(labels)...))
}

// flag adds 1 or 0.
func (s *sample) flag(m *Metric, set bool, labels ...string) {
	value := 0.0
	if set {
		value = 1
	}
	s.add(m, value, labels...)
}

// distribution adds a histogram.
func (s *sample) distribution(m *Metric, d *distribution, labels ...string) {
	s.list = append(s.list, prometheus.MustNewConstHistogram(m.desc, d.count, d.sum, d.cumulative(), valid(labels)...))
}

// valid replaces what label values must not contain: the name of an image can have any bytes.
func valid(labels []string) []string {
	for i := range labels {
		labels[i] = strings.ToValidUTF8(labels[i], "\uFFFD")
	}
	return labels
}

// distribution counts durations. It is not safe for concurrent use.
type distribution struct {
	bounds []float64
	counts []uint64 // of each bound; longer durations are in none
	count  uint64
	sum    float64
}

func newDistribution(bounds []float64) *distribution {
	return &distribution{bounds: bounds, counts: make([]uint64, len(bounds))}
}

func (d *distribution) observe(seconds float64) {
	d.count++
	d.sum += seconds
	if i, _ := slices.BinarySearch(d.bounds, seconds); i < len(d.bounds) {
		d.counts[i]++
	}
}

func (d *distribution) cumulative() map[float64]uint64 {
	buckets := make(map[float64]uint64, len(d.bounds))
	var total uint64
	for i, bound := range d.bounds {
		total += d.counts[i]
		buckets[bound] = total
	}
	return buckets
}
