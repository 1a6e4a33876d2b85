package server

import (
	"context"
	"net/http"
	"time"

	"github.com/podstead/podstead/api"
)

// System measures and frees what is on the disk. Its errors are an [*api.Error] or those of the context. It must be safe for concurrent
// use.
type System interface {
	DiskUsage(ctx context.Context) (api.DiskUsage, error)
	// Prune returns what it has removed also with an error. It leaves Error to its caller.
	Prune(ctx context.Context, q api.SystemPrune) (api.SystemPruned, error)
}

func (s *Server) diskUsage(r *http.Request) (any, error) {
	if s.o.System == nil {
		return nil, failure(http.StatusNotImplemented, "the daemon does not measure the disk")
	}
	return s.o.System.DiskUsage(r.Context())
}

func (s *Server) pruneSystem(r *http.Request) (any, error) {
	if s.o.System == nil {
		return nil, failure(http.StatusNotImplemented, "the daemon does not manage images")
	}
	v := r.URL.Query()
	var q api.SystemPrune
	for name, field := range map[string]*bool{"all": &q.All, "volumes": &q.Volumes, "dryRun": &q.DryRun} {
		var err error
		if *field, err = explicit(v, name); err != nil {
			return nil, err
		}
	}
	if text := v.Get("olderThan"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return nil, invalidField("olderThan", "olderThan=%q: must be a duration, such as 24h", text)
		}
		q.OlderThan = d
	}
	if q.Volumes && q.OlderThan > 0 {
		return nil, invalidField("olderThan", "olderThan: it is not known when a persistent volume was used")
	}
	pruned, err := s.o.System.Prune(r.Context(), q)
	if pruned.Items == nil {
		pruned.Items = []api.PrunedItem{}
	}
	if err != nil && len(pruned.Items) > 0 {
		pruned.Error = asError(err)
		return pruned, nil
	}
	return pruned, err
}

func systemEndpoints() []Endpoint {
	return []Endpoint{
		{
			Method: "GET", Path: "/v1/system/df",
			Summary:  "Measure what Podstead has on the disk, and what could be freed",
			Details:  "It reads the sizes of all files of volumes, logs and writable layers.",
			Response: api.DiskUsage{}, Reasons: []api.ErrorReason{api.ReasonNotImplemented},
			call: (*Server).diskUsage, limit: api.RemovalTimeout,
		},
		{
			Method: "POST", Path: "/v1/system/prune",
			Summary: "Remove what nothing uses: what finished pods have left, images, and content",
			Details: "The response has the field `error` if something was removed before an error.",
			Query: []Parameter{
				{Name: "all", Type: Boolean, Description: "Remove also images that a person has requested."},
				{Name: "volumes", Type: Boolean, Description: "Remove also persistent volumes that no pod uses, with their data."},
				{
					Name: "olderThan", Type: Duration,
					Description: "Keep pods that finished, and images that were used, within this time. Not with volumes.",
				},
				{Name: "dryRun", Type: Boolean, Description: "Remove nothing."},
			},
			Response: api.SystemPruned{}, Reasons: []api.ErrorReason{api.ReasonNotImplemented},
			call: (*Server).pruneSystem, limit: api.RemovalTimeout,
		},
	}
}
