package main

import (
	"net/http"
	"testing"

	"github.com/podstead/podstead/api"
)

func TestMetricsCommand(t *testing.T) {
	h := newTestHost(t, api.Version{Version: version})
	h.fails(t, "metrics", statusFailed, "the daemon has no metrics")
	h.fails(t, "metrics web", statusUsage, "")
	h.closeServer()
	h.options.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("podstead_pods 1\n")) })
	h.serve(t)
	h.want(t, "metrics", "podstead_pods 1\n")
}
