package runtime

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/enginecall"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// The real-time signals, as the C library counts them: it keeps the kernel's first two for itself.
const (
	sigRTMin = 34
	sigRTMax = 64
)

// otherNames are the second names of signals, which Kubernetes has too.
var otherNames = map[string]string{"SIGCLD": "SIGCHLD", "SIGIOT": "SIGABRT", "SIGPOLL": "SIGIO"}

// parseSignal reads a signal as pod files and images write it: SIGTERM, TERM, 15, SIGRTMIN+3, SIGRTMAX-1.
func parseSignal(s string) (syscall.Signal, error) {
	if n, err := strconv.Atoi(s); err == nil {
		if n < 1 || n > sigRTMax {
			return 0, fmt.Errorf("no signal has the number %d", n)
		}
		return syscall.Signal(n), nil
	}
	name := "SIG" + strings.TrimPrefix(strings.ToUpper(s), "SIG")
	if sig := unix.SignalNum(cmp.Or(otherNames[name], name)); sig != 0 {
		return sig, nil
	}
	for prefix, base := range map[string]int{"SIGRTMIN": sigRTMin, "SIGRTMAX": sigRTMax} {
		if offset, ok := strings.CutPrefix(name, prefix); ok {
			n, err := strconv.Atoi(cmp.Or(offset, "0"))
			if n += base; err == nil && n >= sigRTMin && n <= sigRTMax {
				return syscall.Signal(n), nil
			}
		}
	}
	return 0, fmt.Errorf("no signal has the name %q", s)
}

// StopContainer sends the stop signal to the container's first process. A run that has ended already is no failure: its
// exit is on its way.
func (r *Runtime) StopContainer(ctx context.Context, uid string, pod *spec.Pod, ref lifecycle.Ref) error {
	return r.signal(ctx, uid, ref, func(ctx context.Context, task client.Task, labels map[string]string) error {
		name := cmp.Or(labels[record.LabelStopSignal], "SIGTERM")
		if c, err := find(pod, ref.Container); err == nil && c.Lifecycle != nil {
			name = cmp.Or(c.Lifecycle.StopSignal, name)
		}
		sig, err := parseSignal(name)
		if err != nil {
			return err
		}
		return task.Kill(ctx, sig)
	})
}

// KillContainer sends SIGKILL to every process of the container.
func (r *Runtime) KillContainer(ctx context.Context, uid string, ref lifecycle.Ref) error {
	return r.signal(ctx, uid, ref, func(ctx context.Context, task client.Task, _ map[string]string) error {
		return kill(ctx, task)
	})
}

func (r *Runtime) signal(
	ctx context.Context, uid string, ref lifecycle.Ref, send func(context.Context, client.Task, map[string]string) error,
) error {
	ctx, cancel := enginecall.WithTimeout(ctx, enginecall.SignalTimeout)
	defer cancel()
	c, err := r.client.LoadContainer(ctx, record.ContainerID(uid, ref))
	if errdefs.IsNotFound(err) {
		return lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "signal container " + ref.Container + ": it was not found"}
	}
	var labels map[string]string
	if err == nil {
		labels, err = c.Labels(ctx)
	}
	var task client.Task
	if err == nil {
		task, err = c.Task(ctx, nil)
	}
	if err == nil {
		err = send(ctx, task, labels)
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return enginecall.Failure(ctx, lifecycle.FailureRetry, "", fmt.Errorf("signal container %s: %w", ref.Container, err))
	}
	return nil
}

// kill sends SIGKILL to every process of a container. One that has ended is no error.
func kill(ctx context.Context, task client.Task) error {
	err := task.Kill(ctx, unix.SIGKILL, client.WithKillAll)
	if err == nil || errdefs.IsNotFound(err) {
		return nil
	}
	// The runtime finds all processes by the cgroup. Should that be impossible, the end of the first one is the end of all: by
	// the kernel's hand in a PID namespace of its own, by the shim's elsewhere.
	if err := task.Kill(ctx, unix.SIGKILL); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}
