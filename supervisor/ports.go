package supervisor

import (
	"context"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Runtime is what the supervisor needs of a container engine. Every method may be called again after a crash, with the
// same arguments: it adopts what it finds, and taking away what is not there succeeds. All are safe for concurrent use,
// end when their context does, and return a [lifecycle.Failure] where the caller is to act on the kind of the failure.
// The instants of the events that they return are left zero.
type Runtime interface {
	Images
	Sandboxes
	Containers
	Volumes
	// Admit returns why the pod cannot run on this machine as it is now, as [lifecycle.Refusal]s that are joined; nil if it
	// can. It does not block.
	Admit(pod *spec.Pod) error
}

// Volumes are the persistent volumes of the machine, which outlive every pod.
type Volumes interface {
	// Volumes returns their names, sorted.
	Volumes(ctx context.Context) ([]string, error)
	// RemoveVolume removes one with what is in it. One that is not there is an [io/fs.ErrNotExist].
	RemoveVolume(ctx context.Context, name string) error
}

// Images makes images available.
type Images interface {
	// PullImage makes the image of a container available, by its pull policy, with the archives of the pod imported
	// first, and reports whether anything had to be fetched. It may take as long as it makes progress, and tells of it,
	// in bytes and of a total that may grow, if it fetches anything; progress is never nil and does not block.
	PullImage(ctx context.Context, pod *spec.Pod, container string, progress func(done, total int64)) (pulled bool, err error)
	// FindImage reports whether the image of a container is here, so that its pull policy wants no pull. No registry is asked.
	FindImage(ctx context.Context, pod *spec.Pod, container string) (here bool, err error)
}

// Sandboxes makes, watches and takes away sandboxes.
type Sandboxes interface {
	// StartSandbox makes the sandbox, or finds it ready. A sandbox that it could not make, it has taken away.
	StartSandbox(ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartSandbox) (lifecycle.SandboxStarted, error)
	// WaitSandbox returns when the sandbox is gone, or, with a message, when the pod has used more than it may. An error says
	// that it is not known.
	WaitSandbox(ctx context.Context, uid string, pod *spec.Pod, sandbox int) (overuse string, err error)
	// RemoveSandbox takes the sandbox away, and kills whatever still runs in it.
	RemoveSandbox(ctx context.Context, uid string, sandbox int) error
	// RemovePod takes away everything of a pod that has ended.
	RemovePod(ctx context.Context, uid string, pod *spec.Pod) error
	// Inventory returns every pod that the engine holds anything of.
	Inventory(ctx context.Context) ([]lifecycle.Found, error)
}

// Containers starts, watches, signals and takes away containers.
type Containers interface {
	// StartContainer creates and starts a run, or finds it created, running or ended. Before a run begins, any older
	// run of the same container has ended. The kinds of failure are told apart: [lifecycle.FailureNotCreated] where nothing
	// was created, else the process could not be started.
	StartContainer(ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartContainer) (lifecycle.ContainerStarted, error)
	// WaitContainer returns when the process has ended, and when by the wall clock. A run that is not there is one that
	// ended with ContainerStatusUnknown. An error says that it is not known whether the process runs.
	WaitContainer(ctx context.Context, uid string, ref lifecycle.Ref) (exit lifecycle.Exit, at time.Time, err error)
	// StopContainer sends the stop signal: lifecycle.stopSignal, else the image's, else SIGTERM.
	StopContainer(ctx context.Context, uid string, pod *spec.Pod, ref lifecycle.Ref) error
	// KillContainer sends SIGKILL to everything in the container.
	KillContainer(ctx context.Context, uid string, ref lifecycle.Ref) error
	// RemoveContainer takes away the records, the writable layers and the logs of a run that has ended and of all older ones of
	// its container, of which a removal may have failed.
	RemoveContainer(ctx context.Context, uid string, pod *spec.Pod, ref lifecycle.Ref) error
}

// Prober asks containers how they are. It is safe for concurrent use.
type Prober interface {
	// Probe runs one probe of a run for as long as ctx lasts, or until nobody needs to be asked any more, and tells the
	// events of each [lifecycle.Probe.Step] that has any, together: the last may follow from the others. The address is
	// that of the pod, which may have none (""). tell may block, until ctx ends at most.
	Probe(ctx context.Context, uid, address string, c *spec.Container, o lifecycle.ProbeOrder, tell func([]lifecycle.Event))
}

// Hooks runs what containers want to be run after their start and before their stop. It is safe for concurrent use.
type Hooks interface {
	// Run runs a hook to its end, and gives it up when ctx ends. The address is that of the pod, which may have none ("").
	// The warning, if it is not empty, is for people. The error never reaches an event: it may hold what the container has
	// written.
	Run(ctx context.Context, uid, address string, c *spec.Container, ref lifecycle.Ref, h *spec.LifecycleHandler) (warning string, err error)
}
