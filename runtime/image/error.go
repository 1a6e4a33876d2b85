package image

import (
	"context"
	"errors"
	"fmt"

	"github.com/podstead/podstead/runtime/image/signature"
)

// The reasons of an Error, as in a container's waiting state.
const (
	// ReasonPull: the registry did not answer, the pull failed or the image could not be unpacked. The kubelet with containerd
	// uses this reason for all of these.
	ReasonPull = "ErrImagePull"
	// ReasonNeverPull: the image is not present and the policy forbids pulling it.
	ReasonNeverPull = "ErrImageNeverPull"
	// ReasonInvalidName: the reference cannot be parsed. Only another pod file helps.
	ReasonInvalidName = "InvalidImageName"
	// ReasonInspect: the state on this host cannot be read.
	ReasonInspect = "ImageInspectError"
	// ReasonSignature: the image is not signed as the policy requires, or the policy rejects it. Nothing of it was unpacked.
	ReasonSignature = "SignatureValidationFailed"
)

// Error explains why a container has no image.
type Error struct {
	// Reason is one of the constants of this package.
	Reason string
	// Message is for people. It contains the name of the image.
	Message string
	// Err is the cause. It may be nil.
	Err error
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// fail wraps cause in an *Error, with the operation and the reference. It returns an *Error unchanged, and also cancellation and
// ErrClosed, which are not faults of the image.
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
	if signature.Refused(cause) {
		reason, cause = ReasonSignature, fmt.Errorf("signature validation failed: %w", cause)
	}
	return &Error{Reason: reason, Message: fmt.Sprintf("%s %q: %v", operation, ref, cause), Err: cause}
}
