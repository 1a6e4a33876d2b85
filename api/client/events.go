package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/podstead/podstead/api"
)

// EventQuery selects events. The zero value selects all events that are kept.
type EventQuery struct {
	Follow   bool
	Pod, UID string
	// Labels is a label selector, such as "app=web"; empty: any. The events of deleted pods match only if the daemon still knows their
	// labels.
	Labels string
	Since  time.Time
	// Redact removes the values of the secrets of each pod. If they cannot be read, or the pod was deleted, what its containers, hooks and
	// probes have written is withheld.
	Redact bool
	// Instance and After are the position of the last event that was read. [EventQuery.Advance] updates them.
	Instance string
	After    uint64
}

// Advance marks an event as read. The next call with the query continues after it.
func (q *EventQuery) Advance(e api.Event) {
	if e.Seq > 0 {
		q.After = e.Seq
	}
}

// Events yields events, oldest first. An event of kind [api.EventsMissed] stands for events that the daemon no longer keeps. Events sets
// the Instance of the query.
func (c *Client) Events(ctx context.Context, q *EventQuery) iter.Seq2[api.Event, error] {
	v := query(
		"follow", flag(q.Follow), "pod", q.Pod, "uid", q.UID, "labelSelector", q.Labels, "since", timestamp(q.Since),
		"redact", flag(q.Redact), "instance", q.Instance,
	)
	if q.Instance != "" {
		v.Set("after", strconv.FormatUint(q.After, 10))
	}
	return stream[api.Event](ctx, c, http.MethodGet, "/v1/events", v, nil, func(h http.Header) { q.Instance = h.Get(api.InstanceHeader) })
}
