package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/podstead/podstead/internal/order"
)

// catalogue returns all metrics, sorted by source and name. Those of the client library depend on the host.
func catalogue() []Metric {
	var list []Metric
	for _, m := range known {
		list = append(list, *m)
	}
	order.Sort(list, func(a, b Metric) int {
		if a.Source != b.Source {
			return slices.Index(sources, a.Source) - slices.Index(sources, b.Source)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return append(list, libraryMetrics()...)
}

var sources = []Source{Kubelet, CAdvisor, KubeState, Own}

// libraryMetrics returns the metrics of the process and of the Go runtime.
func libraryMetrics() []Metric {
	r := prometheus.NewRegistry()
	registerLibrary(r)
	families, err := r.Gather()
	if err != nil {
		return nil // a test compares the list
	}
	var list []Metric
	for _, f := range families {
		m := Metric{Name: f.GetName(), Kind: Kind(strings.ToLower(f.GetType().String())), Help: f.GetHelp(), Source: Library}
		for _, l := range f.GetMetric()[0].GetLabel() {
			m.Labels = append(m.Labels, l.GetName())
		}
		list = append(list, m)
	}
	return list
}
