package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
	"github.com/podstead/podstead/internal/guard"
)

// touchInterval is the interval of heartbeats. The daemon stops the pods of a session that misses several of them.
const touchInterval = 5 * time.Second

// Daemon is the part of the API that a run uses. [*api.Client] implements it.
type Daemon interface {
	Create(ctx context.Context, q api.CreateRequest) (api.Created, error)
	PodWithUID(ctx context.Context, name, uid string) (api.Pod, error)
	Stop(ctx context.Context, name string, o client.StopOptions) error
	Touch(ctx context.Context, session string) (bool, error)
	EndSession(ctx context.Context, session string) error
	streams
}

// Printer prints a run. It must be safe for concurrent use.
type Printer interface {
	// Pods is called before Line and Event, and by an [Attendance] again when there are other pods or containers.
	Pods(pods []api.Pod)
	Line(pod string, l api.Line)
	Event(e api.Event)
	// Terminated is called with the final state of a pod.
	Terminated(p api.Pod)
	// Notice prints a message about the run itself.
	Notice(message string)
	// Hint prints advice.
	Hint(message string)
}

// Options are the options of a run. Daemon, Connect, Printer and Session are required.
type Options struct {
	Daemon Daemon
	// Connect returns when the daemon is ready, and starts it if it is not running. If the daemon was stopped on request, it returns an
	// [*api.StoppedError] until another daemon runs.
	Connect func(ctx context.Context) error
	Printer Printer
	Session string
	Keep    bool           // do not delete pods that have terminated
	Grace   *time.Duration // nil: the grace period of each pod
	// Stops receives requests to stop. The first one stops the pods, the second one kills them, and the third one returns immediately.
	Stops <-chan struct{}
	// Done, if it is not nil, is closed to stop the pods, unless a stop was requested before. It is no request of Stops.
	Done <-chan struct{}
	// Timeout is the time after which the pods are stopped; 0: none.
	Timeout time.Duration
	// Progress, if it is not nil, is called when a pod has changed, to show the progress of its image pulls and imports. It is called with
	// nil when the progress of no pod is known.
	Progress func(p *api.Pod)
}

// Errors of a run.
var (
	// ErrFailed reports that the phase of a pod is Failed, or that the pod was deleted before it terminated.
	ErrFailed = errors.New("failed")
	// ErrStopped reports that pods failed after the user had requested their stop, and no other pod did.
	ErrStopped = errors.New("stopped on request")
	// ErrTimeout reports that the pods were stopped after the timeout.
	ErrTimeout = errors.New("timed out")
	// errInterrupted reports that the run returned before its pods terminated. The daemon stops them when the session expires.
	errInterrupted = errors.New("interrupted, the daemon stops the remaining pods")
)

type run struct {
	Options
	pods []api.Pod
	// stopped reports that the user has requested the stop of the pods.
	stopped atomic.Bool
	// stops is the number of requests to stop, including the timeout. It belongs to create, then to handleStops.
	stops int
	// deadline ends when the timeout has passed; nil: none.
	deadline <-chan time.Time
	// lost and waiting print a notice once.
	lost, waiting sync.Once
}

// Run creates the pods and returns when all have terminated and are deleted. If one cannot be created, the others are stopped.
func Run(ctx context.Context, o Options, files []api.CreateRequest) error {
	r := &run{Options: o}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.Timeout > 0 {
		t := time.NewTimer(o.Timeout)
		defer t.Stop()
		r.deadline = t.C
	}
	var background sync.WaitGroup
	background.Go(func() { r.touch(ctx) })
	createErr := r.create(ctx, files)
	r.Printer.Pods(r.pods)

	background.Go(func() { r.showProgress(ctx) })
	var stopErr error
	background.Go(func() {
		if stopErr = r.handleStops(ctx); errors.Is(stopErr, errInterrupted) {
			cancel(stopErr)
		}
	})
	if createErr != nil {
		createErr = errors.Join(createErr, r.stop(ctx, client.StopOptions{Grace: r.Grace}))
	}
	podErr := r.follow(ctx)
	var removeErr error
	if !r.Keep && ctx.Err() == nil {
		removeErr = r.remove(ctx)
	}
	if ctx.Err() == nil {
		_ = r.Daemon.EndSession(ctx, r.Session) // otherwise the session times out
	} else {
		removeErr = nil // of the interruption
	}
	cancel(nil)
	background.Wait()
	err := cmp.Or(createErr, stopErr, podErr)
	if removeErr != nil && errors.Is(err, ErrStopped) {
		return removeErr // the user has not requested that pods remain
	}
	return errors.Join(err, removeErr)
}

// retry repeats a call until the daemon responds.
func (r *run) retry(ctx context.Context, call func() error) error {
	return wait.Retry(ctx, r.connect, call)
}

// connect connects to the daemon, and prints once that the connection was lost, and that the daemon was stopped.
func (r *run) connect(ctx context.Context) error {
	err := r.Connect(ctx)
	if e, stopped := errors.AsType[*api.StoppedError](err); stopped && e.Pods > 0 {
		r.waiting.Do(func() { r.Printer.Notice(wait.DaemonStopped) })
	} else if err == nil {
		r.lost.Do(func() { r.Printer.Notice(wait.Reconnected) })
	}
	return err
}

// touch sends heartbeats until the context ends.
func (r *run) touch(ctx context.Context) {
	for range guard.Every(ctx, touchInterval) {
		_, _ = r.Daemon.Touch(ctx, r.Session) // printOutput handles connection errors
	}
}

// handleStops stops the pods on request and after the timeout.
func (r *run) handleStops(ctx context.Context) error {
	timeout, done := r.deadline, r.Done
	var result error
	for {
		select {
		case <-done:
			if done = nil; r.stops == 0 {
				r.requestStop(ctx, r.Grace)
			}
			continue
		case <-timeout:
			timeout = nil
			result = r.timedOut()
			r.Printer.Notice(result.Error() + ", stopping the pods")
		case <-r.Stops:
			r.stopped.Store(true)
		case <-ctx.Done():
			return result
		}
		grace := r.Grace
		switch r.stops++; r.stops {
		case 1:
		case 2:
			grace = new(time.Duration)
		default:
			return errInterrupted
		}
		r.requestStop(ctx, grace)
	}
}

// requestStop stops the pods in the background.
func (r *run) requestStop(ctx context.Context, grace *time.Duration) {
	go func() {
		if err := r.stop(ctx, client.StopOptions{Grace: grace}); err != nil && ctx.Err() == nil {
			r.Printer.Notice("stop pods: " + err.Error())
		}
	}()
}

func (r *run) timedOut() error { return fmt.Errorf("%w after %v", ErrTimeout, r.Timeout) }

// stop requests the stop of all pods in parallel, because each response waits until the daemon has saved the pod's state.
func (r *run) stop(ctx context.Context, o client.StopOptions) error {
	errs := make([]error, len(r.pods))
	var stops sync.WaitGroup
	for i, p := range r.pods {
		o := o
		o.UID = p.Metadata.UID
		stops.Go(func() {
			if err := r.retry(ctx, func() error { return r.Daemon.Stop(ctx, p.Metadata.Name, o) }); !isDeleted(err) {
				errs[i] = err
			}
		})
	}
	stops.Wait()
	return errors.Join(errs...)
}

// remove deletes the pods, which have terminated, and waits until they are deleted. The error lists those that cannot be removed.
func (r *run) remove(ctx context.Context) error {
	if err := r.stop(ctx, client.StopOptions{Grace: new(time.Duration), Delete: true}); err != nil {
		return err
	}
	errs := make([]error, len(r.pods))
	for i, p := range r.pods {
		errs[i] = r.awaitDeletion(ctx, p.Metadata)
	}
	return errors.Join(errs...)
}

// awaitDeletion waits until a pod is deleted, or returns a [wait.RemainsError].
func (r *run) awaitDeletion(ctx context.Context, m api.Metadata) error {
	err := r.retry(ctx, func() error {
		exists := false
		for c, err := range r.Daemon.Watch(ctx) {
			if err != nil {
				return err
			}
			switch match := c.Object.Metadata.UID == m.UID; {
			case match && c.Type == api.Deleted, !exists && c.Type == api.Listed:
				return nil
			case match:
				exists = true
				if remains, ok := wait.Remains(&c.Object); ok {
					return &wait.RemainsError{Pod: m.Name, Remains: remains}
				}
			}
		}
		return ctx.Err()
	})
	if isDeleted(err) {
		return nil
	}
	return err
}

// isDeleted reports whether an error shows that the pod is deleted: it is not found, or the daemon was stopped and has left no pods.
func isDeleted(err error) bool {
	e, ok := errors.AsType[*api.Error](err)
	stopped, isStopped := errors.AsType[*api.StoppedError](err)
	return ok && e.Status == http.StatusNotFound || isStopped && stopped.Pods == 0
}

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
		return r.Daemon.Stop(ctx, m.Name, client.StopOptions{UID: m.UID, Delete: true})
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

// streams are the streams of the API that a run prints.
type streams interface {
	Output(ctx context.Context, pod string, q client.OutputQuery) iter.Seq2[api.Line, error]
	Events(ctx context.Context, q *client.EventQuery) iter.Seq2[api.Event, error]
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
	events := &podEvents{query: client.EventQuery{UID: m.UID, Follow: true}}
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
	query client.EventQuery
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

// printOutput prints the output of the containers until the pod is at rest.
func (r *run) printOutput(ctx context.Context, m api.Metadata) error {
	return r.printLines(ctx, m, r.output(m))
}

// output returns the query of the output of a pod from its beginning.
func (r *run) output(m api.Metadata) client.OutputQuery {
	return client.OutputQuery{UID: m.UID, Follow: true, From: api.Positions{}, Skipped: func(container string, s api.Skipped) {
		r.Printer.Notice(SkippedNotice(m.Name, container, s))
	}}
}

// printLines prints what a query selects until the pod is at rest. After the connection to the daemon is lost, it continues with the next
// line, and so does another call with the query.
func (r *run) printLines(ctx context.Context, m api.Metadata, q client.OutputQuery) error {
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

// showProgress calls Progress with the changes of the pods until the context ends.
func (r *run) showProgress(ctx context.Context) {
	if r.Progress == nil {
		return
	}
	defer r.Progress(nil)
	_ = r.retry(ctx, func() error { // printOutput handles connection errors
		defer r.Progress(nil)
		for c, err := range r.Daemon.Watch(ctx) {
			if err != nil {
				return err
			}
			of := func(p api.Pod) bool { return p.Metadata.UID == c.Object.Metadata.UID }
			if c.Type == api.Listed || !slices.ContainsFunc(r.pods, of) {
				continue
			}
			if c.Type == api.Deleted {
				c.Object.Status.Pulling = nil
			}
			r.Progress(&c.Object)
		}
		return ctx.Err()
	})
}
