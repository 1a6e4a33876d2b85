package exit

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/protobuf"
	"google.golang.org/grpc"

	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestExitIsReportedBeforeTaskIsDeleted checks that a restart does not wait for the deletion of the old task, but that the removal of the
// container does, and also the report of a shim whose log can be incomplete until then.
func TestExitIsReportedBeforeTaskIsDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		prompt string
		want   time.Duration
	}{
		"log is complete":          {"true", 0},
		"shim of an older version": {"", reportTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ref := lifecycle.Ref{Container: "app", Round: 1, Attempt: 1}
				id := record.ContainerID("uid", ref)
				e := &slowEngine{deleted: make(chan struct{}), record: containers.Container{ID: id, Labels: map[string]string{
					record.LabelUID: "uid", record.LabelContainer: "app", record.LabelPrompt: test.prompt,
				}}}
				c, err := client.New("",
					client.WithServices(client.WithContainerStore(slowRecords{nil, e}), client.WithTaskClient(slowTasks{nil, e})))
				if err != nil {
					t.Fatal(err)
				}
				r := NewRecorder(c, respondingShims{}, nil, record.Dirs{State: t.TempDir()}, "boot", slog.New(slog.DiscardHandler))
				begun := time.Now()
				exit, _, err := r.WaitContainer(t.Context(), "uid", ref)
				if err != nil || exit.Code != 4 {
					t.Errorf("exit %+v, %v; want code 4", exit, err)
				}
				if took := time.Since(begun); took != test.want {
					t.Errorf("reported after %v, want %v", took, test.want)
				}
				if e.current().Labels[record.LabelExit] == "" {
					t.Error("the exit is not recorded")
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := r.Settle(ctx, id); err == nil {
					t.Error("settled before the task was deleted")
				}
				close(e.deleted)
				if err := r.Settle(t.Context(), id); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// slowEngine is an engine with one container that exits at once, and whose task is deleted when the channel is closed.
type slowEngine struct {
	mu      sync.Mutex
	record  containers.Container
	deleted chan struct{}
}

func (e *slowEngine) current() containers.Container {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.record
}

type slowRecords struct {
	containers.Store
	*slowEngine
}

func (e slowRecords) Get(context.Context, string) (containers.Container, error) {
	return e.current(), nil
}

func (e slowRecords) Update(_ context.Context, c containers.Container, _ ...string) (containers.Container, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.record = c
	return c, nil
}

type slowTasks struct {
	tasks.TasksClient
	*slowEngine
}

func (e slowTasks) Get(context.Context, *tasks.GetRequest, ...grpc.CallOption) (*tasks.GetResponse, error) {
	return &tasks.GetResponse{Process: &task.Process{ID: e.current().ID, Pid: 1, Status: task.Status_STOPPED}}, nil
}

func (e slowTasks) Wait(context.Context, *tasks.WaitRequest, ...grpc.CallOption) (*tasks.WaitResponse, error) {
	return &tasks.WaitResponse{ExitStatus: 4, ExitedAt: protobuf.ToTimestamp(time.Now())}, nil
}

func (e slowTasks) Delete(context.Context, *tasks.DeleteTaskRequest, ...grpc.CallOption) (*tasks.DeleteResponse, error) {
	<-e.deleted
	return &tasks.DeleteResponse{}, nil
}
