package rootless

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/podstead/podstead/internal/usermanager"
	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/record"
)

// The cgroups in the scope beside those of pods. The monitor is started in its own one, see podcgroup.Groups.Monitor.
const (
	daemonLeaf  = "daemon" // of the holder, pasta and the forwarder, and of a daemon that was started on demand
	monitorLeaf = "monitor"
)

const (
	// delegateTimeout bounds the answers of the systemd of the user at the start of a daemon.
	delegateTimeout = 20 * time.Second
	// moveTimeout bounds them at the end of a command that has started pasta or the forwarder.
	moveTimeout = 5 * time.Second
	// delegateRetry is the time between two requests for the cgroup of pods that run.
	delegateRetry = 2 * time.Second
)

// ErrCgroupV1 is the error of [Namespaces.Delegate] on a host with cgroup v1.
var ErrCgroupV1 = errors.New("the host uses cgroup v1, which systemd does not delegate to users")

// Delegation is the cgroup that the systemd of the user has delegated.
type Delegation struct {
	Cgroup      string   // relative to the root of the hierarchy
	Controllers []string // that can be enabled in it
}

// Scope returns the name of the scope with the pods of a runtime directory.
func Scope(runDir string) string { return "podstead-" + record.Hash(runDir)[:6] + ".scope" }

// Delegable returns the controllers that the systemd of a user can delegate. It is for a process outside of the namespaces. Dir is the
// runtime directory of the user.
func Delegable(ctx context.Context, dir string, uid int) ([]string, error) {
	m, err := connectV2(ctx, dir, uid)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return m.Controllers()
}

// connectV2 connects to the systemd of a user, if the host has cgroup v2 only.
func connectV2(ctx context.Context, dir string, uid int) (*usermanager.Manager, error) {
	c, err := cgroup.DetectControllers()
	if err != nil {
		return nil, err
	}
	if !c.Unified {
		return nil, ErrCgroupV1
	}
	return usermanager.Connect(ctx, dir, uid)
}

// Delegate requests a scope with a delegated cgroup from the systemd of the user, or finds the one with the pods that run. A daemon in the
// namespaces calls it before it starts its engine. Dir is the runtime directory of the user. The holder is in the scope, which exists as
// long as the namespaces for that reason.
//
// A daemon that was started on demand is moved to the scope, out of the session of the command. So is another one that could not start
// containers in the scope otherwise. The daemon of a service stays in the cgroup of that. Pasta and the forwarder are moved: they are
// needed as long as pods run.
//
// If pods have cgroups, it repeats what fails: without the scope, a daemon does not create their containers in it.
func (n *Namespaces) Delegate(ctx context.Context, dir string, onDemand bool) (Delegation, error) {
	ctx, cancel := context.WithTimeout(ctx, delegateTimeout)
	defer cancel()
	return n.repeat(ctx, n.inScope, func() (Delegation, error) { return n.delegate(ctx, dir, onDemand) })
}

// repeat calls request until it succeeds, the cgroup is not needed, or ctx ends. It warns of the first error.
func (n *Namespaces) repeat(ctx context.Context, needed func() bool, request func() (Delegation, error)) (Delegation, error) {
	for first := true; ; first = false {
		d, err := request()
		if err == nil || !needed() {
			return d, err
		}
		if first {
			n.warn("pods have cgroups that the daemon cannot use, retrying: " + err.Error())
		}
		select {
		case <-time.After(delegateRetry):
		case <-ctx.Done():
			return d, err
		}
	}
}

// inScope reports whether the scope has the monitor, which starts containers in it.
func (n *Namespaces) inScope() bool {
	return slices.ContainsFunc(n.monitorsIn(processOf(os.Getpid()).namespace("user")), func(p process) bool {
		return usermanager.InScope(p.PID, Scope(n.RunDir))
	})
}

func (n *Namespaces) delegate(ctx context.Context, dir string, onDemand bool) (Delegation, error) {
	m, err := connectV2(ctx, dir, User())
	if err != nil {
		return Delegation{}, err
	}
	defer m.Close()
	r, err := n.read()
	if err != nil {
		return Delegation{}, err
	}
	self := processOf(os.Getpid())
	monitors := n.monitorsIn(self.namespace("user"))
	first, leaf := r.Holder, daemonLeaf
	if !first.runs() { // it was killed, and one is started by Keep
		if len(monitors) == 0 {
			return Delegation{}, errors.New("no process holds the namespaces")
		}
		first, leaf = monitors[0], monitorLeaf
	}
	s, err := m.Delegate(ctx, Scope(n.RunDir), leaf, first.PID)
	if err != nil {
		return Delegation{}, err
	}
	for _, p := range monitors { // those of an earlier version are elsewhere
		if err := s.Move(ctx, monitorLeaf, p.PID); err != nil && p.runs() {
			return Delegation{}, err
		}
	}
	if onDemand || !s.CanMove() {
		if err := s.Move(ctx, daemonLeaf, self.PID); err != nil {
			return Delegation{}, err
		}
	}
	d := Delegation{Cgroup: s.Cgroup}
	if d.Controllers, err = s.Controllers(); err != nil {
		return Delegation{}, fmt.Errorf("read controllers of %s: %w", Scope(n.RunDir), err)
	}
	n.moveOutlets(ctx, s)
	return d, nil
}

// mover is a [usermanager.Scope].
type mover interface {
	Move(ctx context.Context, leaf string, pid int) error
}

// moveOutlets moves pasta and the forwarder to the scope. A worker of the forwarder is started in the cgroup of the first process.
func (n *Namespaces) moveOutlets(ctx context.Context, s mover) {
	r, err := n.read()
	if err != nil {
		n.warn(err.Error())
		return
	}
	all := n.forwarders()
	if !r.Pasta.runs() {
		r.Pasta = n.runningPasta() // it could not be recorded
	}
	if r.Pasta != (process{}) {
		all = append(all, r.Pasta)
	}
	var failed []error
	for _, p := range all {
		if err := s.Move(ctx, daemonLeaf, p.PID); err != nil && p.runs() {
			failed = append(failed, err)
		}
	}
	if err := errors.Join(failed...); err != nil {
		n.warn("pasta and the forwarder of host ports end with the session that started them: " + err.Error())
	}
}

// attachOutlets moves pasta and the forwarder to the scope, if there is one: else pods run without cgroups, as the daemon has reported. Dir
// is the runtime directory of the user.
func (n *Namespaces) attachOutlets(ctx context.Context, dir string) {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	m, err := connectV2(ctx, dir, os.Getuid())
	if err != nil {
		return
	}
	defer m.Close()
	if s, err := m.Scope(ctx, Scope(n.RunDir)); err == nil {
		n.moveOutlets(ctx, s)
	}
}
