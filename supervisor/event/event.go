// Package event keeps events: the newest in memory ([Ring]), and those of each pod on the disk ([Journal]). It does not decide which events
// are emitted. Package api has the table of their kinds.
package event

import (
	"time"

	"github.com/podstead/podstead/api"
)

// Event is something that happened to a pod. Clients, the journal and the log receive each event once.
type Event struct {
	Seq   uint64    `json:"seq"`             // increases, also across restarts of the daemon, which continue at the next multiple of 1e9
	Cause uint64    `json:"cause,omitempty"` // the Seq of the event that led to this one; 0: none, or not known
	Time  time.Time `json:"time"`
	// Boot and Mono are the boot ID and the monotonic clock at that time. [Ring] corrects Time with them.
	Boot string        `json:"boot,omitempty"`
	Mono time.Duration `json:"mono,omitempty"`

	Level     api.EventLevel `json:"type"`
	Kind      api.EventKind  `json:"kind"`   // the row of the table
	Reason    string         `json:"reason"` // the kubelet's, where it has one
	Pod       string         `json:"pod"`
	UID       string         `json:"uid"`
	Container string         `json:"container,omitempty"`
	Attempt   int            `json:"attempt,omitempty"`
	Fields    Fields         `json:"fields,omitempty"`
	Message   string         `json:"message"`
}

// Fields are the values for the fields of an [api.EventEntry].
type Fields map[string]string

// KeepsDevice reports whether a device of a container was unplugged or plugged in that is neither restarted nor started for it.
func (e *Event) KeepsDevice() bool {
	return (e.Kind == api.EventDeviceRemoved || e.Kind == api.EventDeviceAdded) && e.Fields["restarts"] == ""
}

// New returns an event for a pod as a whole, without a UID and a cause.
func New(kind api.EventKind, at time.Time, pod string, f Fields) Event {
	entry := kind.Entry()
	return Event{
		Time: at.UTC(), Level: entry.Level, Kind: kind, Reason: entry.Reason, Pod: pod,
		Fields: f, Message: entry.Text(f),
	}
}
