package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/podstead/podstead/supervisor"
)

const (
	// extension is the time by which each notification extends the stop timeout of the service, and extendInterval their interval.
	extension, extendInterval = "EXTEND_TIMEOUT_USEC=30000000", 5 * time.Second
	// managerTimeout bounds the question to systemd.
	managerTimeout = 5 * time.Second
)

// HostStopping reports whether systemd is shutting the host down, for example for a reboot. It asks over systemd's own socket, because the
// message bus may have stopped already. Without systemd it reports false.
func HostStopping(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, managerTimeout)
	defer cancel()
	conn, err := dbus.NewSystemdConnectionContext(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	state, err := conn.GetManagerProperty("SystemState")
	return state == `"stopping"`, err
}

// shutDown stops all pods if the daemon was stopped because the host shuts down. Otherwise containers keep running: the daemon was stopped
// by a client, by its service, or for an upgrade.
func (o *Options) shutDown(ctx context.Context, s *supervisor.Supervisor, boot *bootMark, period time.Duration) {
	signalled := ctx.Err() != nil
	ctx = context.WithoutCancel(ctx)
	if !signalled || period <= 0 || o.HostStopping == nil {
		return
	}
	stopping, err := o.HostStopping(ctx)
	if err != nil {
		o.Log.LogAttrs(ctx, slog.LevelDebug, "ask systemd whether the host shuts down", slog.Any("error", err))
	}
	if !stopping {
		return
	}
	boot.clear(ctx) // before the pods stop: the time of the shutdown may be too short for them
	o.Log.LogAttrs(ctx, slog.LevelInfo, "the host is shutting down, stopping pods", slog.Int("pods", s.Count()), slog.Duration("period", period))
	o.notify(ctx, sd.SdNotifyStopping+"\nSTATUS=The host is shutting down, stopping pods\n"+extension)
	extending, stop := context.WithCancel(ctx)
	var extender sync.WaitGroup
	extender.Go(func() { o.extend(extending) })
	s.ShutDown(ctx, period)
	stop()
	extender.Wait()
}

// extend extends the stop timeout of the service until ctx ends.
func (o *Options) extend(ctx context.Context) {
	t := time.NewTicker(extendInterval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			o.notify(ctx, extension)
		case <-ctx.Done():
			return
		}
	}
}
