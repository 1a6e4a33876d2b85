package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/coreos/go-systemd/v22/journal"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/journald"
	"github.com/podstead/podstead/supervisor/event"
)

// This file sends events to journald, with fields and with the message IDs of the catalog in packaging/podstead.catalog. It
// never blocks the daemon: events wait while journald does not accept them, and are counted if they do not fit.

const (
	identifier = "podstead"
	// closeTimeout bounds the time in which the rest of the events is sent.
	closeTimeout = time.Second
)

// entry returns the entry of an event.
func entry(e *event.Event) []byte {
	p := journal.PriInfo
	if e.Level == api.EventWarning {
		p = journal.PriWarning
	}
	b := journald.AppendPod(journald.AppendPriority(nil, p), e.Pod)
	for _, f := range [][2]string{
		{"SYSLOG_IDENTIFIER", identifier},
		{"SYSLOG_TIMESTAMP", e.Time.UTC().Format(time.RFC3339Nano)},
		{"MESSAGE_ID", e.Kind.MessageID()},
		{"POD_UID", e.UID},
		{"CONTAINER", e.Container},
		{"REASON", e.Reason},
		{"PODSTEAD_EVENT", string(e.Kind)},
		{"PODSTEAD_TYPE", string(e.Level)},
		{"PODSTEAD_SEQ", strconv.FormatUint(e.Seq, 10)},
	} {
		b = journald.AppendString(b, f[0], f[1])
	}
	if e.Cause > 0 {
		b = journald.AppendString(b, "PODSTEAD_CAUSE", strconv.FormatUint(e.Cause, 10))
	}
	if e.Container != "" {
		b = journald.AppendString(b, "PODSTEAD_ATTEMPT", strconv.Itoa(e.Attempt))
	}
	return journald.AppendString(b, "MESSAGE", subject(e)+e.Message)
}

// subject returns the beginning of a message, which names the pod and its container.
func subject(e *event.Event) string {
	switch {
	case e.Pod == "":
		return ""
	case e.Container == "":
		return e.Pod + ": "
	}
	return e.Pod + "/" + e.Container + ": "
}

// lost returns the entry that reports a number of events which the journal does not have.
func lost(n int64) []byte {
	b := journald.AppendPriority(nil, journal.PriWarning)
	b = journald.AppendString(b, "SYSLOG_IDENTIFIER", identifier)
	b = journald.AppendString(b, "PODSTEAD_DROPPED", strconv.FormatInt(n, 10))
	return journald.AppendString(b, "MESSAGE", fmt.Sprintf("%d events dropped, journald did not accept them in time", n))
}

// sendToJournal sends every event of this run until ctx ends, and then the remaining ones. The socket is empty except in tests.
func sendToJournal(ctx context.Context, r *event.Ring, socket string) {
	q := journald.NewQueue(journald.Options{Socket: socket, Notice: lost})
	defer q.Close(closeTimeout)
	r.Each(ctx, func(missed uint64) { q.Add(nil, lost(int64(missed))) }, func(e *event.Event) { q.Add(nil, entry(e)) })
}

// journalLog returns the event log of a daemon: journald, and with text also the log of the daemon.
func journalLog(text bool) func(context.Context, *event.Ring, *slog.Logger) {
	return func(ctx context.Context, r *event.Ring, log *slog.Logger) {
		if !text {
			sendToJournal(ctx, r, "")
			return
		}
		sent := make(chan struct{})
		go func() {
			sendToJournal(ctx, r, "")
			close(sent)
		}()
		r.Log(ctx, log)
		<-sent
	}
}
