package server

import (
	"net/http"
	"time"
)

// metricsType is the media type of metrics, unless the client accepts others of Prometheus.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// metrics serves the metrics. Figures that cannot be read in time are missing.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	if s.o.Metrics == nil {
		return failure(http.StatusNotImplemented, "the daemon has no metrics")
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	s.o.Metrics.ServeHTTP(w, r)
	return nil
}
