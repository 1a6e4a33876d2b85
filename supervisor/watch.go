package supervisor

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// retryInterval is the time before a watch that failed is tried again.
const retryInterval = time.Second

// watchContainers watches the containers of runs, without those that are watched already.
func (e *effects) watchContainers(ctx context.Context, runs, watched []lifecycle.Ref) {
	for _, ref := range runs {
		if !slices.Contains(watched, ref) {
			e.watchContainer(ctx, ref)
		}
	}
}

// watchContainer reports the exit of a container as [containerExited].
func (e *effects) watchContainer(ctx context.Context, ref lifecycle.Ref) {
	e.watch(ctx, "wait for container "+ref.Container, func(ctx context.Context) (message, error) {
		exit, at, err := e.shared.runtime.WaitContainer(ctx, e.uid, ref)
		return containerExited{watched{ctx.Done()}, ref, exit, at}, err
	})
}

// watchSandbox reports the loss of a sandbox, or why its pod must be evicted, as [sandboxEnded], and watches its shim and its
// volumes. Removing the sandbox stops the watches. A later call replaces them: the runtime then has the newest definition of the pod.
func (e *effects) watchSandbox(ctx context.Context, sandbox int) {
	if e.cancelSandbox != nil {
		e.cancelSandbox()
	}
	ctx, e.cancelSandbox = context.WithCancel(ctx)
	e.watch(ctx, "watch sandbox", func(ctx context.Context) (message, error) {
		eviction, err := e.shared.runtime.WaitSandbox(ctx, e.uid, e.pod.Load(), sandbox)
		return sandboxEnded{watched{ctx.Done()}, sandbox, eviction}, err
	})
	e.watchShim(ctx, sandbox)
	e.watchVolumes(ctx)
}

// watchAgain watches the sandbox again after a change of the definition. A sandbox that is being replaced needs no watch: it would report
// once more that it exceeds the limit for which the pod was evicted.
func (e *effects) watchAgain(ctx context.Context, f lifecycle.Facts) {
	if n := f.SandboxReady(); n > 0 && f.Restart == (lifecycle.Restart{}) {
		e.watchSandbox(ctx, n)
	}
}

// watchShim reports changes of the shim of a sandbox as [shimChanged].
func (e *effects) watchShim(ctx context.Context, sandbox int) {
	e.watch(ctx, "watch shim", func(ctx context.Context) (message, error) {
		err := e.shared.runtime.WatchShim(ctx, e.uid, sandbox, func(responds bool) {
			e.mailbox.post(ctx, shimChanged{watched: watched{ctx.Done()}, responds: responds})
		})
		return shimChanged{watched: watched{ctx.Done()}, exited: true}, err
	})
}

// watchVolumes reports why the volumes of the pod are not updated as [volumesChanged].
func (e *effects) watchVolumes(ctx context.Context) {
	e.watch(ctx, "watch volumes", func(ctx context.Context) (message, error) {
		if !e.pod.Load().HasContent() {
			return volumesChanged{watched: watched{ctx.Done()}}, nil
		}
		return nil, e.shared.runtime.WatchVolumes(ctx, e.uid, func(stale string) {
			e.mailbox.post(ctx, volumesChanged{watched{ctx.Done()}, stale})
		})
	})
}

// watch calls wait until it succeeds, and sends the message that it returned. It sends nothing after the end of ctx.
func (e *effects) watch(ctx context.Context, what string, wait func(context.Context) (message, error)) {
	e.running.Add(1)
	guard.Go(ctx, cleanupTimeout, func() {
		for {
			m, err := guard.Catch(ctx, e.log, wait)
			switch {
			case ctx.Err() != nil:
				return
			case err == nil:
				e.mailbox.post(ctx, m)
				return
			}
			e.log.LogAttrs(ctx, slog.LevelWarn, "watch failed, retrying", slog.String("watch", what), slog.Any("error", err))
			select {
			case <-time.After(retryInterval):
			case <-ctx.Done():
				return
			}
		}
	}, e.running.Done)
}

// event returns the lifecycle event of an exit. Its time is the instant at which the wall clock showed m.at, but at most now.
func (m containerExited) event(now lifecycle.Instant) lifecycle.Event {
	at := now
	if !m.at.IsZero() && !m.at.After(now.Wall) {
		at = now.Add(-now.Wall.Sub(m.at))
	}
	return lifecycle.ContainerExited{Ref: m.ref, Exit: m.exit, At: at}
}

// event returns the lifecycle event of the end of a sandbox.
func (m sandboxEnded) event(now lifecycle.Instant) lifecycle.Event {
	if m.eviction != "" {
		return lifecycle.PodEvicted{Message: m.eviction, At: now}
	}
	return lifecycle.SandboxLost{Sandbox: m.sandbox, Message: "the sandbox's process exited", At: now}
}
