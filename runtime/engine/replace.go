package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/runtime/monitor"
)

const (
	// replaceTimeout bounds the replacement of monitor and keeper. A keeper that hangs is killed in less than 45 s, and the new monitor
	// becomes the keeper.
	replaceTimeout = 90 * time.Second
	// replaceCheckInterval is the time between two looks at the programs that monitor and keeper execute.
	replaceCheckInterval = 100 * time.Millisecond
)

// MonitorReplacement is an attempt to replace monitor and keeper by the installed program, in place.
type MonitorReplacement struct {
	From, To string // versions. They are equal if two builds for development have none
	Err      error  // why the earlier program is still executed
}

// replace replaces the monitor and its keeper if one of them executes another program than the installed one, as after an upgrade or a
// downgrade. It is done once, with the first connection. If it fails the monitor keeps running, and the next daemon tries it again.
func (l *link) replace(ctx context.Context) {
	hello, err := l.firstHello(ctx)
	if err != nil {
		l.Log.DebugContext(ctx, "the monitor is not compared with the installed program", slog.Any("error", err)) // the link is closed
		return
	}
	same, err := hello.Executes(l.Program)
	switch {
	case same || ctx.Err() != nil || errors.Is(err, fs.ErrNotExist): // without the program nothing replaces the monitor
		return
	case err != nil:
		l.Log.WarnContext(ctx, "cannot compare the monitor with the installed program", slog.Any("error", err))
		return
	}
	replacing, cancel := context.WithTimeout(ctx, cmp.Or(l.ReplaceTimeout, replaceTimeout))
	defer cancel()
	r := MonitorReplacement{From: hello.Version}
	if r.To, r.Err = monitor.VersionOf(replacing, l.Program); r.Err == nil {
		r.Err = l.replaceBy(replacing, hello)
	}
	if ctx.Err() != nil {
		return
	}
	attrs := []any{slog.String("from", r.From), slog.String("to", r.To)}
	if r.Err != nil {
		l.Log.WarnContext(ctx, "the monitor was not replaced by the installed program, the next start of the daemon tries it again",
			append(attrs, slog.Any("error", r.Err))...)
	} else {
		l.Log.InfoContext(ctx, "the monitor was replaced by the installed program, containers kept running", attrs...)
	}
	l.report(MonitorReport{Replaced: &r})
}

// firstHello returns what the monitor is, as soon as it answers. The error is that of a closed link, or the answer.
func (l *link) firstHello(ctx context.Context) (hello monitor.Hello, err error) {
	for {
		if err := l.until(ctx, func() bool { return l.client != nil }); err != nil {
			return hello, err
		}
		err := l.ask(ctx, true, func(c *monitor.Client) (err error) {
			hello, err = c.Hello(ctx)
			return err
		})
		if _, answered := errors.AsType[*monitor.Error](err); err == nil || answered || ctx.Err() != nil {
			return hello, errors.Join(err, ctx.Err())
		}
	}
}

// replaceBy requests the replacement of a monitor, and returns when monitor and keeper execute the installed program.
func (l *link) replaceBy(ctx context.Context, before monitor.Hello) error {
	c, err := l.connection(ctx)
	if err != nil {
		return err
	}
	l.change(func() { l.replacing, l.requested = before.PID, true })
	defer l.change(func() {
		l.requested = false
		l.replacements++
	})
	err = c.Replace(ctx, l.Program)
	if err != nil && !errors.Is(err, monitor.ErrClosed) { // closed: it may have been replaced before it has answered
		return err
	}
	last := errors.New("no answer of the monitor")
	for range guard.Poll(ctx, replaceCheckInterval) {
		var now monitor.Hello
		err = l.ask(ctx, true, func(c *monitor.Client) (err error) {
			now, err = c.Hello(ctx)
			return err
		})
		if err == nil {
			var same bool
			if same, err = now.Executes(l.Program); same {
				return nil
			}
			if err == nil {
				err = fmt.Errorf("monitor %d and keeper %d do not both execute %s", now.PID, now.Keeper, l.Program)
			}
			if now.PID != before.PID {
				return fmt.Errorf("the new monitor exited: %w: %w", err, errdefs.ErrUnavailable)
			}
		}
		if ctx.Err() == nil {
			last = err
		}
	}
	return fmt.Errorf("replace the monitor: %w: %w", ctx.Err(), last)
}

// isRefused reports whether an error is that of a request which a monitor has not carried out because it is about to be replaced, or was
// until the answer came. Before is the number of replacements at the time of the request.
func (l *link) isRefused(err error, before int) bool {
	if _, answered := errors.AsType[*monitor.Error](err); !answered || !errdefs.IsUnavailable(err) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requested || l.replacements != before
}

// replaced returns the number of replacements that were completed or have failed.
func (l *link) replaced() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replacements
}

// isReplacement reports whether a monitor with this process ID was started in place of the one that was asked to be replaced.
func (l *link) isReplacement(pid int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return pid != 0 && pid == l.replacing
}
