package metrics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// The results of pulls.
const (
	pullSucceeded = "success"
	pullFailed    = "failure"
	pullCanceled  = "canceled"
)

// Runtime returns a runtime that counts operations, starts and pulls of another one.
func (r *Recorder) Runtime(of supervisor.Runtime) supervisor.Runtime { return &runtime{of, r} }

type runtime struct {
	supervisor.Runtime
	recorder *Recorder
}

// operation counts an operation that began at a time.
func (r *Recorder) operation(name string, begun time.Time, err error) (took float64) {
	took = time.Since(begun).Seconds()
	r.operations.WithLabelValues(name).Inc()
	r.operationDuration.WithLabelValues(name).Observe(took)
	if err != nil {
		r.operationErrors.WithLabelValues(name).Inc()
	}
	return took
}

// step counts a step of a start, unless it failed.
func (r *Recorder) step(name string, seconds float64, err error) {
	if err == nil {
		r.stepDuration.WithLabelValues(name).Observe(seconds)
	}
}

// StartSandbox implements [supervisor.Sandboxes].
func (r *runtime) StartSandbox(ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartSandbox) (lifecycle.SandboxStarted, error) {
	begun := time.Now()
	started, err := r.Runtime.StartSandbox(ctx, uid, pod, a)
	r.recorder.step("sandbox", r.recorder.operation("run_podsandbox", begun, err), err)
	if err == nil {
		r.recorder.startedPods.Inc()
	}
	return started, err
}

// RemoveSandbox implements [supervisor.Sandboxes].
func (r *runtime) RemoveSandbox(ctx context.Context, uid string, sandbox int) error {
	begun := time.Now()
	err := r.Runtime.RemoveSandbox(ctx, uid, sandbox)
	r.recorder.operation("remove_podsandbox", begun, err)
	return err
}

// StartContainer implements [supervisor.Containers].
func (r *runtime) StartContainer(ctx context.Context, uid string, pod *spec.Pod,
	a lifecycle.StartContainer,
) (lifecycle.ContainerStarted, error) {
	begun := time.Now()
	started, err := r.Runtime.StartContainer(ctx, uid, pod, a)
	r.recorder.step("container", r.recorder.operation("start_container", begun, err), err)
	if err == nil {
		r.recorder.startedContainers.WithLabelValues(containerType(pod, a.Container)).Inc()
	}
	return started, err
}

// containerType returns the kind of a container.
func containerType(pod *spec.Pod, name string) string {
	named := func(c spec.Container) bool { return c.Name == name }
	switch {
	case slices.ContainsFunc(pod.Containers, named):
		return "container"
	case slices.ContainsFunc(pod.InitContainers, named):
		return "init_container"
	}
	return "ephemeral_container"
}

// StopContainer implements [supervisor.Containers].
func (r *runtime) StopContainer(ctx context.Context, uid string, pod *spec.Pod, ref lifecycle.Ref) error {
	begun := time.Now()
	err := r.Runtime.StopContainer(ctx, uid, pod, ref)
	r.recorder.operation("stop_container", begun, err)
	return err
}

// KillContainer implements [supervisor.Containers].
func (r *runtime) KillContainer(ctx context.Context, uid string, ref lifecycle.Ref) error {
	begun := time.Now()
	err := r.Runtime.KillContainer(ctx, uid, ref)
	r.recorder.operation("kill_container", begun, err)
	return err
}

// RemoveContainer implements [supervisor.Containers].
func (r *runtime) RemoveContainer(ctx context.Context, uid string, pod *spec.Pod, ref lifecycle.Ref) error {
	begun := time.Now()
	err := r.Runtime.RemoveContainer(ctx, uid, pod, ref)
	r.recorder.operation("remove_container", begun, err)
	return err
}

// PullImage implements [supervisor.Images].
func (r *runtime) PullImage(ctx context.Context, pod *spec.Pod, a lifecycle.PullImage,
	progress func(lifecycle.Progress),
) (lifecycle.ImagePulled, error) {
	begun := time.Now()
	var done int64 // of the pull; images of volumes follow each other
	var bytes int64
	image, err := r.Runtime.PullImage(ctx, pod, a, func(p lifecycle.Progress) {
		if p.Archive == "" {
			if p.Done < done {
				bytes += done
			}
			done = p.Done
		}
		progress(p)
	})
	took := time.Since(begun).Seconds()
	r.recorder.step("image", took, err)
	if err == nil && !image.Pulled {
		return image, nil
	}
	r.recorder.operation("pull_image", begun, err)
	r.recorder.pullBytes.Add(float64(bytes + done))
	switch {
	case err == nil:
		r.recorder.pulls.WithLabelValues(pullSucceeded).Inc()
		r.recorder.pullDuration.WithLabelValues(sizeLabel(bytes + done)).Observe(took)
	case errors.Is(context.Cause(ctx), context.Canceled):
		r.recorder.pulls.WithLabelValues(pullCanceled).Inc()
	default:
		r.recorder.pulls.WithLabelValues(pullFailed).Inc()
	}
	return image, err
}

// sizeLabel returns the kubelet's label for the size of an image (kubelet: GetImageSizeBucket). The size of an image whose content was
// present can be unknown.
func sizeLabel(bytes int64) string {
	if bytes == 0 {
		return "N/A"
	}
	lower := int64(0)
	for _, upper := range []int64{10, 100, 500, 1 << 10, 5 << 10, 10 << 10, 20 << 10, 30 << 10, 40 << 10, 60 << 10, 100 << 10} { // MB
		if bytes < upper<<20 {
			return megabytes(lower) + "-" + megabytes(upper)
		}
		lower = upper
	}
	return "GT" + megabytes(lower)
}

// megabytes returns a size as in the labels of the kubelet.
func megabytes(n int64) string {
	switch {
	case n == 0:
		return "0"
	case n < 1<<10:
		return fmt.Sprintf("%dMB", n)
	}
	return fmt.Sprintf("%dGB", n>>10)
}

// Hooks returns hooks that count the duration of postStart hooks of others.
func (r *Recorder) Hooks(of supervisor.Hooks) supervisor.Hooks { return countedHooks{of, r} }

type countedHooks struct {
	supervisor.Hooks
	recorder *Recorder
}

// Run implements [supervisor.Hooks].
func (h countedHooks) Run(ctx context.Context, uid, address string, c *spec.Container, ref lifecycle.Ref,
	handler *spec.LifecycleHandler,
) (warning string, err error) {
	begun := time.Now()
	warning, err = h.Hooks.Run(ctx, uid, address, c, ref, handler)
	if c.Lifecycle != nil && handler == c.Lifecycle.PostStart {
		h.recorder.step("postStart", time.Since(begun).Seconds(), err)
	}
	return warning, err
}

// probeType returns the kubelet's name of a kind of probes.
func probeType(kind lifecycle.ProbeKind) string {
	text := string(kind)
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}
