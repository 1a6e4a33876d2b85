package runtime

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// fail makes an error a failure of this kind, unless the engine was away, the caller gave up, or it was classified
// before.
func fail(ctx context.Context, kind lifecycle.FailureKind, reason lifecycle.Reason, err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[lifecycle.Failure](err); ok {
		return f
	}
	// A time limit of ours is a failure, the end of the caller's context is not.
	if errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	if isAway(err) {
		kind, reason = lifecycle.FailureUnavailable, ""
	}
	return lifecycle.Failure{Kind: kind, Reason: reason, Message: message(err)}
}

// refused is a container that could not be created.
func refused(ctx context.Context, reason lifecycle.Reason, err error) error {
	return fail(ctx, lifecycle.FailureRefused, reason, err)
}

// isAway reports whether the engine, or the shim that it asked, was not there to answer.
func isAway(err error) bool {
	return errdefs.IsUnavailable(err) || errors.Is(err, ttrpc.ErrClosed) || errors.Is(err, image.ErrClosed) ||
		strings.Contains(err.Error(), ttrpc.ErrClosed.Error()) // from the far side of a call it comes as text only
}

// withArchitectures adds the architectures of the image and of the host to the failure of a program that the host cannot execute.
// An OCI runtime that notices it only after the start reports it in the container's log.
func withArchitectures(err error, image string) error {
	f, ok := errors.AsType[lifecycle.Failure](err)
	if !ok || image == "" || !strings.Contains(f.Message, unix.ENOEXEC.Error()) {
		return err
	}
	f.Message += fmt.Sprintf(" (image architecture %s, host architecture %s)", image, goruntime.GOARCH)
	return f
}

// message is what a person is told of an error: the cause, without the layers of the engine that it came through.
func message(err error) string {
	text := err.Error()
	if errors.Is(err, unix.ENOSPC) || strings.Contains(text, unix.ENOSPC.Error()) {
		return "the disk is full: " + text
	}
	for _, layer := range []string{"unable to start container process: ", "OCI runtime create failed: "} {
		if _, cause, ok := strings.Cut(text, layer); ok {
			text = cause
			break
		}
	}
	return strings.TrimSuffix(text, ": unknown")
}
