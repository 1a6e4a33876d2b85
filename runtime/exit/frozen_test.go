package exit

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/protobuf"
	"github.com/containerd/errdefs"
	"google.golang.org/grpc"

	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestWaitContainerOnFrozenDisk: an exit is reported although the engine's database can neither be written nor read. The disk of bbolt has
// hung while it wrote a meta page: readers wait for it too.
func TestWaitContainerOnFrozenDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ref := lifecycle.Ref{Container: "app", Round: 1, Attempt: 1}
		id := record.ContainerID("uid", ref)
		engine := &frozenEngine{frozen: make(chan struct{}), record: containers.Container{ID: id, Labels: map[string]string{
			record.LabelUID: "uid", record.LabelContainer: "app", record.LabelMessage: "{}",
		}}}
		c, err := client.New("",
			client.WithServices(client.WithContainerStore(frozenRecords{nil, engine}), client.WithTaskClient(exitingTasks{nil, engine})))
		if err != nil {
			t.Fatal(err)
		}
		r := NewRecorder(c, respondingShims{}, nil, record.Dirs{State: t.TempDir()}, "boot", slog.New(slog.DiscardHandler))
		begun := time.Now()
		exit, _, err := r.WaitContainer(t.Context(), "uid", ref)
		if err != nil || exit.Code != 4 {
			t.Errorf("exit %+v, %v; want code 4", exit, err)
		}
		if took := time.Since(begun); took != reportTimeout {
			t.Errorf("reported after %v, want %v", took, reportTimeout)
		}
		close(engine.frozen) // the write of the exit goes on
	})
}

// frozenEngine is an engine with one container, which exits. Since then its database hangs, until frozen is closed.
type frozenEngine struct {
	record containers.Container
	exited atomic.Bool
	frozen chan struct{}
}

// frozenRecords are the records of a [frozenEngine].
type frozenRecords struct {
	containers.Store
	*frozenEngine
}

// Get implements [containers.Store].
func (e frozenRecords) Get(context.Context, string) (containers.Container, error) {
	if e.exited.Load() {
		<-e.frozen
	}
	return e.record, nil
}

// exitingTasks are the tasks of a [frozenEngine].
type exitingTasks struct {
	tasks.TasksClient
	*frozenEngine
}

// Get implements [tasks.TasksClient].
func (e exitingTasks) Get(context.Context, *tasks.GetRequest, ...grpc.CallOption) (*tasks.GetResponse, error) {
	if e.exited.Load() {
		return nil, errdefs.ErrNotFound
	}
	return &tasks.GetResponse{Process: &task.Process{ID: e.record.ID, Pid: 1}}, nil
}

// Wait implements [tasks.TasksClient].
func (e exitingTasks) Wait(context.Context, *tasks.WaitRequest, ...grpc.CallOption) (*tasks.WaitResponse, error) {
	e.exited.Store(true)
	return &tasks.WaitResponse{ExitStatus: 4, ExitedAt: protobuf.ToTimestamp(time.Now())}, nil
}

// respondingShims are shims that respond.
type respondingShims struct{ Shims }

func (respondingShims) AwaitLoaded(context.Context, string) error { return nil }
func (respondingShims) OOMKilled(string) (bool, error)            { return false, nil }
func (respondingShims) ExitUnknown(string) bool                   { return false }
