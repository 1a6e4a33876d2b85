package container

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

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/exit"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Stop sends the stop signal to the first process of a container: lifecycle.stopSignal, else that of the image, else SIGTERM. It is no
// error if the container has exited.
func (s *Service) Stop(ctx context.Context, uid string, pod *spec.Pod, ref lifecycle.Ref) error {
	return s.signal(ctx, uid, ref, func(ctx context.Context, task client.Task, labels map[string]string) error {
		name := cmp.Or(labels[record.LabelStopSignal], "SIGTERM")
		c, err := Find(pod, ref.Container)
		if err == nil && c.Lifecycle != nil {
			name = cmp.Or(c.Lifecycle.StopSignal, name)
		}
		sig, err := parseSignal(name)
		if err != nil {
			return stopSignalError(c, err)
		}
		return task.Kill(ctx, sig)
	})
}

// Kill sends SIGKILL to every process of a container. It is no error if the container has exited.
func (s *Service) Kill(ctx context.Context, uid string, ref lifecycle.Ref) error {
	return s.signal(ctx, uid, ref, func(ctx context.Context, task client.Task, _ map[string]string) error {
		return exit.Kill(ctx, task)
	})
}

func (s *Service) signal(
	ctx context.Context, uid string, ref lifecycle.Ref, send func(context.Context, client.Task, map[string]string) error,
) error {
	ctx, cancel := engine.WithTimeout(ctx, engine.SignalTimeout)
	defer cancel()
	c, err := s.config.Client.LoadContainer(ctx, record.ContainerID(uid, ref))
	if errdefs.IsNotFound(err) {
		return lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "signal container " + ref.Container + ": not found"}
	}
	var labels map[string]string
	if err == nil {
		labels, err = c.Labels(ctx)
	}
	if _, exited := exit.FromLabels(labels); exited { // its task may be being deleted, and cannot be asked then
		return nil
	}
	if err == nil {
		err = s.checkShim(ctx, c)
	}
	var task client.Task
	if err == nil {
		task, err = c.Task(ctx, nil)
	}
	if err == nil {
		err = send(ctx, task, labels)
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return engine.Failure(ctx, lifecycle.FailureRetry, "", fmt.Errorf("signal container %s: %w", ref.Container, err))
	}
	return nil
}

// checkShim returns an error if the shim of a container is known not to respond.
func (s *Service) checkShim(ctx context.Context, c client.Container) error {
	if s.config.Engine.Unresponsive(record.Info(ctx, c).SandboxID) {
		return engine.ErrUnresponsive
	}
	return nil
}

// The real-time signals as numbered by the C library, which reserves the first two of the kernel.
const (
	sigRTMin = 34
	sigRTMax = 64
)

// signalAliases are the other names of signals that Kubernetes accepts.
var signalAliases = map[string]string{"SIGCLD": "SIGCHLD", "SIGIOT": "SIGABRT", "SIGPOLL": "SIGIO"}

// parseSignal parses a signal as written in pod files and images: SIGTERM, TERM, 15, SIGRTMIN+3, SIGRTMAX-1.
func parseSignal(s string) (syscall.Signal, error) {
	if n, err := strconv.Atoi(s); err == nil {
		if n < 1 || n > sigRTMax {
			return 0, fmt.Errorf("signal %d does not exist", n)
		}
		return syscall.Signal(n), nil
	}
	name := "SIG" + strings.TrimPrefix(strings.ToUpper(s), "SIG")
	if sig := unix.SignalNum(cmp.Or(signalAliases[name], name)); sig != 0 {
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
	return 0, fmt.Errorf("signal %q does not exist", s)
}
