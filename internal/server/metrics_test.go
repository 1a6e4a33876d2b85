package server_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/runtime/fakeruntime"
)

// TestMetrics: both sockets serve the metrics. A daemon without metrics says so.
func TestMetrics(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	var out strings.Builder
	for _, socket := range []string{d.socket, d.socket + "-ro"} {
		c := client.New(socket, "podstead metrics")
		out.Reset()
		if err := c.Metrics(t.Context(), &out); err != nil || out.String() != "up 1\n" {
			t.Errorf("%s: %v, %q", socket, err, out.String())
		}
		c.Close()
	}
	d.closeServer()
	d.metrics = nil
	d.serve(t, "second")
	out.Reset()
	if e, ok := errors.AsType[*api.Error](d.client.Metrics(t.Context(), &out)); !ok || e.Status != http.StatusNotImplemented ||
		out.Len() > 0 {
		t.Errorf("without metrics: %v, %q", e, out.String())
	}
}
