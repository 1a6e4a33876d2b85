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

// Streams are what a run shows.
type Streams interface {
	Output(ctx context.Context, pod string, q api.OutputQuery) iter.Seq2[api.Line, error]
	Events(ctx context.Context, q *api.EventQuery) iter.Seq2[api.Event, error]
	Watch(ctx context.Context) iter.Seq2[api.PodChange, error]
}

// follow shows the pods until all have ended, and says whether one did not succeed.
func (r *run) follow(ctx context.Context) error {
	errs := make([]error, len(r.pods))
	var pods sync.WaitGroup
	for i := range r.pods {
		pods.Go(func() { errs[i] = r.followPod(ctx, r.pods[i].Metadata) })
	}
	pods.Wait()
	return errors.Join(errs...)
}

// followPod shows one pod until it has ended.
func (r *run) followPod(ctx context.Context, m api.Metadata) error {
	following, stop := context.WithCancel(ctx)
	events := &api.EventQuery{UID: m.UID, Follow: true}
	var told sync.WaitGroup
	told.Go(func() {
		_ = r.insist(following, func() error { return r.tell(following, events) })
	})
	err := r.copyOutput(ctx, m)
	stop()
	told.Wait()
	if err != nil {
		return err
	}
	var p api.Pod
	err = r.insist(ctx, func() (err error) {
		p, err = r.Daemon.Pod(ctx, m.Name)
		return err
	})
	gone := isNotFound(err) || (err == nil && p.Metadata.UID != m.UID)
	if err != nil && !gone {
		return err
	}
	events.Follow = false // what has happened until now
	if err := r.insist(ctx, func() error { return r.tell(ctx, events) }); err != nil {
		return err
	}
	if gone {
		return fmt.Errorf("pod %q is gone: %w", m.Name, ErrFailed)
	}
	r.Show.Ended(p)
	if p.Status.Phase == lifecycle.PhaseFailed {
		return fmt.Errorf("pod %q failed: %w", m.Name, ErrFailed)
	}
	return nil
}

// copyOutput shows what the containers write until the pod is at rest. After the loss of a daemon it goes on where it was.
func (r *run) copyOutput(ctx context.Context, m api.Metadata) error {
	q := api.OutputQuery{UID: m.UID, Follow: true, From: api.Positions{}}
	var once sync.Once
	err := r.insist(ctx, func() error {
		for l, err := range r.Daemon.Output(ctx, m.Name, q) {
			if errors.Is(err, api.ErrUnavailable) {
				once.Do(func() { r.Show.Note("the daemon was lost: it is started again") })
			}
			if err != nil {
				return err
			}
			q.From.Advance(l)
			r.Show.Line(m.Name, l)
		}
		return nil
	})
	if isNotFound(err) {
		return nil
	}
	return err
}

// tell shows events, and goes on behind those that were shown.
func (r *run) tell(ctx context.Context, q *api.EventQuery) error {
	for e, err := range r.Daemon.Events(ctx, q) {
		if err != nil {
			return err
		}
		q.Advance(e)
		r.Show.Event(e)
	}
	return nil
}
