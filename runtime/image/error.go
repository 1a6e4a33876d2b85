package image

import (
	"context"
	"errors"
	"fmt"
)

// The reasons of an Error, in the words of a container's waiting state.
const (
	// ReasonPull: the registry did not answer, or the image did not come, or it
	// could not be unpacked. With containerd the kubelet has this one word for all.
	ReasonPull = "ErrImagePull"
	// ReasonNeverPull: the image is not here, and the policy forbids to pull it.
	ReasonNeverPull = "ErrImageNeverPull"
	// ReasonInvalidName: the reference cannot be parsed. Only another pod file helps.
	ReasonInvalidName = "InvalidImageName"
	// ReasonInspect: what is on this machine could not be looked at.
	ReasonInspect = "ImageInspectError"
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
