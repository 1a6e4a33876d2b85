package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
	"github.com/podstead/podstead/internal/view"
)

const (
	// lasting is the least time of a connection that was not lost at once.
	lasting = time.Second
	// giveUp is the time after which a connection that is always lost at once is an error. A daemon that stops takes less.
	giveUp = time.Minute
)

// LogDaemon returns the logs of pods.
type LogDaemon interface {
	// Output is the method of [api.Client].
	Output(ctx context.Context, pod string, q client.OutputQuery) iter.Seq2[api.Line, error]
	// Connect is the method of [wait.Daemon].
	Connect(ctx context.Context) error
}

// LogOptions are the options of [Logs]. All are required, but SearchStopped only for a search without Follow.
type LogOptions struct {
	Daemon LogDaemon
	Pods   []api.Pod
	// Query selects the logs of each pod. Logs sets its UID and its positions.
	Query client.OutputQuery
	// Line prints a line. With Follow, it must be safe for concurrent use.
	Line func(pod string, l api.Line) error
	// Skipped is called before the line that follows lines which were removed before they could be read: the log was rotated faster than it
	// was printed. With Follow, it must be safe for concurrent use.
	Skipped func(pod, container string, s api.Skipped)
	// SearchStopped is called after the last line of a container if the search in it has reached a bound.
	SearchStopped func(pod string, s api.SearchStopped)
	// Reconnected is called after the connection to the daemon was lost. It must be safe for concurrent use.
	Reconnected func()
}

// SkippedNotice reports lines that were removed before they could be shown.
func SkippedNotice(pod, container string, s api.Skipped) string {
	return fmt.Sprintf("%s/%s: %v were removed by log rotation before they could be shown", pod, container, s)
}

// SearchStoppedNotice reports that the search in a container has reached a bound, and where, in the time zone.
func SearchStoppedNotice(pod string, s api.SearchStopped, zone *time.Location) string {
	rest := "the lines after it are not searched, their times are not later than that of the first line"
	if !s.From.IsZero() {
		rest = "lines from " + s.From.In(zone).Format(time.RFC3339) + " on are not searched"
	}
	return fmt.Sprintf("%s/%s: the search stopped after %s (%.0fs), %s", pod, s.Container, view.Size(s.Bytes), s.Seconds, rest)
}

// WriteLine writes a line of a log as its container wrote it, to the stream to which it did.
func WriteLine(stdout, stderr io.Writer, l *api.Line) error {
	out, text := stdout, []byte(l.Line)
	if l.Stream == "stderr" {
		out = stderr
	}
	if l.Raw != nil {
		text = l.Raw
	}
	_, err := out.Write(append(text, '\n'))
	return err
}

// Logs prints the logs of one pod after the other or, if the query follows, of all pods at the same time until all have terminated or are
// deleted.
func Logs(ctx context.Context, o LogOptions) error {
	pods, ctx := errgroup.WithContext(ctx)
	if !o.Query.Follow {
		pods.SetLimit(1)
	}
	for i := range o.Pods {
		q := o.Query
		q.UID = o.Pods[i].Metadata.UID
		name := o.Pods[i].Metadata.Name
		q.Skipped = func(container string, s api.Skipped) { o.Skipped(name, container, s) }
		q.SearchStopped = func(s api.SearchStopped) { o.SearchStopped(name, s) }
		pods.Go(func() error {
			if ctx.Err() != nil {
				return nil // another pod has failed
			}
			if q.Follow {
				return o.follow(ctx, name, q)
			}
			return o.print(ctx, name, q)
		})
	}
	return pods.Wait()
}

// follow prints the logs of a pod. After the connection to the daemon is lost, it continues with the next line.
func (o *LogOptions) follow(ctx context.Context, pod string, q client.OutputQuery) error {
	q.From = api.Positions{}
	var failing time.Duration // during which no connection lasts
	for lost := false; ; lost = true {
		begun := time.Now()
		err := o.print(ctx, pod, q)
		if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusNotFound && (lost || len(q.Containers) == 0) {
			return nil // deleted since it was listed, or while there was no connection; otherwise the container may not exist
		}
		if !errors.Is(err, api.ErrUnavailable) {
			return err
		}
		lostAt := time.Now()
		if failing += lostAt.Sub(begun); lostAt.Sub(begun) >= lasting {
			failing = 0
		}
		if failing >= giveUp {
			return err // not the connection, but the logs cause it
		}
		if err := wait.Reconnect(ctx, o.Daemon.Connect); err != nil {
			if e, stopped := errors.AsType[*api.StoppedError](err); stopped && e.Pods == 0 {
				return nil // the daemon has deleted all pods
			}
			return err
		}
		failing += min(time.Since(lostAt), lasting) // without an outage, however long it was
		o.Reconnected()
	}
}

// print prints the lines after the positions of the query, and updates the positions.
func (o *LogOptions) print(ctx context.Context, pod string, q client.OutputQuery) error {
	for l, err := range o.Daemon.Output(ctx, pod, q) {
		if err != nil {
			return err
		}
		if q.From != nil {
			q.From.Advance(l)
		}
		if err := o.Line(pod, l); err != nil {
			return err
		}
	}
	return nil
}
