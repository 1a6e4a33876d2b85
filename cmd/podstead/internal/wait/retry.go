package wait

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/guard"
)

// retryInterval is the interval of attempts to connect to the daemon.
const retryInterval = 200 * time.Millisecond

// Notices of clients that reconnect. They are printed once.
const (
	Reconnected   = "connection to the daemon lost, reconnected"
	DaemonStopped = "the daemon was stopped, its containers keep running; waiting until another command starts the daemon"
)

// Daemon reports changes of pods.
type Daemon interface {
	// Watch is the method of [api.Client].
	Watch(ctx context.Context) iter.Seq2[api.PodChange, error]
	// Connect returns when the daemon is ready, and starts it if it is not running. If the daemon was stopped on request, it returns an
	// [*api.StoppedError] until another daemon runs.
	Connect(ctx context.Context) error
}

// Until watches pods until done reports true for a change, also over restarts of the daemon. The function start is called before each
// watch, which lists all pods first, and returns done.
func Until(ctx context.Context, d Daemon, start func() (done func(*api.PodChange) bool)) error {
	return Retry(ctx, d.Connect, func() error {
		done := start()
		for change, err := range d.Watch(ctx) {
			if err != nil {
				return err
			}
			if done(&change) {
				return nil
			}
		}
		return errEnded
	})
}

// errEnded reports that a watch ended before the pods had their state. The daemon ends watches when it stops.
var errEnded = fmt.Errorf("%w: it ended the list of changes", api.ErrUnavailable)

// Retry repeats a call until the daemon responds or the context ends. After each interval it calls connect, see [Reconnect].
func Retry(ctx context.Context, connect func(context.Context) error, call func() error) error {
	for {
		err := call()
		if !errors.Is(err, api.ErrUnavailable) {
			return err
		}
		if err := Reconnect(ctx, connect); err != nil {
			return err
		}
	}
}

// Reconnect calls connect, the method of a [Daemon], after the retry interval. If the daemon was stopped on request, it waits for the next
// one, unless the daemon has left no pods.
func Reconnect(ctx context.Context, connect func(context.Context) error) error {
	for range guard.Every(ctx, retryInterval) {
		err := connect(ctx)
		if e, stopped := errors.AsType[*api.StoppedError](err); !stopped || e.Pods == 0 {
			return err
		}
	}
	return context.Cause(ctx)
}
