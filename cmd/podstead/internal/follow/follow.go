package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/podstead/podstead/api"
)

// streams are the streams of the API that a run prints.
type streams interface {
	Output(ctx context.Context, pod string, q api.OutputQuery) iter.Seq2[api.Line, error]
	Events(ctx context.Context, q *api.EventQuery) iter.Seq2[api.Event, error]
	Watch(ctx context.Context) iter.Seq2[api.PodChange, error]
}

// follow prints the output and the events of the pods until all have terminated. The error lists the pods that did not succeed, except
// those that failed after the user had requested their stop.
func (r *run) follow(ctx context.Context) error {
	errs := make([]error, len(r.pods))
	var pods sync.WaitGroup
	for i := range r.pods {
		pods.Go(func() { errs[i] = r.followPod(ctx, r.pods[i].Metadata) })
	}
	pods.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, ErrStopped) {
			return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, ErrStopped) })...)
		}
	}
	return cmp.Or(errs...)
}

// followPod prints the output and the events of a pod until it has terminated.
func (r *run) followPod(ctx context.Context, m api.Metadata) error {
	following, stop := context.WithCancel(ctx)
	events := &podEvents{query: api.EventQuery{UID: m.UID, Follow: true}}
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
		p, err = r.Daemon.PodWithUID(ctx, m.Name, m.UID)
		return err
	})
	deleted := isDeleted(err)
	if err != nil && !deleted {
		return err
	}
	events.query.Follow = false // the remaining events
	if err := r.retry(ctx, func() error { return r.printEvents(ctx, events) }); err != nil && !isDeleted(err) {
		return err
	}
	phase := p.Status.Phase
	if deleted {
		phase = events.phase // the daemon was restarted since the pod was deleted
	} else {
		r.Printer.Terminated(p)
	}
	switch {
	case phase == api.PhaseSucceeded:
		return nil
	case r.stopped.Load():
		return fmt.Errorf("pod %q: %w", m.Name, ErrStopped)
	case phase == api.PhaseFailed:
		return fmt.Errorf("pod %q %w", m.Name, ErrFailed)
	}
	return fmt.Errorf("pod %q %w: deleted by another command", m.Name, ErrFailed)
}

// podEvents is the position in the events of a pod.
type podEvents struct {
	query api.EventQuery
	phase api.Phase      // the terminal phase that was emitted; empty: none yet
	pulls map[string]int // failed pulls, by image
}

// hintAfter is the number of failed pulls after which a run prints a hint. The first failure may be temporary.
const hintAfter = 2

// pullFailed counts a failed pull, and prints a hint once for each image.
func (r *run) pullFailed(at *podEvents, e *api.Event) {
	image := e.Fields["image"]
	if at.pulls == nil {
		at.pulls = map[string]int{}
	}
	if at.pulls[image]++; at.pulls[image] != hintAfter {
		return
	}
	hint := fmt.Sprintf("check the name and the tag of image %q in the pod file, and whether the registry is reachable", image)
	_, archive, imported := strings.Cut(e.Fields["error"], "import image archive ")
	if archive, why, _ := strings.Cut(archive, ": "); imported && strings.HasSuffix(why, "no such file or directory") {
		hint = fmt.Sprintf("write the image archive %s, or correct imageArchives in the pod file: see docs/howto/make-an-image.md", archive)
	} else if imported {
		hint = "check the image archive " + archive
	} else if _, list, ok := strings.Cut(e.Fields["error"], "(imageArchives contain "); ok {
		hint = fmt.Sprintf("check image %q in the pod file: imageArchives contain %s", image, strings.TrimSuffix(list, ")"))
	}
	r.Printer.Hint(hint + "; Ctrl-C stops the pod")
}

// printOutput prints the output of the containers until the pod is at rest. After the connection to the daemon is lost, it continues
// with the next line.
func (r *run) printOutput(ctx context.Context, m api.Metadata) error {
	q := api.OutputQuery{UID: m.UID, Follow: true, From: api.Positions{}, Skipped: func(container string, s api.Skipped) {
		r.Printer.Notice(SkippedNotice(m.Name, container, s))
	}}
	err := r.retry(ctx, func() error {
		for l, err := range r.Daemon.Output(ctx, m.Name, q) {
			if err != nil {
				return err
			}
			q.From.Advance(l)
			r.Printer.Line(m.Name, l)
		}
		return nil
	})
	if isDeleted(err) {
		return nil
	}
	return err
}

// printEvents prints events. Called again with the same position, it continues with the next event.
func (r *run) printEvents(ctx context.Context, at *podEvents) error {
	for e, err := range r.Daemon.Events(ctx, &at.query) {
		if err != nil {
			return err
		}
		at.query.Advance(e)
		switch e.Kind { //nolint:exhaustive // other events are not a result
		case api.EventPodSucceeded:
			at.phase = api.PhaseSucceeded
		case api.EventPodFailed, api.EventPodStopped:
			at.phase = api.PhaseFailed
		}
		r.Printer.Event(e)
		switch e.Kind { //nolint:exhaustive // other events need no hint
		case api.EventImagePullFailed, api.EventImageNeverPull, api.EventImageInspectFailed:
			r.pullFailed(at, &e)
		}
	}
	return nil
}
