package api

import (
	"context"
	"net/http"
)

// RedactRequest has texts that may contain values of secrets.
type RedactRequest struct {
	Texts []string `json:"texts"`
}

// Redacted is the response to a [RedactRequest].
type Redacted struct {
	Texts []string `json:"texts"` // in the same order
	// Unreadable are the names of pods whose secrets cannot be read now. Their values are not replaced.
	Unreadable []string `json:"unreadable,omitempty"`
}

// Redact replaces the values of the secrets of all pods in texts. It is for root: others could find out values by trial. The size of the
// texts is limited, see [Client.Create].
func (c *Client) Redact(ctx context.Context, texts []string) (r Redacted, err error) {
	return r, c.call(ctx, http.MethodPost, "/v1/redact", nil, RedactRequest{texts}, &r)
}

// RedactedPods is [Client.Pods] without the values of the secrets of each pod in the messages of its status. If the secrets of a pod cannot
// be read, termination messages are withheld.
func (c *Client) RedactedPods(ctx context.Context) (list PodList, err error) {
	return list, c.call(ctx, http.MethodGet, "/v1/pods", map[string][]string{"redact": {"true"}}, nil, &list)
}
