package units

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// interval limits how often systemd gets a new status.
const interval = 200 * time.Millisecond

// follower is what [Follow] has sent.
type follower struct {
	log     *slog.Logger
	notify  func(pid int, state string) error
	release func(pid, code int) error
	units   map[string]*unit // by UID of the pod
}

type unit struct {
	process  state.Process
	line     string
	released bool
}

// Follow sends the status of the pods of units to systemd until ctx ends. It ends the main process of a unit whose pod has failed or
// succeeded, or is deleted. Pods is [supervisor.Supervisor.Pods], and changed is [supervisor.Supervisor.Changed].
func Follow(ctx context.Context, pods func() []supervisor.Snapshot, changed func() <-chan struct{}, log *slog.Logger) {
	f := newFollower(log)
	Changes(ctx, interval, changed, func() { f.turn(ctx, pods()) })
}

func newFollower(log *slog.Logger) *follower {
	return &follower{
		log: log, units: map[string]*unit{}, release: release,
		notify: func(pid int, state string) error { return notify(notifySocket, pid, state) },
	}
}

// turn compares what was sent with the pods.
func (f *follower) turn(ctx context.Context, pods []supervisor.Snapshot) {
	present := map[string]bool{}
	for i := range pods {
		s := &pods[i]
		if s.Owner.Unit == "" || s.Owner.Process == (state.Process{}) {
			continue
		}
		present[s.Facts.UID] = true
		u := f.units[s.Facts.UID]
		if u == nil {
			u = &unit{process: s.Owner.Process}
			f.units[s.Facts.UID] = u
		}
		f.show(ctx, s, u)
	}
	for uid, u := range f.units {
		if !present[uid] {
			f.end(ctx, u, 0)
			delete(f.units, uid)
		}
	}
}

// show sends the status of a pod, and ends the process if the pod is finished.
func (f *follower) show(ctx context.Context, s *supervisor.Snapshot, u *unit) {
	if u.released || !u.process.Running() {
		return
	}
	if line := Line(s); line != u.line {
		u.line = line
		f.report(ctx, u, "send status to systemd", f.notify(u.process.PID, "STATUS="+line))
	}
	switch {
	case s.Facts.Stop.Delete:
		f.end(ctx, u, 0)
	case !s.AtRest, !s.Facts.Stop.Requested.IsZero(): // podstead start starts a pod again that podstead stop has stopped
	case s.Status.Phase == lifecycle.PhaseFailed:
		f.end(ctx, u, 1)
	case s.Status.Phase == lifecycle.PhaseSucceeded:
		f.end(ctx, u, 0)
	}
}

// end ends a process that waits for its pod.
func (f *follower) end(ctx context.Context, u *unit, code int) {
	if !u.released && u.process.Running() {
		f.report(ctx, u, "end main process of unit", f.release(u.process.PID, code))
	}
	u.released = true
}

// report logs an error, unless the process has exited in the meantime.
func (f *follower) report(ctx context.Context, u *unit, what string, err error) {
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ESRCH) ||
		errors.Is(err, unix.EINVAL) {
		return
	}
	f.log.LogAttrs(ctx, slog.LevelWarn, "could not update a systemd unit", slog.String("step", what), slog.Int("pid", u.process.PID),
		slog.Any("error", err))
}

// Line returns the line of a pod in systemctl status: the columns READY and STATUS of podstead get, and the message of the pod.
func Line(s *supervisor.Snapshot) string {
	p := server.PodOf(s)
	line := view.Ready(&p) + " " + view.Status(&p)
	if p.Status.Message != "" {
		line += ": " + p.Status.Message
	}
	return strings.ReplaceAll(plain.Text(line), "\n", " ")
}
