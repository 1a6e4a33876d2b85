package follow

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
)

// idleRetry is the interval of attempts to follow the output of a pod that runs, but has none.
const idleRetry = time.Second

// Attendance prints what pods write and report, of pods that other requests create, change, stop and start. The pods need not exist, and
// those that terminate may start again.
type Attendance struct {
	run      run
	since    time.Time
	has      func(pod string) bool
	cancel   context.CancelFunc
	watching sync.WaitGroup
	ended    chan struct{} // closed when no more changes of pods are received
	err      error         // why; it is set before

	mu   sync.Mutex
	pods []*attended // in the order in which they were seen
}

// attended is a pod.
type attended struct {
	name, uid string
	// changed has a value if the pod has changed since it was last received.
	changed chan struct{}
	// done is closed when the pod was deleted, and everything of it was printed.
	done chan struct{}

	mu  sync.Mutex
	pod api.Pod
	// deleted reports that the pod does not exist any more.
	deleted bool
}

// Attend prints the output and the events, from a time on, of the pods whose names has reports, until the attendance is closed. Of the
// options, it uses Daemon, Connect, Printer and Progress. The function must be safe for concurrent use. A pod is noticed at its next
// change.
func Attend(ctx context.Context, o Options, since time.Time, has func(pod string) bool) *Attendance {
	ctx, cancel := context.WithCancel(ctx)
	a := &Attendance{run: run{Options: o}, since: since, has: has, cancel: cancel, ended: make(chan struct{})}
	a.watching.Go(func() { a.watch(ctx) })
	return a
}

// Ended returns a channel that is closed when the attendance is over, see [Attendance.Err].
func (a *Attendance) Ended() <-chan struct{} { return a.ended }

// Err returns why the attendance is over: the error of Connect, such as an [*api.StoppedError] of a daemon that has deleted the pods, or
// that of the context.
func (a *Attendance) Err() error {
	<-a.ended
	return a.err
}

// Close ends the attendance.
func (a *Attendance) Close() {
	a.cancel()
	a.watching.Wait()
}

// Finish waits until everything of pods, which were deleted, is printed, or until the context ends.
func (a *Attendance) Finish(ctx context.Context, uids []string) {
	a.mu.Lock()
	pods := slices.Clone(a.pods)
	a.mu.Unlock()
	for _, p := range pods {
		if !slices.Contains(uids, p.uid) {
			continue
		}
		select {
		case <-p.done:
		case <-ctx.Done():
			return
		}
	}
}

// watch follows the changes of pods until the context ends.
func (a *Attendance) watch(ctx context.Context) {
	defer close(a.ended)
	defer func() {
		if a.run.Progress != nil {
			a.run.Progress(nil)
		}
	}()
	a.err = wait.Until(ctx, watched{a.run.Daemon, a.run.connect}, func() func(*api.PodChange) bool {
		listed := map[string]bool{} // nil after the list
		return func(c *api.PodChange) bool {
			switch {
			case c.Type == api.Listed:
				a.gone(listed)
				listed = nil
			case c.Object.Metadata.UID != "" && a.has(c.Object.Metadata.Name):
				if listed != nil {
					listed[c.Object.Metadata.UID] = true
				}
				a.update(ctx, c)
			}
			return false
		}
	})
}

// watched is the [wait.Daemon] of an attendance.
type watched struct {
	streams
	connect func(context.Context) error
}

// Connect implements [wait.Daemon].
func (w watched) Connect(ctx context.Context) error { return w.connect(ctx) }

// update notes a change of a pod, and follows a new one.
func (a *Attendance) update(ctx context.Context, c *api.PodChange) {
	p := &c.Object
	a.mu.Lock()
	i := slices.IndexFunc(a.pods, func(p *attended) bool { return p.uid == c.Object.Metadata.UID })
	added := i < 0 && c.Type != api.Deleted
	if added {
		i = len(a.pods)
		a.pods = append(a.pods, &attended{
			name: p.Metadata.Name, uid: p.Metadata.UID, changed: make(chan struct{}, 1), done: make(chan struct{}),
		})
	}
	pods := a.pods
	a.mu.Unlock()
	if i < 0 {
		return
	}
	at := pods[i]
	containers := at.set(p, c.Type == api.Deleted)
	if added || containers {
		a.run.Printer.Pods(objects(pods))
	}
	if added {
		a.watching.Go(func() { a.follow(ctx, at) })
	}
	if a.run.Progress != nil {
		a.run.Progress(p)
	}
}

// objects returns the newest state of each pod. Of pods of one name, only the newest one counts.
func objects(pods []*attended) (list []api.Pod) {
	for _, at := range pods {
		p, _ := at.state()
		same := func(other api.Pod) bool { return other.Metadata.Name == at.name }
		if i := slices.IndexFunc(list, same); i >= 0 {
			list[i] = p
		} else {
			list = append(list, p)
		}
	}
	return list
}

// gone notes that pods that are not in a list were deleted, while there was no connection.
func (a *Attendance) gone(listed map[string]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, at := range a.pods {
		if !listed[at.uid] {
			p, _ := at.state()
			at.set(&p, true)
		}
	}
}

// set stores the newest state. It reports whether the pod has other containers than before.
func (at *attended) set(p *api.Pod, deleted bool) (containers bool) {
	at.mu.Lock()
	defer at.mu.Unlock()
	if deleted {
		p.Status.Pulling = nil
	}
	containers = !slices.Equal(containerNames(&at.pod), containerNames(p))
	at.pod, at.deleted = *p, at.deleted || deleted
	select {
	case at.changed <- struct{}{}:
	default:
	}
	return containers
}

func (at *attended) state() (p api.Pod, deleted bool) {
	at.mu.Lock()
	defer at.mu.Unlock()
	return at.pod, at.deleted
}

func containerNames(p *api.Pod) (names []string) {
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers, p.Spec.EphemeralContainers) {
		names = append(names, c.Name)
	}
	return names
}

// follow prints the output and the events of a pod until it is deleted or the context ends.
func (a *Attendance) follow(ctx context.Context, at *attended) {
	defer close(at.done)
	following, stop := context.WithCancel(ctx)
	events := &podEvents{query: client.EventQuery{UID: at.uid, Since: a.since, Follow: true}}
	var printing sync.WaitGroup
	printing.Go(func() {
		_ = a.run.retry(following, func() error { return a.run.printEvents(following, events) })
	})
	a.printOutput(ctx, at)
	stop()
	printing.Wait()
	events.query.Follow = false // the remaining events
	_ = a.run.retry(ctx, func() error { return a.run.printEvents(ctx, events) })
}

// printOutput prints the output of a pod, each time it runs, until it is deleted or the context ends.
func (a *Attendance) printOutput(ctx context.Context, at *attended) {
	m := api.Metadata{Name: at.name, UID: at.uid}
	q := a.run.output(m)
	q.Since = a.since
	for ctx.Err() == nil {
		p, deleted := at.state()
		atRest := p.Status.AtRest || p.Status.Phase.Terminal()
		_ = a.run.printLines(ctx, m, q) // without an error at rest, which a pod can have reached meanwhile, or when the pod is deleted
		if deleted {
			return
		}
		again := time.NewTimer(idleRetry)
		if atRest {
			again.Stop() // otherwise the state may be older than the output
		}
		select {
		case <-at.changed:
		case <-again.C:
		case <-ctx.Done():
		}
		again.Stop()
	}
}
