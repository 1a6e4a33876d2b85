package engine

import (
	"context"
	"time"

	"github.com/containerd/containerd/v2/pkg/namespaces"
)

// Timeouts of calls to the engine. They turn a call that hangs into a visible failure. Each is many times what a loaded host
// with a slow disk needs.
const (
	// CreateTimeout is for starting a container or a sandbox. It is the kubelet's timeout for CRI requests.
	CreateTimeout = 2 * time.Minute
	// RemoveTimeout is for removals. Files are unlinked, and killed processes may be stuck in the kernel.
	RemoveTimeout = 2 * time.Minute
	// SignalTimeout is for a signal, which is one invocation of the OCI runtime. It is short because a stop waits for it.
	SignalTimeout = 30 * time.Second
	// RecordExitTimeout is for recording an exit and deleting the task, which drains the log first.
	RecordExitTimeout = time.Minute
	// UndoTimeout is for removing what an unfinished call created, possibly after the call's own timeout.
	UndoTimeout = 30 * time.Second
	// InventoryTimeout is for listing everything that the engine has.
	InventoryTimeout = time.Minute
)

// Context returns a context with the engine's namespace.
func Context(ctx context.Context) context.Context {
	return namespaces.WithNamespace(ctx, Namespace)
}

// WithTimeout returns a context with the engine's namespace and a timeout.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(Context(ctx), d)
}

// Detached returns a context with a timeout that is not cancelled with ctx, for a call that changes the engine in several
// steps. Cleaning up after a call that stopped between two steps takes longer than finishing it.
func Detached(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), d)
}
