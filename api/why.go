package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// ExplanationList is the explanations of all pods.
type ExplanationList struct {
	Items []Explanation `json:"items"`
}

// Why explains a pod, or the newest deleted one of its name for as long as its events are stored. For each run that failed, the
// explanation has the given number of log lines at most.
func (c *Client) Why(ctx context.Context, name string, lines int) (e Explanation, err error) {
	return e, c.call(ctx, http.MethodGet, podPath(name)+"/why", linesQuery(lines), nil, &e)
}

// WhyAll explains all pods, sorted by name.
func (c *Client) WhyAll(ctx context.Context, lines int) (list ExplanationList, err error) {
	return list, c.call(ctx, http.MethodGet, "/v1/why", linesQuery(lines), nil, &list)
}

func linesQuery(lines int) url.Values { return url.Values{"lines": {strconv.Itoa(lines)}} }
