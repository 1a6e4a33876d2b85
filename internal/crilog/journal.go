package crilog

import (
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/journal"

	"github.com/podstead/podstead/internal/journald"
)

// This file copies the log of a container to journald, with the fields of the journald drivers of Docker and Podman. It never
// blocks the container. It does not write the log itself, which keeps what journald does not accept.

// closeTimeout bounds the time in which the rest of the log is sent when the container has exited.
const closeTimeout = time.Second

// JournalFields has the fields of a container.
type JournalFields struct {
	ID, Image           string
	Pod, UID, Container string
	Restarts            string // of the container, in decimal
}

// Name returns CONTAINER_NAME, the name that Podman gives to a container of a pod.
func (c JournalFields) Name() string { return c.Pod + "-" + c.Container }

// shortID is the length of CONTAINER_ID, as in Docker and Podman.
const shortID = 12

// prefix returns the fields of all entries of a stream.
func (c JournalFields) prefix(p journal.Priority, stream string) []byte {
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

// journalSink sends the entries of a log. It implements [Sink].
type journalSink struct {
	queue    *journald.Queue
	prefixes map[Stream][]byte
}

// NewJournal returns the sink of a container. The socket is empty except in tests.
func NewJournal(c JournalFields, socket string) *journalSink {
	notice := func(dropped int64) []byte {
		b := journald.AppendString(c.prefix(journal.PriWarning, ""), "PODSTEAD_DROPPED", fmt.Sprint(dropped))
		return journald.AppendString(b, "MESSAGE", fmt.Sprintf("podstead: %d lines dropped, journald did not accept them in time", dropped))
	}
	return &journalSink{
		queue: journald.NewQueue(journald.Options{Socket: socket, Notice: notice}),
		prefixes: map[Stream][]byte{
			// The priorities of the drivers of Docker and Podman.
			Stdout: c.prefix(journal.PriInfo, string(Stdout)),
			Stderr: c.prefix(journal.PriErr, string(Stderr)),
		},
	}
}

// Entry implements [Sink].
func (s *journalSink) Entry(at time.Time, stream Stream, partial bool, text []byte) {
	b := make([]byte, 0, len(text)+128)
	b = append(at.UTC().AppendFormat(append(b, "SYSLOG_TIMESTAMP="...), time.RFC3339Nano), '\n')
	if partial {
		b = journald.AppendString(b, "CONTAINER_PARTIAL_MESSAGE", "true")
	}
	s.queue.Add(s.prefixes[stream], journald.Append(b, "MESSAGE", text))
}

// Close implements [Sink].
func (s *journalSink) Close() (lost int64) { return s.queue.Close(closeTimeout) }
