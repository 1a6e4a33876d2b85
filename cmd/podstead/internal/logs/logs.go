// Package logs prints the logs of pods. It follows them over restarts of containers and of the daemon, and requests nothing else.
package logs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/settle"
)

const (
	// lasting is the least time of a connection that was not lost at once.
	lasting = time.Second
	// giveUp is the time after which a connection that is always lost at once is an error. A daemon that stops takes less.
	giveUp = time.Minute
)

// Daemon returns the logs of pods.
type Daemon interface {
	// Output is the method of [client.Client].
	Output(ctx context.Context, pod string, q client.OutputQuery) iter.Seq2[api.Line, error]
	// Connect is the method of [settle.Daemon].
	Connect(ctx context.Context) error
}

// Options are the options of [Print]. All are required.
type Options struct {
	Daemon Daemon
	Pods   []api.Pod
	// Query selects the logs of each pod. Print sets its UID and its positions.
	Query client.OutputQuery
	// Line prints a line. With Follow, it must be safe for concurrent use.
	Line func(pod string, l api.Line) error
	// Skipped is called before the line that follows lines which were removed before they could be read: the log was rotated faster than it
	// was printed. With Follow, it must be safe for concurrent use.
	Skipped func(pod, container string, s api.Skipped)
	// Reconnected is called after the connection to the daemon was lost. It must be safe for concurrent use.
	Reconnected func()
}

// SkippedNotice reports lines that were removed before they could be shown.
func SkippedNotice(pod, container string, s api.Skipped) string {
	return fmt.Sprintf("%s/%s: %v were removed by log rotation before they could be shown", pod, container, s)
}

// Print prints the logs of one pod after the other or, if the query follows, of all pods at the same time until all have terminated or are
// deleted.
func Print(ctx context.Context, o Options) error {
	pods, ctx := errgroup.WithContext(ctx)
	if !o.Query.Follow {
		pods.SetLimit(1)
	}
	for i := range o.Pods {
		q := o.Query
		q.UID = o.Pods[i].Metadata.UID
		name := o.Pods[i].Metadata.Name
		q.Skipped = func(container string, s api.Skipped) { o.Skipped(name, container, s) }
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
func (o *Options) follow(ctx context.Context, pod string, q client.OutputQuery) error {
	q.From = api.Positions{}
	var failing time.Duration // during which no connection lasts
	for lost := false; ; lost = true {
		begun := time.Now()
		err := o.print(ctx, pod, q)
		if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusNotFound && lost {
			return nil // deleted while there was no connection
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
		if err := settle.Reconnect(ctx, o.Daemon.Connect); err != nil {
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
func (o *Options) print(ctx context.Context, pod string, q client.OutputQuery) error {
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
