package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/containerd/ttrpc"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestFailure(t *testing.T) {
	given := lifecycle.Failure{Kind: lifecycle.FailureNotCreated, Reason: "R", Message: "m"}
	for _, test := range []struct {
		name string
		err  error
		want error
	}{
		{"nil", nil, nil},
		{"other error", errors.New("e"), lifecycle.Failure{Kind: lifecycle.FailureNotFound, Reason: "X", Message: "e"}},
		{"already classified", fmt.Errorf("around: %w", given), given},
		{
			"engine unavailable", fmt.Errorf("a: %w", errdefs.ErrUnavailable),
			lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "a: unavailable"},
		},
		{
			"shim unavailable", errors.New("far: " + ttrpc.ErrClosed.Error()),
			lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "far: ttrpc: closed"},
		},
		{
			"images closed", fmt.Errorf("a: %w", image.ErrClosed),
			lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "a: the daemon is stopping"},
		},
		{
			"disk full", fmt.Errorf("write /x: %w", unix.ENOSPC),
			lifecycle.Failure{Kind: lifecycle.FailureNotFound, Reason: "X", Message: "the disk is full: write /x: no space left on device"},
		},
		{
			"prefixes of the layers of the engine",
			errors.New(`failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: ` +
				`unable to start container process: exec: "x": executable file not found in $PATH: unknown`),
			lifecycle.Failure{Kind: lifecycle.FailureNotFound, Reason: "X", Message: `exec: "x": executable file not found in $PATH`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Failure(t.Context(), lifecycle.FailureNotFound, "X", test.err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := Failure(ctx, lifecycle.FailureNotFound, "X", context.Canceled); !errors.Is(got, context.Canceled) {
		t.Errorf("cancelled call: got %v, want the error unchanged", got)
	}
	ctx, cancel = context.WithTimeout(t.Context(), -1)
	defer cancel()
	if _, ok := errors.AsType[lifecycle.Failure](Failure(ctx, lifecycle.FailureNotFound, "X", ctx.Err())); !ok {
		t.Error("a timeout is not a failure")
	}
}

func TestWithArchitectures(t *testing.T) {
	const message = "exec /bin/app: exec format error"
	with := fmt.Sprintf("%s (image architecture arm64, host architecture %s)", message, runtime.GOARCH)
	for _, test := range []struct{ name, message, image, want string }{
		{"program of another architecture", message, "arm64", with},
		{"unknown architecture", message, "", message},
		{"other failure", "no such file or directory", "arm64", "no such file or directory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := WithArchitectures(lifecycle.Failure{Message: test.message}, test.image)
			if diff := cmp.Diff(error(lifecycle.Failure{Message: test.want}), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if other := errors.New(message); !errors.Is(WithArchitectures(other, "arm64"), other) {
		t.Error("an error that is no failure was changed")
	}
}
