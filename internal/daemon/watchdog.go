package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/podstead/podstead/api/client"
)

// errSlow is the cause of a check that takes too long.
var errSlow = errors.New("timed out")

// watchdog tells systemd that the daemon works (WatchdogSec=), as long as it does: a daemon whose parts no longer respond is killed with
// SIGABRT, which prints all goroutines, and started again. Containers keep running.
type watchdog struct {
	// interval is the time after which systemd kills a daemon that did not report; 0: systemd does not watch.
	interval time.Duration
	checks   []func(context.Context) error
	report   func(ctx context.Context)
	log      *slog.Logger
}

// newWatchdog returns the watchdog of a daemon. The heartbeat is [supervisor.Supervisor.Heartbeat].
func (o *Options) newWatchdog(heartbeat func(context.Context) error) *watchdog {
	interval, err := sd.SdWatchdogEnabled(false)
	if err != nil {
		o.Log.Warn("systemd does not watch the daemon", slog.Any("error", err))
	}
	return &watchdog{
		interval: interval, checks: []func(context.Context) error{heartbeat, o.apiResponds}, log: o.Log,
		report: func(ctx context.Context) { o.notify(ctx, sd.SdNotifyWatchdog) },
	}
}

// apiResponds checks that the API answers a request.
func (o *Options) apiResponds(ctx context.Context) error {
	c := client.New(o.Config.Socket, "podstead daemon")
	defer c.Close()
	_, err := c.Version(ctx)
	return err
}

// run checks the daemon four times in an interval until ctx ends. After a check that fails, the next one follows at once: a daemon on a
// loaded host responds late, but before the interval has passed.
func (w *watchdog) run(ctx context.Context) {
	if w.interval <= 0 {
		return
	}
	for ctx.Err() == nil {
		err := w.check(ctx)
		if err == nil {
			w.report(ctx)
		} else if ctx.Err() == nil {
			w.log.LogAttrs(ctx, slog.LevelWarn, "daemon does not respond, not reporting to the watchdog of systemd", slog.Any("error", err))
		}
		pause := w.interval / 4
		if err != nil {
			pause = time.Second // of a check that fails without waiting
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// check runs all checks at the same time. Each has a quarter of the interval.
func (w *watchdog) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, w.interval/4, errSlow)
	defer cancel()
	errs := make([]error, len(w.checks))
	var running sync.WaitGroup
	for i, check := range w.checks {
		running.Go(func() { errs[i] = check(ctx) })
	}
	running.Wait()
	return errors.Join(errs...)
}
