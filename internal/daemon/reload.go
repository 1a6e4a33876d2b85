package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon/imagefile"
	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/runtime/image/signature"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
)

// reloader applies changes of the configuration to a running daemon.
type reloader struct {
	o          *Options
	supervisor *supervisor.Supervisor
	// bandwidth changes the limit of pulls in bytes per second; nil: the runtime pulls nothing.
	bandwidth func(int64)
	// classes sets the OCI runtimes of runtime classes; nil: the runtime has none.
	classes func(map[string]string)
	disk    storage
	// config is what is in effect, as it was loaded.
	config atomic.Pointer[config.Config]
	// images take the policy for signatures; nil: the runtime does not manage images.
	images *runtime.Images
	policy *signature.Policy
	// reverify makes the image directories look at their archives again; nil: there are none.
	reverify func()
	// sendTo sets where events are sent; nil in tests.
	sendTo func([]config.Notifier)
}

func newReloader(o *Options, loaded *config.Config, rt Runtime, s *supervisor.Supervisor, host storage, dirs *imagefile.Dirs) *reloader {
	r := &reloader{o: o, supervisor: s, disk: host}
	if dirs != nil {
		r.reverify = dirs.Reverify
	}
	if i, ok := rt.(imageRuntime); ok {
		r.images = i.Images()
	}
	r.policy, _ = loaded.Verification() // the engine was started with it
	if pulls, ok := rt.(interface{ SetPullBandwidth(bytesPerSecond int64) }); ok {
		r.bandwidth = pulls.SetPullBandwidth
	}
	if with, ok := rt.(interface{ SetRuntimeClasses(map[string]string) }); ok {
		r.classes = with.SetRuntimeClasses
	}
	r.config.Store(loaded)
	return r
}

// run reloads the configuration whenever it is requested, until ctx ends.
func (r *reloader) run(ctx context.Context) {
	for {
		select {
		case <-r.o.Reload:
			r.o.notify(ctx, reloading())
			r.reload(ctx)
			r.o.notify(ctx, sd.SdNotifyReady)
		case <-ctx.Done():
			return
		}
	}
}

// reloading returns the notification at the start of a reload, with the time that services of type notify-reload require.
func reloading() string {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail for this clock
	return fmt.Sprintf("%s\nMONOTONIC_USEC=%d", sd.SdNotifyReloading, ts.Nano()/1000)
}

// emitInvalid emits all problems of a configuration file. An event has one line.
func (r *reloader) emitInvalid(err error) {
	r.emit(api.EventConfigInvalid, event.Fields{"error": strings.ReplaceAll(err.Error(), "\n", "; ")})
}

// reload loads the configuration, applies what can be applied, and emits what was done.
func (r *reloader) reload(ctx context.Context) {
	next, err := r.o.Load()
	var verification *signature.Policy
	if err == nil {
		verification, err = next.Verification()
	}
	if err != nil {
		r.emitInvalid(err)
		return
	}
	merged, changed, restart := r.config.Load().Reload(next)
	policy, old := merged.Policy.Admission(), r.supervisor.Policy()
	policy.Protected, policy.Rootless = old.Protected, old.Rootless
	r.supervisor.SetPolicy(policy)
	if r.verify(verification) {
		changed = append(changed, "images.verify")
	}
	r.config.Store(merged)
	r.o.keepValid(ctx, next)
	if r.o.rebooter != nil {
		r.o.rebooter.Set(int(merged.Reboot.MaxPerDay), merged.Reboot.Command)
	}
	if r.sendTo != nil {
		r.sendTo(merged.Notify)
	}
	if r.bandwidth != nil {
		r.bandwidth(merged.Images.MaxBandwidth.Value())
	}
	if r.classes != nil {
		r.classes(merged.Engine.Classes())
	}
	r.supervisor.SetFinishedPods(finishedPods(merged)) // wakes up what waits for the idle timeout
	if r.disk.collector != nil {
		r.disk.collector.SetLimits(imageLimits(merged))
	}
	changes := "nothing changed"
	if len(changed) > 0 {
		changes = "changed " + strings.Join(changed, ", ")
	}
	r.emit(api.EventConfigReloaded, event.Fields{"changes": changes})
	if len(restart) > 0 {
		r.emit(api.EventConfigRestartRequired, event.Fields{"keys": strings.Join(restart, ", ")})
	}
}

// keepValid copies a configuration that is used, for a daemon that finds an invalid one.
func (o *Options) keepValid(ctx context.Context, c *config.Config) {
	if err := c.KeepValid(); err != nil {
		o.Log.LogAttrs(ctx, slog.LevelWarn, "a later daemon would not start if the configuration file is invalid", slog.Any("error", err))
	}
}

// verify applies a policy for signatures, and reports whether its rules have changed.
func (r *reloader) verify(policy *signature.Policy) (changed bool) {
	changed = r.policy == nil || !r.policy.EqualRules(policy)
	r.policy = policy
	if r.images != nil {
		r.images.SetVerification(policy)
	}
	if changed && r.reverify != nil {
		r.reverify()
	}
	return changed
}

func (r *reloader) emit(kind api.EventKind, f event.Fields) {
	r.supervisor.Events().Add(event.New(kind, r.supervisor.Now().Wall, "", f))
}

// idleTimeout returns the time after which an idle daemon that was started on demand exits.
func (r *reloader) idleTimeout() time.Duration { return r.config.Load().Engine.IdleTimeout.Duration() }

// finishedPods returns the limits of finished pods.
func finishedPods(c *config.Config) supervisor.FinishedPods {
	return supervisor.FinishedPods{TTL: c.Pods.FinishedPodTTL.Duration(), Max: int(c.Pods.MaxFinishedPods)}
}
