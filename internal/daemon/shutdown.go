package daemon

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/internal/usermanager"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
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

// UserStopping returns a function that reports whether the systemd of a user is exiting: the user has logged out without lingering, or the
// host shuts down. It then kills all processes of the service. Dir is the runtime directory of the user, uid the ID that systemd sees.
func UserStopping(dir string, uid int) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, managerTimeout)
		defer cancel()
		m, err := usermanager.Connect(ctx, dir, uid)
		if err != nil {
			return false, err
		}
		defer m.Close()
		return m.Stopping()
	}
}

// shutDown stops all pods if the host shuts down, or if a client has requested it. Otherwise containers keep running: the daemon was
// stopped by a client, by its service, or for an upgrade. It returns how many pods the daemon leaves that may run.
func (o *Options) shutDown(ctx context.Context, s *supervisor.Supervisor, boot *bootMark, period time.Duration) (left int, err error) {
	stopping := o.hostStopping(ctx, period)
	requested := o.shutdown.Load()
	if !stopping && !requested {
		return s.Count(), nil
	}
	ctx = context.WithoutCancel(ctx)
	what, by := "the host is shutting down, stopping pods", lifecycle.ByShutdown
	switch {
	case stopping && o.Config.Rootless(): // it does not know whether the host shuts down, too
		what, by = "the systemd of the user is exiting, stopping pods", lifecycle.ByDaemonStop
	case !stopping: // nothing is in a hurry
		what, by, period = "stopping pods, requested by a client", lifecycle.ByDaemonStop, max(period, longestGrace(s.Pods()))
	}
	if stopping { // before the pods stop: the time of the shutdown may be too short for them
		boot.clear(ctx)
	}
	o.Log.LogAttrs(ctx, slog.LevelInfo, "stopping all pods",
		slog.String("cause", what), slog.Int("pods", s.Count()), slog.Duration("period", period))
	o.notify(ctx, sd.SdNotifyStopping+"\nSTATUS="+strings.ToUpper(what[:1])+what[1:]+"\n"+extension)
	extending, stop := context.WithCancel(ctx)
	var extender sync.WaitGroup
	extender.Go(func() { o.extend(extending) })
	s.ShutDown(ctx, period, by)
	stop()
	extender.Wait()
	if !requested {
		return s.Count(), nil
	}
	for _, p := range s.Pods() {
		if !p.AtRest {
			left++
		}
	}
	return left, api.RecordStop(o.Config.Socket, left)
}

// hostStopping reports whether the daemon was stopped by a signal, the host shuts down, and pods stop in order then.
func (o *Options) hostStopping(ctx context.Context, period time.Duration) bool {
	if ctx.Err() == nil || period <= 0 || o.HostStopping == nil {
		return false
	}
	stopping, err := o.HostStopping(context.WithoutCancel(ctx))
	if err != nil {
		o.Log.LogAttrs(context.WithoutCancel(ctx), slog.LevelDebug, "ask systemd whether the host shuts down", slog.Any("error", err))
	}
	return stopping
}

// longestGrace returns the longest grace period of the pods.
func longestGrace(pods []supervisor.Snapshot) (longest time.Duration) {
	for _, p := range pods {
		longest = max(longest, lifecycle.EffectiveGrace(p.Pod, nil).Period)
	}
	return longest
}

// extend extends the stop timeout of the service until ctx ends.
func (o *Options) extend(ctx context.Context) {
	for range guard.Every(ctx, extendInterval) {
		o.notify(ctx, extension)
	}
}
