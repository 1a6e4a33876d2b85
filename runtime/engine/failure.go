package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Failure converts err to a [lifecycle.Failure] of this kind and reason. A failure that err already contains is returned
// unchanged. If the caller cancelled ctx, err is returned as it is. If the engine was unavailable, the kind is
// [lifecycle.FailureUnavailable]. A nil error stays nil.
func Failure(ctx context.Context, kind lifecycle.FailureKind, reason lifecycle.Reason, err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[lifecycle.Failure](err); ok {
		return f
	}
	// A timeout is a failure. Cancellation by the caller is not.
	if errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	if Unavailable(err) {
		kind, reason = lifecycle.FailureUnavailable, ""
	}
	return lifecycle.Failure{Kind: kind, Reason: reason, Message: Message(err)}
}

// Refused converts err to the failure of a container that could not be created. A nil error stays nil.
func Refused(ctx context.Context, reason lifecycle.Reason, err error) error {
	return Failure(ctx, lifecycle.FailureNotCreated, reason, err)
}

// Unavailable reports whether the engine, or the shim that it called, did not answer.
func Unavailable(err error) bool {
	return errdefs.IsUnavailable(err) || errors.Is(err, ttrpc.ErrClosed) ||
		strings.Contains(err.Error(), ttrpc.ErrClosed.Error()) // an error from the remote side is text only
}

// Message returns the text of an error for a user, without the prefixes that the layers of the engine add.
func Message(err error) string {
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

// WithArchitectures adds the architectures of the image and of the host to the failure of a program that the host cannot execute.
// An OCI runtime that detects this only after the start reports it in the container's log instead.
func WithArchitectures(err error, image string) error {
	f, ok := errors.AsType[lifecycle.Failure](err)
	if !ok || image == "" || !strings.Contains(f.Message, unix.ENOEXEC.Error()) {
		return err
	}
	f.Message += fmt.Sprintf(" (image architecture %s, host architecture %s)", image, runtime.GOARCH)
	return f
}
