package api

import (
	"context"
	"io"
	"net/http"
	"time"
)

// metricsType is the media type of metrics, unless the client accepts others of Prometheus.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// Metrics writes the metrics of the daemon to w, in the text format of Prometheus.
func (c *Client) Metrics(ctx context.Context, w io.Writer) error {
	limited, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	r, err := c.do(limited, http.MethodGet, "/v1/metrics", nil, nil)
	if err != nil {
		return c.unavailable(ctx, err)
	}
	defer r.Body.Close()
	if r.StatusCode >= 300 {
		return c.readError(ctx, r)
	}
	_, err = io.Copy(w, r.Body)
	return c.unavailable(ctx, err)
}

// metrics serves the metrics. Figures that cannot be read in time are missing.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if s.o.Metrics == nil {
		s.reply(w, r, nil, failure(http.StatusNotImplemented, "the daemon has no metrics"))
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	s.o.Metrics.ServeHTTP(w, r)
}
