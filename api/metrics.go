package api

import (
	"context"
	"io"
	"net/http"
)

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
