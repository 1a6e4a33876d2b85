package exit_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/exit"
)

// killed is a task that records signals. It returns all to a signal to all processes, and first to a signal to the first one.
type killed struct {
	client.Task
	all, first error
	signals    []string
}

func (k *killed) Kill(ctx context.Context, sig syscall.Signal, opts ...client.KillOpts) error {
	var info client.KillInfo
	for _, o := range opts {
		if err := o(ctx, &info); err != nil {
			return err
		}
	}
	k.signals = append(k.signals, fmt.Sprintf("%d, all: %t", sig, info.All))
	if info.All {
		return k.all
	}
	return k.first
}

// TestKill: the first process is killed although the OCI runtime reports that it has killed all. It may have found none of them.
func TestKill(t *testing.T) {
	failed := errors.New("failed")
	both := []string{"9, all: true", "9, all: false"}
	for _, test := range []struct {
		all, first, want error
		signals          []string
	}{
		{nil, nil, nil, both},
		{nil, errdefs.ErrNotFound, nil, both},
		{nil, failed, failed, both},
		{failed, nil, nil, both},
		{errdefs.ErrNotFound, nil, nil, both[:1]},
	} {
		task := &killed{all: test.all, first: test.first}
		if err := exit.Kill(t.Context(), task); !errors.Is(err, test.want) {
			t.Errorf("%+v: %v", test, err)
		}
		if diff := cmp.Diff(test.signals, task.signals); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test, diff)
		}
	}
}
