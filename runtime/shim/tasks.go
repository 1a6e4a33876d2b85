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
	"github.com/containerd/containerd/v2/core/events"
	containerdshim "github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/containerd/v2/pkg/shutdown"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/log"
	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/podstead/podstead/internal/attach"
)

const (
	// drainTimeout bounds how long the deletion of a container waits for the rest of its log. Writes to a failing disk can hang.
	drainTimeout = 5 * time.Second

	// completeTimeout bounds how long the exit of a container is not reported because its log is incomplete.
	completeTimeout = 2 * time.Second

	// runtimeTimeout bounds one run of the OCI runtime. It is long because an interrupted run leaves an incomplete container.
	runtimeTimeout = 2 * time.Minute
)

// tasks is containerd's task service for runc with Podstead's additions.
type tasks struct {
	api.TTRPCTaskService
	sandbox *sandbox
	end     shutdown.Service
	started time.Time

	oom      oomLedger
	attached *attach.Server

	mu          sync.Mutex
	containers  map[string]*container
	running     int  // containers that were created and have not exited
	terminating bool // SIGTERM or exit of the pause process: shut down after the last running container
	pause       sandboxProcess
}

// container is a container that was not deleted by a request.
type container struct {
	bundle  string
	logs    *logs
	created chan struct{} // closed when Create has succeeded or failed
	orphans bool          // its first process is not PID 1 of a namespace, so the others can outlive it
	memory  *memory       // nil until created, and on a host without memory controller
}

// newTasks returns a service that still needs its TTRPCTaskService, whose events must be published through watch.
func newTasks(end shutdown.Service) *tasks {
	t := &tasks{end: end, started: time.Now(), containers: map[string]*container{}, attached: attach.NewServer()}
	t.sandbox = newSandbox(t)
	return t
}

func (t *tasks) register(s *ttrpc.Server) {
	api.RegisterTTRPCTaskService(s, t)
	t.sandbox.register(s)
}

// uninterrupted returns a context for the OCI runtime that is not cancelled with its request. Requests end when the daemon is
// killed, but a runtime killed midway leaves processes and cgroups that no component has a record of.
func uninterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), runtimeTimeout)
}

// Create creates a container and connects its output to its log file.
func (t *tasks) Create(ctx context.Context, r *api.CreateTaskRequest) (*api.CreateTaskResponse, error) {
	ctx, cancel := uninterrupted(ctx)
	defer cancel()
	if err := completeProcess(r.Bundle); err != nil {
		return nil, err
	}
	l, err := openLogs(ctx, r, t)
	if err != nil {
		return nil, err
	}
	c := &container{bundle: r.Bundle, logs: l, created: make(chan struct{}), orphans: !ownPIDs(r.Bundle)}
	defer close(c.created)
	t.mu.Lock()
	t.containers[r.ID] = c
	t.mu.Unlock()
	if l != nil {
		t.attached.Add(r.ID, l.attached)
	}

	resp, err := t.create(ctx, r)
	l.created()
	if err != nil {
		t.forget(r.ID)
		l.drain(drainTimeout)
		return nil, err
	}
	watched, err := t.oom.watch(int(resp.Pid))
	if err != nil {
		log.G(ctx).WithError(err).Error("watch memory cgroup: OOM kills of the container will not be detected")
	}
	t.mu.Lock()
	c.memory = watched
	t.running++
	t.mu.Unlock()
	return resp, nil
}

// create creates a container with its root file system.
func (t *tasks) create(ctx context.Context, r *api.CreateTaskRequest) (*api.CreateTaskResponse, error) {
	if err := placeRoot(r.Bundle); err != nil {
		return nil, err
	}
	keepFilter := prepareFilter(ctx, r)
	resp, err := t.TTRPCTaskService.Create(ctx, r)
	if err != nil {
		warnAboutRoot(ctx, r.ID, removeRoot(r.Bundle))
		return nil, err
	}
	keepFilter()
	return resp, nil
}

// warnAboutRoot logs that a root file system was not removed. The next daemon tries again.
func warnAboutRoot(ctx context.Context, id string, err error) {
	if err != nil {
		log.G(ctx).WithError(err).WithField("container", id).Warn("cannot remove the root file system of a container")
	}
}

// settled waits until the creation of a container has succeeded or failed. A daemon that was killed during the creation asks for
// the container when it restarts.
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
	t.attached.Remove(id)
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
	if err == nil && t.exited(ctx, r.ID) {
		t.killOrphans(ctx, r.ID)
	}
	return resp, err
}

// exited reports whether the first process of a container has exited.
func (t *tasks) exited(ctx context.Context, id string) bool {
	state, err := t.State(ctx, &api.StateRequest{ID: id})
	return err == nil && state.Status == task.Status_STOPPED
}

// killOrphans kills the processes that the first process of a container has left, if the kernel does not: in the PID namespace of
// the host or the pod. The inner service does this too, but not if the first process exits before Start returns.
func (t *tasks) killOrphans(ctx context.Context, id string) {
	t.mu.Lock()
	c := t.containers[id]
	t.mu.Unlock()
	if c == nil || !c.orphans {
		return
	}
	_, err := t.TTRPCTaskService.Kill(ctx, &api.KillRequest{ID: id, Signal: uint32(unix.SIGKILL), All: true})
	if err = errgrpc.ToNative(err); err != nil && !errdefs.IsNotFound(err) {
		log.G(ctx).WithError(err).WithField("container", id).Warn("kill remaining processes of the container")
	}
}

// watch returns p with a hook for exits of containers. The inner service publishes an exit after its status is on disk, so the
// shim may shut down then.
func (t *tasks) watch(p containerdshim.Publisher) containerdshim.Publisher {
	return watchingPublisher{p, t}
}

type watchingPublisher struct {
	containerdshim.Publisher
	tasks *tasks
}

// Publish implements containerd's publisher.
func (w watchingPublisher) Publish(ctx context.Context, topic string, e events.Event) error {
	if w.tasks.private(e) {
		return nil
	}
	exit, isExit := e.(*eventsapi.TaskExit)
	isExit = isExit && exit.ID == exit.ContainerID
	if isExit {
		w.tasks.attached.Exited(exit.ContainerID, exit.ExitStatus)
		w.tasks.recordOOM(ctx, exit.ContainerID, exit.ExitStatus)
	}
	if oom, is := e.(*eventsapi.TaskOOM); is {
		w.tasks.oomNotified(oom.ContainerID)
	}
	err := w.Publisher.Publish(ctx, topic, e)
	if errors.Is(err, unix.ECONNREFUSED) {
		// No engine is running. The publisher retries, and the next engine reads the state of each task.
		err = nil
	}
	if isExit {
		w.tasks.countExit()
	}
	return err
}

// Wait waits for the exit of a container or an exec. When it returns, the OOM kill, if any, is recorded, and the log is complete.
func (t *tasks) Wait(ctx context.Context, r *api.WaitRequest) (*api.WaitResponse, error) {
	resp, err := t.TTRPCTaskService.Wait(ctx, r)
	if err == nil && r.ExecID == "" {
		t.recordOOM(ctx, r.ID, resp.ExitStatus)
		t.mu.Lock()
		c := t.containers[r.ID]
		t.mu.Unlock()
		if c != nil {
			c.logs.await(completeTimeout)
		}
	}
	return resp, err
}

// Kill sends a signal to a container or an exec.
func (t *tasks) Kill(ctx context.Context, r *api.KillRequest) (*emptypb.Empty, error) {
	if r.ExecID == "" && unix.Signal(r.Signal) == unix.SIGKILL {
		t.mu.Lock()
		if c := t.containers[r.ID]; c != nil && c.memory != nil {
			c.memory.requested.Store(true)
		}
		t.mu.Unlock()
	}
	return t.TTRPCTaskService.Kill(ctx, r)
}

// countExit counts the exit of a container, which may occur before its Create has returned. It shuts the shim down if it is
// terminating and this was the last container.
func (t *tasks) countExit() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	if t.terminating && t.running == 0 {
		t.end.Shutdown()
	}
}

// terminate shuts the shim down when its last container has exited, or at once if there is none.
func (t *tasks) terminate() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.terminating = true
	if t.running == 0 {
		t.end.Shutdown()
	}
}

// Delete deletes a container or an exec that has exited. When it returns, the container's log is complete.
func (t *tasks) Delete(ctx context.Context, r *api.DeleteRequest) (*api.DeleteResponse, error) {
	ctx, cancel := uninterrupted(ctx)
	defer cancel()
	c := t.settled(ctx, r.ID)
	if r.ExecID == "" && t.exited(ctx, r.ID) {
		t.killOrphans(ctx, r.ID) // the inner service waits for the output, which they keep open
		if c != nil && c.logs != nil && c.logs.stdin != nil {
			_ = t.closeIO(ctx, r.ID) // the inner service would leave that of a terminal open
		}
	}
	resp, err := t.TTRPCTaskService.Delete(ctx, r)
	if r.ExecID != "" && c != nil {
		_ = os.Remove(SessionFile(c.bundle, r.ExecID)) // runc does not need one
	}
	if err != nil || r.ExecID != "" || c == nil {
		return resp, err
	}
	warnAboutRoot(ctx, r.ID, removeRoot(c.bundle))
	t.attached.Exited(r.ID, resp.ExitStatus) // the event may be late
	c.logs.drain(drainTimeout)
	t.forget(r.ID)
	return resp, nil
}

func (t *tasks) resize(ctx context.Context, id string, size attach.Size) error {
	ctx, cancel := uninterrupted(ctx)
	defer cancel()
	_, err := t.ResizePty(ctx, &api.ResizePtyRequest{ID: id, Width: uint32(size.Width), Height: uint32(size.Height)})
	return err
}

func (t *tasks) closeIO(ctx context.Context, id string) error {
	ctx, cancel := uninterrupted(ctx)
	defer cancel()
	_, err := t.CloseIO(ctx, &api.CloseIORequest{ID: id, Stdin: true})
	return err
}

// Pids lists a container's processes. For an exited container that is not deleted it lists the first process, as a zombie would
// be listed: on restart containerd deletes a container without processes as a leak, and its exit code is lost. For the same
// reason the sandbox lists the shim.
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

// Shutdown is called by containerd after each deletion of a container. A sandbox only shuts down on ShutdownSandbox.
func (t *tasks) Shutdown(ctx context.Context, r *api.ShutdownRequest) (*emptypb.Empty, error) {
	if t.sandbox.exists() {
		return &emptypb.Empty{}, nil
	}
	return t.TTRPCTaskService.Shutdown(ctx, r)
}

// remaining returns the number of containers that were not deleted. A container without a bundle was deleted by containerd's
// cleanup process, without a request.
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

// orphaned reports whether no daemon can have a record of this shim: the daemon was killed before it recorded the shim's address,
// or it dropped the shim and removed its bundle.
func (t *tasks) orphaned() bool {
	if t.remaining() > 0 {
		return false
	}
	if !t.sandbox.exists() {
		return time.Since(t.started) > orphanCheck
	}
	// The working directory is the bundle. A removed directory can still be opened, but its files are not found.
	_, err := os.Stat("bootstrap.json")
	return errors.Is(err, fs.ErrNotExist)
}
