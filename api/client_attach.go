package api

import (
	"context"
	"net/http"
)

// AttachOptions select a container and connect its streams.
type AttachOptions struct {
	Streams // Stdin requires a container with standard input, and TTY one with a terminal

	UID       string // of the pod; empty: any
	Container string // empty: the one in the annotation kubectl.kubernetes.io/default-container, otherwise the first
	// FromStart adds what the container has written before its first client, as far as it is kept: up to 64 KiB of a container with
	// standard input or a terminal.
	FromStart bool
	// Incomplete is called before any output is written if FromStart is set and the container has written more than is kept; nil: ignore.
	Incomplete func()
}

// Attach connects to the standard streams of a running container, from now on, and returns its exit code when it has exited and its output
// was written. When the context ends, the container keeps running.
//
// If the container is not running, the error is an [*Error] with the reason [ReasonNotRunning], and if the caller does not read the output
// in time, one with the reason [ReasonDisconnected]. Other errors are those of [Client.Exec].
func (c *Client) Attach(ctx context.Context, pod string, o AttachOptions) (code int, err error) {
	q := o.query()
	if o.UID != "" {
		q.Set("uid", o.UID)
	}
	if o.Container != "" {
		q.Set("container", o.Container)
	}
	if o.FromStart {
		q.Set("fromStart", "true")
	}
	status, err := c.session(ctx, podPath(pod)+"/attach", q, &o.Streams, func(h http.Header) {
		if o.Incomplete != nil && h.Get(IncompleteHeader) == "true" {
			o.Incomplete()
		}
	})
	if err != nil {
		return 0, err
	}
	return readStatus(status)
}
