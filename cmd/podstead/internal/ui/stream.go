package ui

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/podstead/podstead/api/client"
)

// stream is a response of JSON values, one in each line.
type stream struct {
	w          http.ResponseWriter
	controller *http.ResponseController
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "application/x-ndjson")
	return &stream{w, http.NewResponseController(w)}
}

// send sends a value. It blocks while the browser does not read, up to [writeTimeout].
func (s *stream) send(v any) error {
	if err := s.controller.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if err := json.NewEncoder(s.w).Encode(v); err != nil {
		return err
	}
	return s.controller.Flush()
}

// lost is the value of a stream for the loss of the connection to the daemon.
type lost struct {
	Lost string `json:"lost"` // the error
}

// retryInterval is the interval of attempts to reach the daemon.
const retryInterval = 500 * time.Millisecond

// reach returns when the daemon responds or the context ends. It starts no daemon.
func reach(ctx context.Context, c *client.Client) error {
	tick := time.NewTicker(retryInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if _, err := c.Version(ctx); err == nil {
			return nil
		}
	}
}
