package exit

import (
	"context"
	"log/slog"
	"testing"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/grpc"

	"github.com/podstead/podstead/runtime/record"
)

// TestTerminateRemovedContainer: a container that another call has removed since it was listed is terminated. The removal of a sandbox
// would fail otherwise, and be retried only after a delay.
func TestTerminateRemovedContainer(t *testing.T) {
	records := &removedRecords{}
	c, err := client.New("", client.WithServices(client.WithContainerStore(records), client.WithTaskClient(removedTasks{})))
	if err != nil {
		t.Fatal(err)
	}
	listed, err := c.LoadContainer(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	records.removed = true
	r := NewRecorder(c, respondingShims{}, noCgroups{}, record.Dirs{State: t.TempDir()}, "boot", slog.New(slog.DiscardHandler))
	if err := r.Terminate(t.Context(), listed); err != nil {
		t.Errorf("error %v, want none", err)
	}
}

// removedRecords have one container until it is removed.
type removedRecords struct {
	containers.Store
	removed bool
}

// Get implements [containers.Store].
func (r *removedRecords) Get(_ context.Context, id string) (containers.Container, error) {
	if r.removed {
		return containers.Container{}, errdefs.ErrNotFound
	}
	return containers.Container{ID: id}, nil
}

// removedTasks has no tasks.
type removedTasks struct{ tasks.TasksClient }

// Get implements [tasks.TasksClient].
func (removedTasks) Get(context.Context, *tasks.GetRequest, ...grpc.CallOption) (*tasks.GetResponse, error) {
	return nil, errgrpc.ToGRPC(errdefs.ErrNotFound)
}

// ListPids implements [tasks.TasksClient].
func (removedTasks) ListPids(context.Context, *tasks.ListPidsRequest, ...grpc.CallOption) (*tasks.ListPidsResponse, error) {
	return nil, errgrpc.ToGRPC(errdefs.ErrNotFound)
}

// noCgroups has no cgroups.
type noCgroups struct{ Cgroups }

// Kill implements [Cgroups].
func (noCgroups) Kill(context.Context, string, string) error { return nil }
