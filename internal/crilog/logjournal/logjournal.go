// Package logjournal copies the log of a container to journald, with the fields of the journald drivers of Docker and Podman. It never
// blocks the container. It does not write the log itself, which keeps what journald does not accept.
package logjournal

import (
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/journal"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/internal/journald"
)

// closeTimeout bounds the time in which the rest of the log is sent when the container has exited.
const closeTimeout = time.Second

// Container has the fields of a container.
type Container struct {
	ID, Image           string
	Pod, UID, Container string
	Restarts            string // of the container, in decimal
}

// Name returns CONTAINER_NAME, the name that Podman gives to a container of a pod.
func (c Container) Name() string { return c.Pod + "-" + c.Container }

// shortID is the length of CONTAINER_ID, as in Docker and Podman.
const shortID = 12

// prefix returns the fields of all entries of a stream.
func (c Container) prefix(p journal.Priority, stream string) []byte {
	b := journald.AppendPod(journald.AppendPriority(nil, p), c.Pod)
	for _, f := range [][2]string{
		{"SYSLOG_IDENTIFIER", c.Name()},
		{"CONTAINER_NAME", c.Name()},
		{"CONTAINER_TAG", c.Name()},
		{"CONTAINER_ID", c.ID[:min(len(c.ID), shortID)]},
		{"CONTAINER_ID_FULL", c.ID},
		{"IMAGE_NAME", c.Image},
		{"POD_UID", c.UID},
		{"CONTAINER", c.Container},
		{"PODSTEAD_RESTARTS", c.Restarts},
		{"PODSTEAD_STREAM", stream},
	} {
		b = journald.AppendString(b, f[0], f[1])
	}
	return b
}

// Sink sends the entries of a log. It implements [crilog.Sink].
type Sink struct {
	queue    *journald.Queue
	prefixes map[crilog.Stream][]byte
}

// New returns the sink of a container. The socket is empty except in tests.
func New(c Container, socket string) *Sink {
	notice := func(dropped int64) []byte {
		b := journald.AppendString(c.prefix(journal.PriWarning, ""), "PODSTEAD_DROPPED", fmt.Sprint(dropped))
		return journald.AppendString(b, "MESSAGE", fmt.Sprintf("podstead: %d lines dropped, journald did not accept them in time", dropped))
	}
	return &Sink{
		queue: journald.NewQueue(journald.Options{Socket: socket, Notice: notice}),
		prefixes: map[crilog.Stream][]byte{
			// The priorities of the drivers of Docker and Podman.
			crilog.Stdout: c.prefix(journal.PriInfo, string(crilog.Stdout)),
			crilog.Stderr: c.prefix(journal.PriErr, string(crilog.Stderr)),
		},
	}
}

// Entry implements [crilog.Sink].
func (s *Sink) Entry(at time.Time, stream crilog.Stream, partial bool, text []byte) {
	b := make([]byte, 0, len(text)+128)
	b = append(at.UTC().AppendFormat(append(b, "SYSLOG_TIMESTAMP="...), time.RFC3339Nano), '\n')
	if partial {
		b = journald.AppendString(b, "CONTAINER_PARTIAL_MESSAGE", "true")
	}
	s.queue.Add(s.prefixes[stream], journald.Append(b, "MESSAGE", text))
}

// Close implements [crilog.Sink].
func (s *Sink) Close() (lost int64) { return s.queue.Close(closeTimeout) }
