package foreground

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Streams are the streams of the API that a run prints.
type Streams interface {
	Output(ctx context.Context, pod string, q api.OutputQuery) iter.Seq2[api.Line, error]
	Events(ctx context.Context, q *api.EventQuery) iter.Seq2[api.Event, error]
	Watch(ctx context.Context) iter.Seq2[api.PodChange, error]
}

// follow prints the output and the events of the pods until all have terminated. The error lists the pods that did not succeed.
func (r *run) follow(ctx context.Context) error {
	errs := make([]error, len(r.pods))
	var pods sync.WaitGroup
	for i := range r.pods {
		pods.Go(func() { errs[i] = r.followPod(ctx, r.pods[i].Metadata) })
	}
	pods.Wait()
	return errors.Join(errs...)
}

// followPod prints the output and the events of a pod until it has terminated.
func (r *run) followPod(ctx context.Context, m api.Metadata) error {
	following, stop := context.WithCancel(ctx)
	events := &api.EventQuery{UID: m.UID, Follow: true}
	var printing sync.WaitGroup
	printing.Go(func() {
		_ = r.retry(following, func() error { return r.printEvents(following, events) })
	})
	err := r.printOutput(ctx, m)
	stop()
	printing.Wait()
	if err != nil {
		return err
	}
	var p api.Pod
	err = r.retry(ctx, func() (err error) {
		p, err = r.Daemon.Pod(ctx, m.Name)
		return err
	})
	deleted := isNotFound(err) || (err == nil && p.Metadata.UID != m.UID)
	if err != nil && !deleted {
		return err
	}
	events.Follow = false // the remaining events
	if err := r.retry(ctx, func() error { return r.printEvents(ctx, events) }); err != nil {
		return err
	}
	if deleted {
		return fmt.Errorf("pod %q %w: deleted by another command", m.Name, ErrFailed)
	}
	r.Printer.Terminated(p)
	if p.Status.Phase == lifecycle.PhaseFailed {
		return fmt.Errorf("pod %q %w", m.Name, ErrFailed)
	}
	return nil
}

// printOutput prints the output of the containers until the pod is at rest. After the connection to the daemon is lost, it continues
// with the next line.
func (r *run) printOutput(ctx context.Context, m api.Metadata) error {
	q := api.OutputQuery{UID: m.UID, Follow: true, From: api.Positions{}}
	var once sync.Once
	err := r.retry(ctx, func() error {
		for l, err := range r.Daemon.Output(ctx, m.Name, q) {
			if errors.Is(err, api.ErrUnavailable) {
				once.Do(func() { r.Printer.Notice("connection to the daemon lost, reconnecting") })
			}
			if err != nil {
				return err
			}
			q.From.Advance(l)
			r.Printer.Line(m.Name, l)
		}
		return nil
	})
	if isNotFound(err) {
		return nil
	}
	return err
}

// printEvents prints events. Called again with the same query, it continues with the next event.
func (r *run) printEvents(ctx context.Context, q *api.EventQuery) error {
	for e, err := range r.Daemon.Events(ctx, q) {
		if err != nil {
			return err
		}
		q.Advance(e)
		r.Printer.Event(e)
	}
	return nil
}
