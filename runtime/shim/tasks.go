package shim

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	eventsapi "github.com/containerd/containerd/api/events"
	api "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/runc"
	"github.com/containerd/containerd/v2/core/events"
	containerdshim "github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/containerd/v2/pkg/shutdown"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/log"
	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/emptypb"
)

const (
	// drainTimeout bounds how long the deletion of a container waits for the end of its log: a disk may hang.
	drainTimeout = 5 * time.Second

	// runtimeTimeout bounds one run of the OCI runtime. It is no hurry: what is interrupted leaves half a container.
	runtimeTimeout = 2 * time.Minute
)

// tasks is containerd's task service for runc with what is ours around it.
type tasks struct {
	api.TTRPCTaskService
	sandbox *sandbox
	end     shutdown.Service
	born    time.Time

	oom oomLedger

	mu          sync.Mutex
	containers  map[string]*container
	running     int  // containers that were created and have not exited yet
	terminating bool // SIGTERM came, or the pause ended: end with the last running container
	pause       sandboxProcess
}

// container is a container that was not deleted by request yet.
type container struct {
	bundle  string
	logs    *logs
	created chan struct{} // closed when its creation is over
	orphans bool          // its processes outlive its first one: that is not the first of a PID namespace
	memory  *memory       // nil until then, and where the machine accounts for none
}

// newTasks returns a service that is complete when it has its TTRPCTaskService, whose events go through watch.
func newTasks(end shutdown.Service) *tasks {
	t := &tasks{end: end, born: time.Now(), containers: map[string]*container{}}
	t.sandbox = newSandbox(t)
	return t
}

func (t *tasks) register(s *ttrpc.Server) {
	api.RegisterTTRPCTaskService(s, t)
	t.sandbox.register(s)
}

// uninterrupted is a context for the OCI runtime that does not end with its request. A daemon that is killed takes its
// requests with it, but a runtime killed in the middle leaves processes and cgroups that nobody knows of.
func uninterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), runtimeTimeout)
}

// Create creates a container, and takes its output where it goes to one of our logs.
func (t *tasks) Create(ctx context.Context, r *api.CreateTaskRequest) (*api.CreateTaskResponse, error) {
	ctx, cancel := uninterrupted(ctx)
	defer cancel()
	if err := completeProcess(r.Bundle); err != nil {
		return nil, err
	}
	l, err := openLogs(ctx, r)
	if err != nil {
		return nil, err
	}
	c := &container{bundle: r.Bundle, logs: l, created: make(chan struct{}), orphans: runc.ShouldKillAllOnExit(ctx, r.Bundle)}
	defer close(c.created)
	t.mu.Lock()
	t.containers[r.ID] = c
	t.mu.Unlock()

	resp, err := t.TTRPCTaskService.Create(ctx, r)
	l.created()
	if err != nil {
		t.forget(r.ID)
		l.drain(drainTimeout)
		return nil, err
	}
	watched, err := t.oom.watch(int(resp.Pid))
	if err != nil {
		log.G(ctx).WithError(err).Error("an OOM kill will not be noticed")
	}
	t.mu.Lock()
	c.memory = watched
	t.running++
	t.mu.Unlock()
	return resp, nil
}

// settled waits for the end of a container's creation: a daemon that was killed in the middle of it comes back and
// asks for a container that is just being made.
func (t *tasks) settled(ctx context.Context, id string) *container {
	t.mu.Lock()
	c := t.containers[id]
	t.mu.Unlock()
	if c == nil {
		return nil
	}
	select {
	case <-c.created:
	case <-ctx.Done():
	}
	return c
}

func (t *tasks) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.containers, id)
}

// Start starts a container or an exec.
func (t *tasks) Start(ctx context.Context, r *api.StartRequest) (*api.StartResponse, error) {
	ctx, cancel := uninterrupted(ctx)
	defer cancel()
	if r.ExecID != "" {
		defer t.holdOutput(ctx, r)()
		return t.TTRPCTaskService.Start(ctx, r)
	}
	resp, err := t.TTRPCTaskService.Start(ctx, r)
	if err == nil && t.ended(ctx, r.ID) {
		t.endOrphans(ctx, r.ID)
	}
	return resp, err
}

// ended reports whether the first process of a container has ended.
func (t *tasks) ended(ctx context.Context, id string) bool {
	state, err := t.State(ctx, &api.StateRequest{ID: id})
	return err == nil && state.Status == task.Status_STOPPED
}

// endOrphans kills what the first process of a container has left behind where nothing else does: in the machine's PID namespace,
// or the pod's. The inner service does so too, but not for one that has ended before its start was over.
func (t *tasks) endOrphans(ctx context.Context, id string) {
	t.mu.Lock()
	c := t.containers[id]
	t.mu.Unlock()
	if c == nil || !c.orphans {
		return
	}
	_, err := t.TTRPCTaskService.Kill(ctx, &api.KillRequest{ID: id, Signal: uint32(unix.SIGKILL), All: true})
	if err = errgrpc.ToNative(err); err != nil && !errdefs.IsNotFound(err) {
		log.G(ctx).WithError(err).WithField("container", id).Warn("end what a container has left behind")
	}
}

// watch returns p, watched for the exits of containers. The inner service publishes an exit only once its status is on
// disk, so the shim may end then.
func (t *tasks) watch(p containerdshim.Publisher) containerdshim.Publisher { return watched{p, t} }

type watched struct {
	containerdshim.Publisher
	tasks *tasks
}

// Publish implements containerd's publisher.
func (w watched) Publish(ctx context.Context, topic string, e events.Event) error {
	if w.tasks.private(e) {
		return nil
	}
	exit, isExit := e.(*eventsapi.TaskExit)
	isExit = isExit && exit.ID == exit.ContainerID
	if isExit {
		w.tasks.recordOOM(ctx, exit.ContainerID, exit.ExitStatus)
	}
	if oom, is := e.(*eventsapi.TaskOOM); is {
		w.tasks.heardOOM(oom.ContainerID)
	}
	err := w.Publisher.Publish(ctx, topic, e)
	if isExit {
		w.tasks.exited()
	}
	return err
}

// Wait waits for the end of a container or an exec. When it returns, it is written down whether memory was the cause.
func (t *tasks) Wait(ctx context.Context, r *api.WaitRequest) (*api.WaitResponse, error) {
	resp, err := t.TTRPCTaskService.Wait(ctx, r)
	if err == nil && r.ExecID == "" {
		t.recordOOM(ctx, r.ID, resp.ExitStatus)
	}
	return resp, err
}

// Kill sends a signal to a container or an exec.
func (t *tasks) Kill(ctx context.Context, r *api.KillRequest) (*emptypb.Empty, error) {
	if r.ExecID == "" && unix.Signal(r.Signal) == unix.SIGKILL {
		t.mu.Lock()
		if c := t.containers[r.ID]; c != nil && c.memory != nil {
			c.memory.asked.Store(true)
		}
		t.mu.Unlock()
	}
	return t.TTRPCTaskService.Kill(ctx, r)
}

// exited counts the exit of a container, which may come before its creation has returned. It ends the shim if that was
// asked for and this was the last one.
func (t *tasks) exited() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	if t.terminating && t.running == 0 {
		t.end.Shutdown()
	}
}

// terminate ends the shim when its last container has exited, or at once without one.
func (t *tasks) terminate() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.terminating = true
	if t.running == 0 {
		t.end.Shutdown()
	}
}

// Delete deletes a container or an exec that has exited. A container's log is complete when it returns.
func (t *tasks) Delete(ctx context.Context, r *api.DeleteRequest) (*api.DeleteResponse, error) {
	ctx, cancel := uninterrupted(ctx)
	defer cancel()
	c := t.settled(ctx, r.ID)
	if r.ExecID == "" && t.ended(ctx, r.ID) {
		t.endOrphans(ctx, r.ID) // before the inner service waits for the end of the output that they hold open
	}
	resp, err := t.TTRPCTaskService.Delete(ctx, r)
	if err != nil || r.ExecID != "" || c == nil {
		return resp, err
	}
	t.forget(r.ID)
	c.logs.drain(drainTimeout)
	return resp, nil
}

// Pids lists a container's processes. An exited container that is not deleted yet still lists its first one, as a
// zombie would be: containerd, when it comes back, takes a container without processes for a leak, and deletes it with
// its exit status unread. The sandbox lists the shim, for the same reason.
func (t *tasks) Pids(ctx context.Context, r *api.PidsRequest) (*api.PidsResponse, error) {
	if t.sandbox.exists() && t.sandbox.check(r.ID) == nil {
		return &api.PidsResponse{Processes: []*task.ProcessInfo{{Pid: pid()}}}, nil
	}
	t.settled(ctx, r.ID)
	resp, err := t.TTRPCTaskService.Pids(ctx, r)
	if err == nil && len(resp.Processes) > 0 {
		return resp, nil
	}
	state, stateErr := t.State(ctx, &api.StateRequest{ID: r.ID})
	if stateErr != nil || state.Pid == 0 {
		return resp, err
	}
	return &api.PidsResponse{Processes: []*task.ProcessInfo{{Pid: state.Pid}}}, nil
}

// Shutdown is what containerd asks of a shim each time it has deleted a container. A sandbox ends by
// ShutdownSandbox only.
func (t *tasks) Shutdown(ctx context.Context, r *api.ShutdownRequest) (*emptypb.Empty, error) {
	if t.sandbox.exists() {
		return &emptypb.Empty{}, nil
	}
	return t.TTRPCTaskService.Shutdown(ctx, r)
}

// remaining is the number of containers that were not deleted. One whose bundle is gone was deleted behind our back:
// containerd kills what it has given up by a process of its own.
func (t *tasks) remaining() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, c := range t.containers {
		if _, err := os.Stat(c.bundle); !errors.Is(err, fs.ErrNotExist) {
			n++
		}
	}
	return n
}

// orphaned reports whether nobody can know of this shim any more: the daemon was killed before it had written the
// shim's address down, or has given the shim up and removed its bundle.
func (t *tasks) orphaned() bool {
	if t.remaining() > 0 {
		return false
	}
	if !t.sandbox.exists() {
		return time.Since(t.born) > orphanCheck
	}
	// The working directory is the bundle. A removed one can still be opened, but not found in itself.
	_, err := os.Stat("bootstrap.json")
	return errors.Is(err, fs.ErrNotExist)
}
