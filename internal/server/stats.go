package server

import (
	"context"
	"net/http"
	"slices"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor"
)

// StatsSource measures pods. It returns one element for each of them, in the same order.
type StatsSource interface {
	Stats(ctx context.Context, pods []supervisor.Snapshot) []api.PodStats
}

// stats measures pods. Parameter: pod (a name, repeatable).
func (s *Server) stats(r *http.Request) (any, error) {
	names := r.URL.Query()["pod"]
	pods := s.o.Supervisor.Pods()
	for _, name := range names {
		if !slices.ContainsFunc(pods, func(p supervisor.Snapshot) bool { return p.Pod.Name == name }) {
			return nil, failure(http.StatusNotFound, "no such pod %q", name)
		}
	}
	pods = slices.DeleteFunc(slices.Clone(pods),
		func(p supervisor.Snapshot) bool { return len(names) > 0 && !slices.Contains(names, p.Pod.Name) })
	summary := api.StatsSummary{Pods: []api.PodStats{}}
	if s.o.Stats != nil && len(pods) > 0 {
		summary.Pods = s.o.Stats.Stats(r.Context(), pods)
	}
	return summary, nil
}
