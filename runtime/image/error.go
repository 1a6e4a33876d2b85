package image

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/containerd/errdefs"
)

// The reasons of an Error, in the words of a container's waiting state.
const (
	// ReasonPull: the registry was asked and the image did not come, or it
	// could not be unpacked.
	ReasonPull = "ErrImagePull"
	// ReasonNeverPull: the image is not here, and the policy forbids to pull it.
	ReasonNeverPull = "ErrImageNeverPull"
	// ReasonInvalidName: the reference cannot be parsed. Only another pod file helps.
	ReasonInvalidName = "InvalidImageName"
	// ReasonInspect: what is on this machine could not be looked at.
	ReasonInspect = "ImageInspectError"
	// ReasonRegistryUnavailable: no registry answered.
	ReasonRegistryUnavailable = "RegistryUnavailable"
)

// Error is why there is no image for a container.
type Error struct {
	// Reason is one of the constants of this package.
	Reason string
	// Message is a sentence for a person. It names the image.
	Message string
	// Err is the cause. It may be nil.
	Err error
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// fail gives cause as an *Error, with the operation and the reference before it.
// It leaves alone what is one already and what is no fault of the image: the
// end of ctx or of the store.
func fail(ctx context.Context, reason, operation, ref string, cause error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s %q: %w", operation, ref, context.Cause(ctx))
	}
	if errors.Is(cause, ErrClosed) {
		return cause
	}
	if e, ok := errors.AsType[*Error](cause); ok {
		return e
	}
	return &Error{Reason: reason, Message: fmt.Sprintf("%s %q: %v", operation, ref, cause), Err: cause}
}

// pullReason tells a registry that is not there from one that refused.
func pullReason(err error) string {
	// A *url.Error is a net.Error too, even where a certificate is bad.
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return ReasonRegistryUnavailable
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return ReasonRegistryUnavailable
	}
	if errdefs.IsUnavailable(err) {
		return ReasonRegistryUnavailable
	}
	return ReasonPull
}
