package daemon

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/google/uuid"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/daemon/metrics"
	"github.com/podstead/podstead/internal/daemon/units"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/probes"
	"github.com/podstead/podstead/runtime/sandbox"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/podfiles"
	"github.com/podstead/podstead/supervisor/schedule"
)

// hostIPs returns the addresses of the host for the status of pods.
func hostIPs() []api.PodIP {
	var all []api.PodIP
	for _, ip := range sandbox.HostIPs() {
		all = append(all, api.PodIP{IP: ip})
	}
	return all
}

// probeAnswers returns the newest answers of probes for explanations.
func probeAnswers(p *probes.Prober) func(uid string) []api.ContainerProbeAnswer {
	return func(uid string) (list []api.ContainerProbeAnswer) {
		for _, a := range p.Answers(uid) {
			list = append(list, api.ContainerProbeAnswer{
				Container: a.Container,
				ProbeAnswer: api.ProbeAnswer{
					Probe: api.ProbeKind(a.Kind), Outcome: api.ProbeOutcome(a.Outcome), Time: a.At.Wall, Seconds: a.Took.Seconds(),
				},
			})
		}
		return list
	}
}

// services are what the daemon serves.
type services struct {
	runtime    Runtime
	supervisor *supervisor.Supervisor
	files      *podfiles.Set
	schedules  *schedule.Schedules
	disk       storage
	metrics    *metrics.Metrics
}

// serve serves the API until ctx ends, a client stops the daemon, or the daemon is idle.
func (o *Options) serve(ctx context.Context, of *services, r *reloader) error {
	rt, s, host := of.runtime, of.supervisor, of.disk
	var background sync.WaitGroup
	defer background.Wait()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	o.Version.Instance = uuid.NewString()
	o.Version.Runtime, o.Version.RuntimeReason = rt.OCIRuntime().Program, rt.OCIRuntime().Reason
	o.Version.NoOverlayReason = rt.NativeReason()
	options := server.Options{
		Supervisor: s, Files: of.files, Schedules: of.schedules, LogDir: o.Config.LogDir,
		MemoryLogDir: filepath.Join(o.Config.RunDir, "logs"), Version: o.Version,
		Log: o.Log, HostIPs: hostIPs,
		Secrets: rt.Values(), Attacher: rt, Sessions: rt, ContainerFiles: rt, VolumeFiles: rt, Ports: rt, Stats: podStats{rt},
		StopDaemon: func(by string, shutdown bool) {
			if shutdown {
				o.shutdown.Store(true)
			}
			stop(errors.New("requested by " + by))
		},
		Socket: o.Config.Socket, Metrics: of.metrics, Probes: probeAnswers(o.prober), UnitLogDriver: unitLogDriver(o.Config),
	}
	host.serve(&options)
	awaitPods(ctx, of.files)
	srv := server.New(ctx, options)
	l, err := o.listen(ctx, o.Config.Socket, server.Listen)
	if err != nil {
		return err
	}
	served := make(chan error, 2)
	if o.Config.HasReadOnlySocket() {
		readOnly, err := o.listen(ctx, o.Config.ReadOnlySocket, server.ListenReadOnly)
		switch {
		case err == nil:
			go func() { served <- srv.ServeReadOnly(readOnly) }()
		case o.Version.OnDemand && errors.Is(err, server.ErrSocketInUse): // systemd listens on it, and starts the service for it
			o.Log.LogAttrs(ctx, slog.LevelWarn, "the read-only socket is not served", slog.Any("error", err))
		default:
			return errors.Join(err, l.Close())
		}
	}
	go func() { served <- srv.Serve(l) }()
	o.Log.LogAttrs(ctx, slog.LevelInfo, "daemon ready", slog.String("socket", o.Config.Socket))
	o.notify(ctx, sd.SdNotifyReady)
	if o.Ready != nil {
		o.Ready()
	}
	o.work(ctx, of, r, &background)
	go o.watchDirs(ctx, stop) // not awaited: the disk may hang
	if o.Version.OnDemand {
		go func() {
			if untilIdle(ctx, srv, s, of.files, r.idleTimeout) {
				stop(errIdle)
			}
		}()
	}
	select {
	case err = <-served:
		stop(err)
	case <-ctx.Done():
		if cause := context.Cause(ctx); errors.Is(cause, errLost) {
			err = cause
		}
	}
	o.notify(ctx, sd.SdNotifyStopping)
	o.Log.LogAttrs(ctx, slog.LevelInfo, "stopping daemon", slog.Any("cause", context.Cause(ctx)))
	if err == nil && !errors.Is(context.Cause(ctx), errIdle) {
		awaitClients(context.WithoutCancel(ctx), s)
		err = api.RecordStop(o.Config.Socket, s.Count())
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), serverTimeout)
	defer cancel()
	return errors.Join(err, srv.Close(closing))
}

// podsTimeout bounds the wait for the first listing of the pods directory, whose disk may hang.
const podsTimeout = 5 * time.Second

// awaitPods waits until the pods of the pods directory are known, so that the first client sees them.
func awaitPods(ctx context.Context, files *podfiles.Set) {
	late := time.NewTimer(podsTimeout)
	defer late.Stop()
	select {
	case <-files.CarriedOut():
	case <-late.C:
	case <-ctx.Done():
	}
}

// work runs in the background until ctx ends.
func (o *Options) work(ctx context.Context, of *services, r *reloader, background *sync.WaitGroup) {
	background.Go(func() { r.run(ctx) })
	background.Go(func() { o.newWatchdog(of.supervisor.Heartbeat).run(ctx) })
	background.Go(func() {
		reportStatus(ctx, of.supervisor.Pods, of.supervisor.Changed, func(line string) { o.notify(ctx, "STATUS="+line) })
	})
	background.Go(func() { returnMemory(ctx, of.supervisor.Changed, unusedMemory, debug.FreeOSMemory, setGCPercent) })
	background.Go(func() { units.Follow(ctx, of.supervisor.Pods, of.supervisor.Changed, o.Log) })
	background.Go(func() { of.disk.run(ctx) })
	if a := o.Config.Metrics; a.Address != "" {
		background.Go(func() { of.metrics.Serve(ctx, metrics.Address(a)) })
	}
}

// awaitClients waits until the clients of deleted pods have the final states, if no pods are left. Otherwise the clients wait for the next
// daemon.
func awaitClients(ctx context.Context, s *supervisor.Supervisor) {
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	for {
		changed := s.Changed()
		if s.Count() > 0 || s.FinalStates() == 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// notify sends a state to systemd if the daemon is a service of type notify.
func (o *Options) notify(ctx context.Context, state string) {
	if _, err := sd.SdNotify(false, state); err != nil {
		o.Log.LogAttrs(ctx, slog.LevelWarn, "notify systemd", slog.Any("error", err))
	}
}

// untilIdle returns true when there were neither requests nor pods nor schedules for the timeout, and false when the context ends.
func untilIdle(
	ctx context.Context, server *server.Server, s *supervisor.Supervisor, files *podfiles.Set, timeout func() time.Duration,
) bool {
	hasSchedule := func(f podfiles.File) bool { return f.Definition != nil && f.Definition.Schedule != nil }
	for {
		pods, changed := s.Changed(), files.Changed()
		busy, requests := server.Busy()
		t := time.NewTimer(timeout())
		idle := t.C
		if busy || s.Count() > 0 || slices.ContainsFunc(files.Files(), hasSchedule) {
			idle = nil
		}
		select {
		case <-pods:
		case <-changed:
		case <-requests:
		case <-idle:
			return true
		case <-ctx.Done():
			t.Stop()
			return false
		}
		t.Stop()
	}
}
