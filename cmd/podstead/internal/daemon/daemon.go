// Package daemon joins the parts of the daemon: engine, supervisor and API. It owns their order at start and end, the word to
// whoever waits for the start, and the end of a daemon that nobody needs any more. It decides nothing about pods.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/google/uuid"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/config"
	"github.com/podstead/podstead/hooks"
	"github.com/podstead/podstead/probes"
	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/state"
)

const (
	// leaveLimit bounds how long the supervisor may take to write its state. What is not written is found out again.
	leaveLimit = 30 * time.Second
	// closeLimit bounds how long requests that are under way may take to end.
	closeLimit = 5 * time.Second
	// handoverLimit bounds how long a daemon that was started on demand may take to make room for this one.
	handoverLimit = 45 * time.Second
	handoverPause = 100 * time.Millisecond
)

// Runtime is the container engine of a daemon.
type Runtime interface {
	supervisor.Runtime
	// RemoveNetwork takes away what pods need of the network, if there are none. It is called as a daemon leaves no pod behind:
	// the next one makes it again when a pod needs it.
	RemoveNetwork(ctx context.Context) error
	probes.Execer
	// Close ends the engine and leaves containers as they are.
	Close() error
}

// Options are what a daemon is made of. Config, Start and Log are needed.
type Options struct {
	Config *config.Config
	// Start starts the engine; a lock on the state that another process holds is an [*engine.ErrInUse].
	Start   func(ctx context.Context, c *config.Config, log *slog.Logger) (Runtime, error)
	Version api.Version
	Log     *slog.Logger
	// Cgroup is where the process lies while it is a daemon, from the root of the hierarchies; empty: where it was started.
	Cgroup string
	// Ready is called when the daemon answers; nil: nobody waits.
	Ready func()
}

// Run is the daemon: it starts, serves until ctx ends, a client asks it to leave, or, started on demand, nobody needs it any
// more, and leaves pods as they are.
func Run(ctx context.Context, o Options) (err error) {
	if err := api.CheckSocket(o.Config.Socket); err != nil {
		return err
	}
	// Before the engine makes it for itself alone: the socket is for a group, too. Nothing else in it is in reach of others.
	if err := os.MkdirAll(o.Config.RunDir, 0o711); err != nil { //nolint:gosec // it says why
		return fmt.Errorf("make run-time folder: %w", err)
	}
	if o.Cgroup != "" {
		defer joinCgroup(ctx, o.Cgroup, o.Log)()
	}
	rt, err := o.takeOver(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	s, err := o.supervise(ctx, rt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave(ctx, s)) }()
	err = o.serve(ctx, s)
	if len(s.Pods()) == 0 {
		removing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		err = errors.Join(err, rt.RemoveNetwork(removing))
	}
	return err
}

// takeOver starts the engine. A daemon that was started on demand and stands in the way of a service is asked to leave. It may not
// answer yet: when systemd starts a service again that was killed, a client of its may have been faster.
func (o *Options) takeOver(ctx context.Context) (Runtime, error) {
	rt, err := o.Start(ctx, o.Config, o.Log)
	if !inUse(err) || o.Version.OnDemand {
		return rt, err
	}
	limit := time.NewTimer(handoverLimit)
	defer limit.Stop()
	again := time.NewTicker(handoverPause)
	defer again.Stop()
	asked := false
	for inUse(err) {
		if !asked {
			stays := false
			if asked, stays = o.askToLeave(ctx); stays {
				return nil, err
			}
		}
		select {
		case <-again.C:
			rt, err = o.Start(ctx, o.Config, o.Log)
		case <-limit.C:
			return nil, fmt.Errorf("take over from another daemon: %w", err)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return rt, err
}

func inUse(err error) bool {
	_, is := errors.AsType[*engine.ErrInUse](err)
	return is
}

// askToLeave asks the other daemon to leave, if it was started on demand. It reports whether that daemon has heard it, or stays: one
// that does not answer has done neither.
func (o *Options) askToLeave(ctx context.Context) (asked, stays bool) {
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	other := api.NewClient(o.Config.Socket, "podstead daemon")
	defer other.Close()
	v, err := other.Version(ctx)
	if err != nil {
		return false, false
	}
	return v.OnDemand && other.Leave(ctx) == nil, !v.OnDemand
}

// supervise takes up the pods that are there.
func (o *Options) supervise(ctx context.Context, rt Runtime) (*supervisor.Supervisor, error) {
	store, err := state.NewDir(filepath.Join(o.Config.StateDir, "pods"))
	if err != nil {
		return nil, err
	}
	clock, err := supervisor.SystemClock()
	if err != nil {
		return nil, err
	}
	checkpoints, err := state.NewCheckpointDir(filepath.Join(o.Config.RunDir, "pods"))
	if err != nil {
		return nil, err
	}
	journal, err := supervisor.NewDirJournal(filepath.Join(o.Config.StateDir, "events"))
	if err != nil {
		return nil, err
	}
	s := supervisor.New(ctx, supervisor.Options{
		Runtime: rt, Prober: probes.New(rt, clock, probes.Options{}), Hooks: hooks.New(rt, nil),
		Store: store, Checkpoints: checkpoints, Journal: journal, Clock: clock, Log: o.Log, MaxParallelStarts: int(o.Config.Pods.MaxParallelStarts),
		Policy: o.Config.Policy.OfPods(),
	})
	if err := s.Recover(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("take up pods: %w", err), leave(ctx, s))
	}
	return s, nil
}

func leave(ctx context.Context, s *supervisor.Supervisor) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
	defer cancel()
	return s.Leave(ctx)
}

// serve answers clients until the end.
func (o *Options) serve(ctx context.Context, s *supervisor.Supervisor) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	o.Version.Instance = uuid.NewString()
	server := api.NewServer(ctx, api.Options{
		Supervisor: s, LogDir: o.Config.LogDir, Version: o.Version, Log: o.Log,
		Secrets: configsource.Source{Dir: o.Config.ConfigDir, Credentials: os.Getenv("CREDENTIALS_DIRECTORY")},
		Leave:   func(by string) { end(errors.New("asked by " + by)) },
	})
	l, err := api.Listen(ctx, o.Config.Socket)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	o.Log.LogAttrs(ctx, slog.LevelInfo, "daemon is ready", slog.String("socket", o.Config.Socket))
	o.notify(ctx, sd.SdNotifyReady)
	if o.Ready != nil {
		o.Ready()
	}
	if o.Version.OnDemand {
		go func() {
			if untilIdle(ctx, server, s, o.Config.Engine.IdleTimeout.Duration()) {
				end(errors.New("nobody needs it"))
			}
		}()
	}
	select {
	case err = <-served:
		end(err)
	case <-ctx.Done():
	}
	o.notify(ctx, sd.SdNotifyStopping)
	o.Log.LogAttrs(ctx, slog.LevelInfo, "daemon leaves", slog.Any("why", context.Cause(ctx)))
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	return errors.Join(err, server.Close(closing))
}

// notify tells systemd, if it is systemd that runs the daemon.
func (o *Options) notify(ctx context.Context, state string) {
	if _, err := sd.SdNotify(false, state); err != nil {
		o.Log.LogAttrs(ctx, slog.LevelWarn, "could not notify systemd", slog.Any("error", err))
	}
}

// untilIdle returns true when there were neither requests nor pods for the time, and false when the context ends.
func untilIdle(ctx context.Context, server *api.Server, s *supervisor.Supervisor, quiet time.Duration) bool {
	for {
		changed := s.Changed()
		busy, moved := server.Busy()
		t := time.NewTimer(quiet)
		idle := t.C
		if busy || len(s.Pods()) > 0 {
			idle = nil
		}
		select {
		case <-changed:
		case <-moved:
		case <-idle:
			return true
		case <-ctx.Done():
			t.Stop()
			return false
		}
		t.Stop()
	}
}
