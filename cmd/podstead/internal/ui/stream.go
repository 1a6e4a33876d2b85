package ui

import (
	"context"
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

// send sends a value, with escaped hidden characters. It blocks while the browser does not read, up to [writeTimeout].
func (s *stream) send(v any) error {
	if err := s.controller.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	text, err := escaped(v)
	if err != nil {
		return err
	}
	if _, err := s.w.Write(append(text, '\n')); err != nil {
		return err
	}
	return s.controller.Flush()
}

// lost is the value of a stream for the loss of the connection to the daemon.
type lost struct {
	Lost string `json:"lost"` // the error
}

// failed is the value of a stream for an error of a daemon that responds. The request is repeated.
type failed struct {
	Failed string `json:"failed"` // the error
}

// retryInterval is the interval of attempts to reach the daemon.
const retryInterval = 500 * time.Millisecond

// pause waits, and reports whether the context is still active.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

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
