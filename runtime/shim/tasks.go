package shim

import (
	"context"
	"os"
	"sync"
	"time"

	eventsapi "github.com/containerd/containerd/api/events"
	api "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/core/events"
	containerdshim "github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/containerd/v2/pkg/shutdown"
	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// drainTimeout bounds how long the deletion of a container waits for the end of its log: a disk may hang.
const drainTimeout = 5 * time.Second

// tasks is containerd's task service for runc with what is ours around it.
type tasks struct {
	api.TTRPCTaskService
	sandbox *sandbox
	end     shutdown.Service
	born    time.Time

	mu          sync.Mutex
	logs        map[string]*logs // by container
	created     int              // containers that were created and not yet deleted
	running     int              // containers that were created and have not exited yet
	terminating bool             // SIGTERM came: end with the last running container
}

// newTasks returns a service that is complete when it has its TTRPCTaskService, whose events go through watch.
func newTasks(end shutdown.Service) *tasks {
	t := &tasks{end: end, born: time.Now(), logs: map[string]*logs{}}
	t.sandbox = newSandbox(t)
	return t
}

func (t *tasks) register(s *ttrpc.Server) {
	api.RegisterTTRPCTaskService(s, t)
	t.sandbox.register(s)
}

// Create creates a container, and takes its output where it goes to one of our logs.
func (t *tasks) Create(ctx context.Context, r *api.CreateTaskRequest) (*api.CreateTaskResponse, error) {
	l, err := openLogs(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := t.TTRPCTaskService.Create(ctx, r)
	l.created()
	if err != nil {
		l.drain(drainTimeout)
		return nil, err
	}
	t.mu.Lock()
	t.logs[r.ID] = l
	t.created++
	t.running++
	t.mu.Unlock()
	return resp, nil
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
	err := w.Publisher.Publish(ctx, topic, e)
	if x, ok := e.(*eventsapi.TaskExit); ok && x.ID == x.ContainerID {
		w.tasks.exited()
	}
	return err
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
	resp, err := t.TTRPCTaskService.Delete(ctx, r)
	if err != nil || r.ExecID != "" {
		return resp, err
	}
	t.mu.Lock()
	l := t.logs[r.ID]
	delete(t.logs, r.ID)
	t.created--
	t.mu.Unlock()
	l.drain(drainTimeout)
	return resp, nil
}

// Pids lists a container's processes. An exited container that is not deleted yet still lists its first one, as a
// zombie would be: containerd, when it comes back, takes a container without processes for a leak, and deletes it with
// its exit status unread. The sandbox lists the shim, for the same reason.
func (t *tasks) Pids(ctx context.Context, r *api.PidsRequest) (*api.PidsResponse, error) {
	if t.sandbox.exists() && t.sandbox.check(r.ID) == nil {
		return &api.PidsResponse{Processes: []*task.ProcessInfo{{Pid: pid()}}}, nil
	}
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

// containers is the number of containers that were not deleted yet.
func (t *tasks) containers() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.created
}

// orphaned reports whether nobody can know of this shim any more: the daemon was killed before it had written the
// shim's address down, or has given the shim up and removed its bundle.
func (t *tasks) orphaned() bool {
	t.mu.Lock()
	created, running := t.created, t.running
	t.mu.Unlock()
	if running > 0 {
		return false
	}
	if created == 0 && !t.sandbox.exists() {
		return time.Since(t.born) > orphanCheck
	}
	// The working directory is the bundle. A removed one can still be opened, but not found in itself.
	_, err := os.Stat("bootstrap.json")
	return os.IsNotExist(err)
}
