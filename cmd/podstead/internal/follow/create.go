package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/podstead/podstead/api"
)

// create creates the pods, up to the first that fails.
func (r *run) create(ctx context.Context, files []api.CreateRequest) error {
	for _, q := range files {
		q.Session, q.Keep = r.Session, r.Keep
		if err := r.createPod(ctx, q); err != nil {
			return fmt.Errorf("run %s: %w", q.File, err)
		}
	}
	return nil
}

// createPod creates a pod. If a pod of the same file is being stopped, it waits until that pod is deleted. It deletes a pod of an earlier
// run that was kept after it had terminated.
func (r *run) createPod(ctx context.Context, q api.CreateRequest) error {
	for {
		var created api.Created
		err := r.retry(ctx, func() (err error) {
			created, err = r.Daemon.Create(ctx, q)
			return err
		})
		if e, ok := errors.AsType[*api.Error](err); ok && (e.Stopping != "" || e.Terminated != "") {
			if err := r.replace(ctx, e); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		r.pods = append(r.pods, created.Pod)
		if created.TakenOver {
			r.Printer.Notice(fmt.Sprintf("pod %q was created by a podstead run that was killed, taking it over", created.Pod.Metadata.Name))
		}
		return nil
	}
}

// replace waits until the pod that has the name is deleted, until the timeout, or until a stop is requested, which counts as the first of
// [run.handleStops]. The pod may have lost its client, therefore replace requests the deletion.
func (r *run) replace(ctx context.Context, e *api.Error) error {
	if e.Stopping != "" {
		r.Printer.Notice(fmt.Sprintf("pod %q of the same file is stopping, waiting until it is deleted", e.Pod))
	} else {
		r.Printer.Notice(fmt.Sprintf("replacing pod %q of an earlier run, which has terminated", e.Pod))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel(nil)
	waiting.Go(func() {
		select {
		case <-r.Stops:
			r.stops++
			cancel(ErrStopped)
		case <-r.deadline:
			r.stops++
			cancel(r.timedOut())
		case <-ctx.Done():
		}
	})
	m := api.Metadata{Name: e.Pod, UID: cmp.Or(e.Stopping, e.Terminated)}
	err := r.retry(ctx, func() error {
		return r.Daemon.Stop(ctx, m.Name, api.StopOptions{UID: m.UID, Delete: true})
	})
	if err == nil {
		err = r.awaitDeletion(ctx, m)
	}
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return cause
	case isDeleted(err):
		return nil
	}
	return err
}
