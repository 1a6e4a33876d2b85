// Package foreground is `podstead run`: pods that live as long as a command does. It makes them, shows what they write and
// what happens to them, ends them when it is told to, and takes them away. A daemon that is lost meanwhile is started again,
// and what is shown goes on where it was.
package foreground

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/podstead/podstead/api"
)

const (
	// touchEvery is the time between two signs of life; the daemon takes a session for lost after a few that it missed.
	touchEvery = 5 * time.Second
	// retryPause is the time between two tries to reach a daemon.
	retryPause = 200 * time.Millisecond
)

// Daemon is what a run needs of the daemon; [*api.Client] is one.
type Daemon interface {
	Create(ctx context.Context, q api.CreateRequest) (api.Created, error)
	Pod(ctx context.Context, name string) (api.Pod, error)
	Stop(ctx context.Context, name string, o api.StopOptions) error
	Touch(ctx context.Context, session string) (bool, error)
	Streams
}

// Show is told what there is to show. Calls may be concurrent.
type Show interface {
	// Pods is told the pods before anything else of them.
	Pods(pods []api.Pod)
	Line(pod string, l api.Line)
	Event(e api.Event)
	// Ended is told how a pod was when it had ended.
	Ended(p api.Pod)
	// Note is told what a person may want to know about the run itself.
	Note(message string)
}

// Options are what a run is made of. All but Grace are needed.
type Options struct {
	Daemon Daemon
	// Connect returns when the daemon can be reached; it starts it again if it was lost.
	Connect func(ctx context.Context) error
	Show    Show
	Session string
	Keep    bool // what has ended is not taken away
	Grace   *time.Duration
	// Stops is sent a value for each wish to end: the first is graceful, the second by force, the third gives up.
	Stops <-chan struct{}
	// Timeout, unless it is 0, is when the pods are to end.
	Timeout time.Duration
}

// Errors that end a run.
var (
	// ErrFailed says that a pod ended as Failed, or is gone.
	ErrFailed = errors.New("not every pod succeeded")
	// ErrTimeout says that the pods did not end in time, and were ended.
	ErrTimeout = errors.New("timed out")
	// ErrGivenUp says that the run ended before its pods, which the daemon ends soon.
	ErrGivenUp = errors.New("given up: the daemon ends what still runs")
)

type run struct {
	Options
	pods []api.Pod
}

// Run makes the pods and returns when all have ended and are taken away. If one cannot be made, the others are ended.
func Run(ctx context.Context, o Options, files []api.CreateRequest) error {
	r := &run{Options: o}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	made := r.create(ctx, files)
	r.Show.Pods(r.pods)

	var helpers sync.WaitGroup
	helpers.Go(func() { r.touch(ctx) })
	var told error
	helpers.Go(func() {
		if told = r.heed(ctx); errors.Is(told, ErrGivenUp) {
			cancel(told)
		}
	})
	if made != nil {
		made = errors.Join(made, r.stop(ctx, api.StopOptions{Grace: r.Grace}))
	}
	ended := r.follow(ctx)
	if !r.Keep && ctx.Err() == nil {
		ended = errors.Join(ended, r.remove(ctx))
	}
	cancel(nil)
	helpers.Wait()
	return cmp.Or(made, told, ended)
}

// insist calls until the daemon has answered: one that is lost is started again.
func (r *run) insist(ctx context.Context, call func() error) error {
	for {
		err := call()
		if !errors.Is(err, api.ErrUnavailable) {
			return err
		}
		if err := r.reconnect(ctx); err != nil {
			return err
		}
	}
}

// reconnect waits a moment and then for the daemon.
func (r *run) reconnect(ctx context.Context) error {
	t := time.NewTimer(retryPause)
	defer t.Stop()
	select {
	case <-t.C:
		return r.Connect(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// create makes the pods, up to the first that cannot be made.
func (r *run) create(ctx context.Context, files []api.CreateRequest) error {
	for _, q := range files {
		q.Session, q.Keep = r.Session, r.Keep
		err := r.insist(ctx, func() error {
			made, err := r.Daemon.Create(ctx, q)
			if err == nil {
				r.pods = append(r.pods, made.Pod)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("run %s: %w", q.File, err)
		}
	}
	return nil
}

// touch gives signs of life.
func (r *run) touch(ctx context.Context) {
	t := time.NewTicker(touchEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			// What is wrong with the connection is dealt with where the output is read.
			_, _ = r.Daemon.Touch(ctx, r.Session)
		case <-ctx.Done():
			return
		}
	}
}

// heed ends the pods when it is told to, or when their time is over.
func (r *run) heed(ctx context.Context) error {
	var late <-chan time.Time
	if r.Timeout > 0 {
		t := time.NewTimer(r.Timeout)
		defer t.Stop()
		late = t.C
	}
	var result error
	for wishes := 0; ; {
		select {
		case <-late:
			late = nil
			result = fmt.Errorf("%w after %v", ErrTimeout, r.Timeout)
			r.Show.Note(result.Error() + ": the pods are ended")
		case <-r.Stops:
		case <-ctx.Done():
			return result
		}
		grace := r.Grace
		switch wishes++; wishes {
		case 1:
		case 2:
			now := time.Duration(0)
			grace = &now
		default:
			return ErrGivenUp
		}
		go func() {
			if err := r.stop(ctx, api.StopOptions{Grace: grace}); err != nil && ctx.Err() == nil {
				r.Show.Note("stop: " + err.Error())
			}
		}()
	}
}

// stop asks all pods to end, at once: an answer waits for the disk.
func (r *run) stop(ctx context.Context, o api.StopOptions) error {
	errs := make([]error, len(r.pods))
	var stops sync.WaitGroup
	for i, p := range r.pods {
		o := o
		o.UID = p.Metadata.UID
		stops.Go(func() {
			if err := r.insist(ctx, func() error { return r.Daemon.Stop(ctx, p.Metadata.Name, o) }); !isNotFound(err) {
				errs[i] = err
			}
		})
	}
	stops.Wait()
	return errors.Join(errs...)
}

// remove has everything of the pods taken away, and waits for that.
func (r *run) remove(ctx context.Context) error {
	now := time.Duration(0)
	if err := r.stop(ctx, api.StopOptions{Grace: &now, Delete: true}); err != nil { // nothing runs any more
		return err
	}
	for _, p := range r.pods {
		if err := r.awaitGone(ctx, p.Metadata); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) awaitGone(ctx context.Context, m api.Metadata) error {
	return r.insist(ctx, func() error {
		there := false
		for c, err := range r.Daemon.Watch(ctx) {
			if err != nil {
				return err
			}
			switch ours := c.Object.Metadata.UID == m.UID; {
			case ours && c.Type == api.Deleted, !there && c.Type == api.Listed:
				return nil
			case ours:
				there = true
			}
		}
		return ctx.Err()
	})
}

func isNotFound(err error) bool {
	e, answered := errors.AsType[*api.Error](err)
	return answered && e.Status == http.StatusNotFound
}
