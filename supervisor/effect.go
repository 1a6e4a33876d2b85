package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

const (
	// effectLimit ends an effect that hangs. A pull has none: it may take as long as it makes progress, which the
	// runtime watches.
	effectLimit = 2 * time.Minute
	// signalLimit is shorter: the next signal waits for it.
	signalLimit = 10 * time.Second
	// cleanupTime is what an effect whose context has ended has to clean up before it is given up.
	cleanupTime = 5 * time.Second
	// lookAgain is the pause before something is asked again that could not be found out.
	lookAgain = time.Second
	// startWait bounds how long a start waits for its turn, and for the disk. A limit on stampedes must not become one
	// on pods; and with a disk that hangs it is better to run than to be sure.
	startWait = 10 * time.Second
	// progressPause is the least time between two words of progress.
	progressPause = 250 * time.Millisecond
)

// outcome makes the event that an effect ends in, as of the instant at which the loop learns of it.
type outcome func(now lifecycle.Instant) lifecycle.Event

// start carries an action out beside the loop. Starts of sandboxes and containers wait until the state that holds them
// is written; nothing that stops or takes away ever does.
func (l *loop) start(ctx context.Context, a lifecycle.Action, saved *state.Write) {
	if lifecycle.RecordOnly(a) {
		return
	}
	limit := effectLimit
	switch a := a.(type) {
	case lifecycle.CancelPull:
		if cancel := l.pulls[a.Container]; cancel != nil {
			cancel()
		}
		return
	case lifecycle.CancelHook:
		if cancel := l.hooks[hookRef{a.Ref, a.Hook}]; cancel != nil {
			cancel()
		}
		return
	case lifecycle.RunPostStart:
		l.hook(ctx, a, hookRef{a.Ref, lifecycle.PostStart}, 0)
		return
	case lifecycle.RunPreStop:
		l.hook(ctx, a, hookRef{a.Ref, lifecycle.PreStop}, a.Limit)
		return
	case lifecycle.PullImage:
		l.pulls[a.Container] = l.effect(ctx, 0, a, func(ctx context.Context) (outcome, error) { return l.pull(ctx, a) })
		return
	case lifecycle.RemoveSandbox:
		if l.sandboxEnd != nil {
			l.sandboxEnd()
		}
	case lifecycle.StopContainer, lifecycle.KillContainer:
		limit = signalLimit
	}
	l.effect(ctx, limit, a, func(ctx context.Context) (outcome, error) { return l.perform(ctx, a, saved) })
}

// effect runs do in a goroutine of its own, within the limit (0: none), and posts the one event that it ends in. When
// ctx, the loop's, has ended, nothing is posted: the next supervisor finds out. The function it returns ends do early.
func (l *loop) effect(ctx context.Context, limit time.Duration, a lifecycle.Action, do func(context.Context) (outcome, error)) context.CancelFunc {
	limited, cancel := within(ctx, limit)
	l.effects.Go(func() {
		defer cancel()
		o, err := l.guard(limited, do)
		l.post(ctx, func(now lifecycle.Instant) {
			switch a := a.(type) {
			case lifecycle.PullImage:
				delete(l.pulling, a.Container)
			case lifecycle.RunPostStart:
				delete(l.hooks, hookRef{a.Ref, lifecycle.PostStart})
			case lifecycle.RunPreStop:
				delete(l.hooks, hookRef{a.Ref, lifecycle.PreStop})
			}
			if err != nil {
				failure := failureOf(err)
				l.fold(lifecycle.ActionFailed{Action: a, Failure: failure, At: now}, now)
				if failure.Kind == lifecycle.FailureUnavailable {
					l.fold(lifecycle.EngineUnavailable{At: now}, now)
				}
				return
			}
			l.found(now)
			event := o(now)
			l.fold(event, now)
			l.follow(ctx, event)
		})
	})
	return cancel
}

// found folds in that the engine has answered, if it was away.
func (l *loop) found(now lifecycle.Instant) {
	if !l.facts.EngineUnavailable.IsZero() {
		l.fold(lifecycle.EngineAvailable{At: now}, now)
	}
}

// within returns a context that ends after the limit (0: none).
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %v", limit))
}

// guard calls do, survives its panic, and gives it up if it does not return after its context has ended.
func (l *loop) guard(ctx context.Context, do func(context.Context) (outcome, error)) (outcome, error) {
	type result struct {
		outcome outcome
		err     error
	}
	done := make(chan result, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				l.log.LogAttrs(ctx, slog.LevelError, "an effect panicked", slog.Any("panic", r), slog.String("stack", string(debug.Stack())))
				done <- result{err: fmt.Errorf("panic: %v", r)}
			}
		}()
		o, err := do(ctx)
		if err != nil && ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		done <- result{o, err}
	}()
	select {
	case r := <-done:
		return r.outcome, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r.outcome, r.err
	case <-time.After(cleanupTime):
		return nil, fmt.Errorf("%w, and it does not end", context.Cause(ctx))
	}
}

// failureOf classifies an error; what the edge did not classify is a failed attempt.
func failureOf(err error) lifecycle.Failure {
	if f, classified := errors.AsType[lifecycle.Failure](err); classified {
		return f
	}
	return lifecycle.Failure{Message: err.Error()}
}

// perform carries out an action other than a pull.
func (l *loop) perform(ctx context.Context, a lifecycle.Action, saved *state.Write) (outcome, error) {
	rt, uid := l.shared.runtime, l.uid
	switch a := a.(type) {
	case lifecycle.StartSandbox:
		saved.Wait(ctx, startWait)
		started, err := rt.StartSandbox(ctx, uid, l.whole.Load(), a)
		return func(now lifecycle.Instant) lifecycle.Event { started.At = now; return started }, err
	case lifecycle.FindImage:
		here, err := rt.FindImage(ctx, l.whole.Load(), a.Container)
		if err == nil && !here {
			err = lifecycle.Failure{Kind: lifecycle.FailureNotFound}
		}
		return func(now lifecycle.Instant) lifecycle.Event {
			return lifecycle.ImagePulled{Container: a.Container, For: a.For, At: now}
		}, err
	case lifecycle.StartContainer:
		saved.Wait(ctx, startWait)
		defer l.shared.turn(ctx)()
		started, err := rt.StartContainer(ctx, uid, l.whole.Load(), a)
		return func(now lifecycle.Instant) lifecycle.Event { started.At = now; return started }, err
	case lifecycle.StopContainer:
		return func(now lifecycle.Instant) lifecycle.Event { return lifecycle.SignalSent{Ref: a.Ref, At: now} },
			rt.StopContainer(ctx, uid, l.whole.Load(), a.Ref)
	case lifecycle.KillContainer:
		return func(now lifecycle.Instant) lifecycle.Event {
			return lifecycle.SignalSent{Ref: a.Ref, Kill: true, At: now}
		}, rt.KillContainer(ctx, uid, a.Ref)
	case lifecycle.RemoveContainer:
		return func(now lifecycle.Instant) lifecycle.Event { return lifecycle.ContainerRemoved{Ref: a.Ref, At: now} },
			rt.RemoveContainer(ctx, uid, l.whole.Load(), a.Ref)
	case lifecycle.RemoveSandbox:
		return func(now lifecycle.Instant) lifecycle.Event {
			return lifecycle.SandboxRemoved{Sandbox: a.Sandbox, At: now}
		}, rt.RemoveSandbox(ctx, uid, a.Sandbox)
	case lifecycle.RemovePod:
		return func(now lifecycle.Instant) lifecycle.Event { return lifecycle.PodRemoved{At: now} },
			rt.RemovePod(ctx, uid, l.whole.Load())
	}
	return nil, fmt.Errorf("no effect for %T", a)
}

// pull carries out a pull and tells of its beginning, if a registry is asked, and of its progress.
func (l *loop) pull(ctx context.Context, a lifecycle.PullImage) (outcome, error) {
	begun := time.Now()
	var told time.Time
	pulled, err := l.shared.runtime.PullImage(ctx, l.whole.Load(), a.Container, func(done, total int64) {
		say := func(now lifecycle.Instant) { l.progress(a.Container, Progress{Done: done, Total: total}, now) }
		switch {
		case ctx.Err() != nil: // a pull that was given up says nothing more
			return
		case told.IsZero():
			l.post(ctx, say)
		case time.Since(told) < progressPause:
			return
		default:
			l.offer(say)
		}
		told = time.Now()
	})
	took := time.Since(begun)
	return func(now lifecycle.Instant) lifecycle.Event {
		return lifecycle.ImagePulled{Container: a.Container, For: a.For, Pulled: pulled, Took: took, At: now}
	}, err
}

// follow keeps an eye on what an event says is there now.
func (l *loop) follow(ctx context.Context, e lifecycle.Event) {
	switch e := e.(type) {
	case lifecycle.SandboxStarted:
		l.watchSandbox(ctx, e.Sandbox)
	case lifecycle.ContainerStarted:
		l.watchContainer(ctx, e.Ref)
	}
}

// resume takes up what an earlier supervisor left: actions without an outcome are carried out again, and what runs is
// watched.
func (l *loop) resume(ctx context.Context) {
	for _, a := range l.facts.Unresolved() {
		l.start(ctx, a, nil)
	}
	for _, ref := range l.facts.Live() {
		l.watchContainer(ctx, ref)
	}
	if n := l.facts.SandboxReady(); n > 0 {
		l.watchSandbox(ctx, n)
	}
}

// watchContainer waits for the end of a run.
func (l *loop) watchContainer(ctx context.Context, ref lifecycle.Ref) {
	l.watch(ctx, "wait for container "+ref.Container, func(ctx context.Context) (outcome, error) {
		exit, at, err := l.shared.runtime.WaitContainer(ctx, l.uid, ref)
		return func(now lifecycle.Instant) lifecycle.Event {
			return lifecycle.ContainerExited{Ref: ref, Exit: exit, At: past(now, at)}
		}, err
	})
}

// past is the instant at which the wall clock showed at, as well as that can be told; never after now.
func past(now lifecycle.Instant, at time.Time) lifecycle.Instant {
	if at.IsZero() || at.After(now.Wall) {
		return now
	}
	return now.Add(-now.Wall.Sub(at))
}

// watchSandbox waits for the loss of a sandbox, or for a reason to evict its pod, until the loop takes it away itself.
func (l *loop) watchSandbox(ctx context.Context, sandbox int) {
	ctx, l.sandboxEnd = context.WithCancel(ctx)
	l.watch(ctx, "watch sandbox", func(ctx context.Context) (outcome, error) {
		overuse, err := l.shared.runtime.WaitSandbox(ctx, l.uid, l.whole.Load(), sandbox)
		return func(now lifecycle.Instant) lifecycle.Event {
			if overuse != "" {
				return lifecycle.PodEvicted{Message: overuse, At: now}
			}
			return lifecycle.SandboxLost{Sandbox: sandbox, Message: "the sandbox's process has ended", At: now}
		}, err
	})
}

// watch waits for something to end and posts that. While that is not known, it asks again; once ctx has ended, it posts
// nothing.
func (l *loop) watch(ctx context.Context, what string, wait func(context.Context) (outcome, error)) {
	l.effects.Go(func() {
		for {
			o, err := l.guard(ctx, wait)
			switch {
			case ctx.Err() != nil:
				return
			case err == nil:
				l.post(ctx, func(now lifecycle.Instant) {
					if ctx.Err() == nil {
						l.found(now)
						l.fold(o(now), now)
					}
				})
				return
			case !l.again(ctx, what, err):
				return
			}
		}
	})
}

// again waits before another look, and reports whether to take it.
func (l *loop) again(ctx context.Context, what string, err error) bool {
	l.log.LogAttrs(ctx, slog.LevelWarn, "looking again", slog.String("what", what), slog.Any("error", err))
	select {
	case <-time.After(lookAgain):
		return true
	case <-ctx.Done():
		return false
	}
}

// turn waits for a turn to start a container, not longer than [startWait], and returns what gives it back.
func (s *shared) turn(ctx context.Context) (giveBack func()) {
	select {
	case s.starts <- struct{}{}:
		return func() { <-s.starts }
	case <-time.After(startWait):
	case <-ctx.Done():
	}
	return func() {}
}
