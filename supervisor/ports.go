package supervisor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Runtime is what the supervisor requires of a container engine. All methods are idempotent: after a crash they are called again with the
// same arguments and adopt what exists. Removing something that does not exist succeeds. All methods are safe for concurrent use and
// return when their context ends. They return a [lifecycle.Failure] if the caller must know the kind of the failure. The instants of the
// returned events are zero.
type Runtime interface {
	Images
	Sandboxes
	Containers
	Volumes
	// Admit returns why the pod cannot run on this host at present, as joined [lifecycle.Refusal]s. It returns nil if the pod can run, and
	// does not block.
	Admit(pod *spec.Pod) error
	// Readable returns why config maps, secrets or files that the pod needs cannot be read, or why its volumes cannot be mounted, at
	// present. It changes nothing.
	Readable(ctx context.Context, pod *spec.Pod) error
	// Allocatable returns the resources of the host that pods can request together, at present. It does not block. A resource whose amount
	// is not known is absent.
	Allocatable() spec.ResourceList
}

// Volumes are the persistent volumes of the host. They are independent of pods.
type Volumes interface {
	// Volumes returns the names of the volumes, sorted.
	Volumes(ctx context.Context) (map[string]string, error)
	// RemoveVolume deletes a volume and its data. The error is [io/fs.ErrNotExist] if it does not exist.
	RemoveVolume(ctx context.Context, name string) error
	// WatchVolumes calls report with why files of config maps, secrets and fields in the volumes of a pod are not updated while it runs;
	// empty: they are. It calls it at once, and when that changes. The containers keep the last content. It returns when ctx ends. report
	// may block until then.
	WatchVolumes(ctx context.Context, uid string, report func(stale string)) error
}

// Images provides images.
type Images interface {
	// PullImage provides the image of a container according to its pull policy. It imports the image archives of the pod before, unless
	// they were imported and no image is missing. Unless the policy requires a pull, it returns the image that the action names if it is
	// present. It has no deadline as long as it makes progress. It calls progress while an archive is being imported, also by another call,
	// and if it fetches anything. progress is never nil, and is called by one goroutine at a time.
	PullImage(ctx context.Context, pod *spec.Pod, a lifecycle.PullImage, progress func(lifecycle.Progress)) (lifecycle.ImagePulled, error)
	// FindImage returns the image of a container if the container can start without a pull, and a [lifecycle.FailureNotFound] if it cannot.
	// It does not contact a registry.
	FindImage(ctx context.Context, pod *spec.Pod, a lifecycle.FindImage) (lifecycle.ImagePulled, error)
	// NewestImage returns the image that a first run of a container would use now, if that is known without a registry: one of the image
	// archives of the pod, which are read if they have changed, of the image directories, or one that was imported. ok is false for an
	// image that is pulled, and for one with a digest. It changes nothing.
	NewestImage(ctx context.Context, pod *spec.Pod, container string) (img lifecycle.Image, ok bool, err error)
}

// Sandboxes creates, watches and removes pod sandboxes.
type Sandboxes interface {
	// StartSandbox creates the sandbox, or adopts it if it is ready. If it fails, it has removed what it created.
	StartSandbox(ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartSandbox) (lifecycle.SandboxStarted, error)
	// WaitSandbox returns when the sandbox is lost or, with the reason in eviction, when the pod has exceeded a limit and must be evicted.
	// After an error neither is known.
	WaitSandbox(ctx context.Context, uid string, pod *spec.Pod, sandbox int) (eviction string, err error)
	// WatchShim calls report when the shim of the sandbox, which supervises its containers, stops responding, and when it responds again.
	// Every other call for the sandbox may fail or hang in between. It returns nil when the shim has exited. report may block until ctx
	// ends.
	WatchShim(ctx context.Context, uid string, sandbox int, report func(responds bool)) error
	// ResizePod sets the requests and limits of the pod and of its running containers, without a restart. It changes nothing, and the
	// message of the failure has the reason, if a memory limit would be lower than what is used. After another error some may be set. It is
	// not called while a container of the pod has another definition.
	ResizePod(ctx context.Context, uid string, pod *spec.Pod, a lifecycle.ResizePod) error
	// RemoveSandbox removes the sandbox and kills all processes in it.
	RemoveSandbox(ctx context.Context, uid string, sandbox int) error
	// CollectPod removes all resources of a pod that has stopped, except the end of the newest log of each container. The pod may be
	// started again in a new sandbox.
	CollectPod(ctx context.Context, uid string, pod *spec.Pod) error
	// RemovePod removes all resources of a pod that has stopped.
	RemovePod(ctx context.Context, uid string, pod *spec.Pod) error
	// Inventory returns all pods that the engine has resources of.
	Inventory(ctx context.Context) ([]lifecycle.Found, error)
}

// Containers starts, watches, signals and removes containers.
type Containers interface {
	// StartContainer creates and starts an attempt, or adopts it if it is created, running or exited. All older attempts of the container
	// have exited before the new one starts. The error is a [lifecycle.FailureNotCreated] if nothing was created; otherwise the process
	// could not be started.
	StartContainer(ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartContainer) (lifecycle.ContainerStarted, error)
	// WaitContainer returns when the process has exited, and the wall time of the exit. For an attempt that does not exist it returns the
	// reason ContainerStatusUnknown. After an error it is not known whether the process runs.
	WaitContainer(ctx context.Context, uid string, ref lifecycle.Ref) (exit lifecycle.Exit, at time.Time, err error)
	// StopContainer sends the stop signal: lifecycle.stopSignal, or that of the image, or SIGTERM.
	StopContainer(ctx context.Context, uid string, pod *spec.Pod, ref lifecycle.Ref) error
	// KillContainer sends SIGKILL to all processes of the container.
	KillContainer(ctx context.Context, uid string, ref lifecycle.Ref) error
	// WatchDevices calls report when a device of a run is unplugged, and when it is plugged in again, maybe as another node. Of a run that
	// could not be created it reports one device that is plugged in when all exist. It makes the new node usable in a container that runs,
	// where that is possible. It returns when ctx ends, or if it cannot go on. report may block until ctx ends.
	WatchDevices(ctx context.Context, uid string, o lifecycle.DeviceOrder, report func(lifecycle.DeviceChange)) error
	// RemoveContainer removes the records, writable layers and logs of an exited attempt and of all older attempts of the container, whose
	// removal may have failed.
	RemoveContainer(ctx context.Context, uid string, pod *spec.Pod, ref lifecycle.Ref) error
}

// Prober probes containers. It is safe for concurrent use.
type Prober interface {
	// Probe runs one probe of an attempt until ctx ends or the result is final. It calls report with the events of each
	// [lifecycle.Probe.Step] that has any. The events of one step belong together: the last may follow from the others. The address is
	// that of the pod, or "" if it has none. report may block until ctx ends.
	Probe(ctx context.Context, uid, address string, c *spec.Container, o lifecycle.ProbeOrder, report func([]lifecycle.Event))
}

// HostConditions watches the conditions of the host that pods wait for before they start. It is safe for concurrent use.
type HostConditions interface {
	// WaitFor returns nil when the condition is met, and the error of ctx when that ends. Meanwhile it calls report with why the condition
	// is not met, as the end of a message such as "not found". report may block until ctx ends. It is never called for [spec.WaitPod].
	WaitFor(ctx context.Context, c spec.WaitCondition, report func(unmet string)) error
}

// Hooks runs the postStart and preStop hooks of containers. It is safe for concurrent use.
type Hooks interface {
	// Run runs a hook until it returns or ctx ends. The address is that of the pod, or "" if it has none. A warning that is not empty is
	// emitted as an event. The error is not: it may contain output of the container.
	Run(ctx context.Context, uid, address string, c *spec.Container, ref lifecycle.Ref,
		h *spec.LifecycleHandler) (warning string, err error)
}

// Rebooter reboots the host.
type Rebooter interface {
	// Reboot requests a reboot for a pod and returns before the host goes down. The error has a [lifecycle.Failure] with
	// [lifecycle.ReasonRebootHeldBack] if the host may not be rebooted now.
	Reboot(ctx context.Context, pod string) error
}

// Clock reads the time. A loop calls it once per turn.
type Clock func() lifecycle.Instant

// SystemClock returns the clock of the current boot. Mono is CLOCK_BOOTTIME, which never leaps and also advances while the host is
// suspended. Wall is the wall clock, without the monotonic reading of package time: times must follow a clock that is set.
func SystemClock() (Clock, error) {
	boot, err := proc.BootID()
	if err != nil {
		return nil, err
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return nil, fmt.Errorf("read CLOCK_BOOTTIME: %w", err)
	}
	return func() lifecycle.Instant {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			panic(fmt.Sprintf("read CLOCK_BOOTTIME: %v", err)) // it was readable above
		}
		return lifecycle.Instant{Boot: boot, Mono: time.Duration(ts.Nano()), Wall: time.Now().Round(0)}
	}, nil
}

// eventClock returns the clock of the event log.
func eventClock(now Clock) event.Clock {
	return func() (boot string, mono time.Duration, wall time.Time) {
		t := now()
		return t.Boot, t.Mono, t.Wall
	}
}

// withEphemerals returns a copy of a pod with these ephemeral containers and no others.
func withEphemerals(pod *spec.Pod, list []spec.Container) *spec.Pod {
	copied := *pod
	copied.EphemeralContainers = list
	return &copied
}

// podOf returns the pod with the containers as an action needs them: a run of an earlier definition is stopped with the hooks and signals
// of that.
func podOf(pod *spec.Pod, f lifecycle.Facts, a lifecycle.Action) *spec.Pod {
	ref := lifecycle.RefOf(a)
	c := lifecycle.DefinitionOf(pod, f, ref.Container, ref.Attempt)
	if ref == (lifecycle.Ref{}) || c == nil || c == pod.Container(ref.Container) {
		return pod
	}
	return withContainer(pod, c)
}

// withContainer returns a copy of a pod with a container in place of the one with its name, or in addition.
func withContainer(pod *spec.Pod, c *spec.Container) *spec.Pod {
	copied := *pod
	for _, list := range []*[]spec.Container{&copied.InitContainers, &copied.Containers} {
		for i := range *list {
			if (*list)[i].Name == c.Name {
				*list = slices.Clone(*list)
				(*list)[i] = *c
				return &copied
			}
		}
	}
	copied.Containers = append(slices.Clip(copied.Containers), *c)
	return &copied
}

// address returns the address of a pod for probes and hooks; "": it has none yet.
func address(pod *spec.Pod, f lifecycle.Facts) string {
	if pod.HostNetwork {
		return "127.0.0.1"
	}
	for _, ip := range f.Sandbox.IPs {
		return ip
	}
	return ""
}
