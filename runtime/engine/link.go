package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/monitor"
)

const (
	// monitorStartTimeout is the time for a monitor that was started to accept a connection.
	monitorStartTimeout = 30 * time.Second
	// monitorCheckInterval and monitorCheckTimeout determine how soon a monitor that does not respond is replaced: in less than 20 s.
	monitorCheckInterval = 10 * time.Second
	monitorCheckTimeout  = 5 * time.Second
	// keeperInterval is the time for a keeper that was started to start the monitor, before another keeper is started.
	keeperInterval = 2 * time.Second
	// reconnectInterval is the time between two attempts to connect to the monitor. Its keeper starts it again at once.
	reconnectInterval = 20 * time.Millisecond
)

// link is the engine's connection to the monitor, and what it knows of the containers there. It connects again when the monitor was
// started again, and starts it if there is none. It is safe for concurrent use.
type link struct {
	linkOptions
	begun time.Time // when a keeper was started; used by one goroutine at a time
	stop  context.CancelFunc
	close func() error  // [link.Close], once
	ended chan struct{} // closed when the connection is no longer maintained

	mu         sync.Mutex
	client     *monitor.Client // nil: not connected
	process    processHandle   // of the monitor that the client is connected to
	containers map[string]monitor.Container
	sandboxes  map[string]bool
	changed    chan struct{} // closed and replaced after each change of the fields above
}

// linkOptions say where the monitor is, and how it is started.
type linkOptions struct {
	Dir     string // the monitor's state directory
	Program string // absolute path of podstead-monitor
	Cgroup  string // see [Options.MonitorCgroup]
	Place   func(ctx context.Context, pids ...int) error
	Log     *slog.Logger
}

// openLink connects to the monitor, which is started if there is none. The caller must close the link.
func openLink(ctx context.Context, o linkOptions) (*link, error) {
	l := &link{linkOptions: o, ended: make(chan struct{}), changed: make(chan struct{})}
	if err := privateDir(o.Dir); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, monitorStartTimeout)
	defer cancel()
	if err := l.connect(limited); err != nil {
		return nil, fmt.Errorf("start monitor: %w", err)
	}
	detached := context.WithoutCancel(ctx)
	l.close = sync.OnceValue(func() error { return l.Close(detached) })
	ctx, l.stop = context.WithCancel(detached)
	go l.run(ctx)
	return l, nil
}

// Close closes the connection. The monitor and its containers keep running. A monitor without any is shut down.
func (l *link) Close(ctx context.Context) error {
	l.stop()
	<-l.ended
	l.mu.Lock()
	used := len(l.containers)+len(l.sandboxes) > 0
	l.mu.Unlock()
	if used {
		return nil
	}
	if err := l.shutdown(ctx); err != nil {
		return fmt.Errorf("stop monitor: %w", err)
	}
	return nil
}

// shutdown shuts the monitor down, unless it has containers, and returns when it and its keeper have exited.
func (l *link) shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, monitorCheckTimeout)
	defer cancel()
	c, err := monitor.Dial(ctx, l.Dir)
	if err != nil {
		return nil // it was killed, and a keeper that was not starts it again
	}
	defer c.Close()
	hello, err := c.Hello(ctx)
	if err != nil {
		return err
	}
	keeper, err := openProcess(hello.Keeper)
	if err != nil {
		return err
	}
	defer keeper.close()
	err = c.Shutdown(ctx)
	if errdefs.IsFailedPrecondition(err) {
		return nil
	}
	if err != nil && !errors.Is(err, monitor.ErrClosed) {
		return err
	}
	if err := keeper.wait(ctx); err != nil || l.Cgroup == "" {
		return err
	}
	return cgroup.Remove(l.Cgroup)
}

// run maintains the connection until ctx ends.
func (l *link) run(ctx context.Context) {
	defer close(l.ended)
	for {
		l.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		l.Log.WarnContext(ctx, "the monitor was lost, connecting again")
		if err := l.connect(ctx); err != nil {
			return // ctx was cancelled
		}
	}
}

// connect connects to the monitor and reads its list, until that succeeds or ctx ends.
func (l *link) connect(ctx context.Context) error {
	tick := time.NewTicker(reconnectInterval)
	defer tick.Stop()
	logged := ""
	for {
		err := l.try(ctx)
		if err == nil {
			return nil
		}
		if err.Error() != logged && ctx.Err() == nil {
			logged = err.Error()
			l.Log.DebugContext(ctx, "cannot connect to the monitor", slog.Any("error", err))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// try connects once. If no keeper runs, it starts one.
func (l *link) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, monitorCheckTimeout)
	defer cancel()
	c, err := monitor.Dial(ctx, l.Dir)
	if err != nil {
		return errors.Join(err, l.startKeeper(ctx))
	}
	hello, err := c.Hello(ctx)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	p, err := openProcess(hello.PID)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	if l.Place != nil {
		err = l.Place(ctx, hello.Keeper, hello.PID)
	}
	if err != nil {
		p.close()
		return errors.Join(err, c.Close())
	}
	containers, sandboxes, _, err := c.Subscribe(ctx) // it also proves that the process is the one that was opened
	if err != nil {
		p.close()
		return errors.Join(err, c.Close())
	}
	l.change(func() {
		l.client, l.process = c, p
		l.containers, l.sandboxes = map[string]monitor.Container{}, map[string]bool{}
		for _, one := range containers {
			l.containers[one.ID] = one
		}
		for _, name := range sandboxes {
			if l.containers[name].Exit == nil { // otherwise its process has exited before the connection
				l.sandboxes[name] = true
			}
		}
	})
	return nil
}

// startKeeper starts a keeper, which starts the monitor, unless that was done a moment ago. A keeper that finds another one exits.
func (l *link) startKeeper(ctx context.Context) error {
	if time.Since(l.begun) < keeperInterval {
		return nil
	}
	l.begun = time.Now()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	errs, err := os.OpenFile(filepath.Join(l.Dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer errs.Close()
	cmd := exec.Command(l.Program, "keeper", "-state", l.Dir, "-cgroup", l.Cgroup)
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = null, null, errs
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start monitor: %w", err)
	}
	l.Log.DebugContext(ctx, "started the monitor", slog.Int("keeper", cmd.Process.Pid))
	go func() { _ = cmd.Wait() }() // it becomes a child of process 1 with the exit of this process
	return nil
}

// follow applies events until the connection is lost or ctx ends. It kills a monitor that does not respond.
func (l *link) follow(ctx context.Context) {
	c := l.client
	checks := time.NewTicker(monitorCheckInterval)
	defer checks.Stop()
	answers := make(chan error, 1)
	waiting := false
	for {
		select {
		case e, open := <-c.Events():
			if !open {
				l.disconnected()
				return
			}
			l.apply(ctx, e)
		case <-checks.C:
			if waiting {
				continue
			}
			waiting = true
			go func() {
				ctx, cancel := context.WithTimeout(ctx, monitorCheckTimeout)
				defer cancel()
				_, err := c.Hello(ctx)
				answers <- err
			}()
		case err := <-answers:
			waiting = false
			if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
				l.Log.ErrorContext(ctx, "the monitor does not respond, replacing it")
				l.process.kill() // its keeper starts another one
			}
		case <-ctx.Done():
			l.disconnected()
			_ = c.Close() // the monitor keeps running
			return
		}
	}
}

func (l *link) disconnected() {
	l.process.close()
	l.change(func() { l.client = nil })
}

// change changes what is known and wakes those who wait for it.
func (l *link) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
	close(l.changed)
	l.changed = make(chan struct{})
}

// apply applies an event.
func (l *link) apply(ctx context.Context, e monitor.Event) {
	switch e.Kind {
	case monitor.EventExited:
		l.change(func() { l.exited(e) })
	case monitor.EventChanged:
		if e.State != nil {
			l.put(*e.State)
		}
	case monitor.EventDeleted:
		l.change(func() { l.forget(e.Container, "") })
	case monitor.EventLost:
		l.change(func() { l.forget(e.Container, e.Exec) })
	case monitor.EventRestarted:
		l.Log.WarnContext(ctx, "the monitor was started again; no container was affected")
	case monitor.EventFailed:
		l.Log.ErrorContext(ctx, "work of the monitor for a container failed", slog.String("container", e.Container),
			slog.String("error", e.Message))
	case monitor.EventOOM: // the exit has it
	}
}

// exited stores an exit. The caller holds the lock.
func (l *link) exited(e monitor.Event) {
	if e.Exec == "" {
		delete(l.sandboxes, e.Container) // its process was all that it had
	}
	c, known := l.containers[e.Container]
	if !known {
		return // deleted meanwhile
	}
	if e.Exec == "" {
		c.Phase, c.Exit = monitor.Exited, e.Exit
		l.containers[c.ID] = c
		return
	}
	if i := slices.IndexFunc(c.Processes, func(p monitor.Process) bool { return p.ID == e.Exec }); i >= 0 {
		c.Processes = slices.Clone(c.Processes)
		c.Processes[i].Exit = e.Exit
		l.containers[c.ID] = c
	}
}

// forget removes a container or a command. The caller holds the lock.
func (l *link) forget(id, exec string) {
	if exec == "" {
		delete(l.containers, id)
		return
	}
	if c, known := l.containers[id]; known {
		c.Processes = slices.DeleteFunc(slices.Clone(c.Processes), func(p monitor.Process) bool { return p.ID == exec })
		l.containers[id] = c
	}
}

// creating runs a request that creates a container. The container is known before, so that an exit is not missed of which the event comes
// before the answer. One that may have been created by a request without an answer is deleted, since it is not known.
func (l *link) creating(
	ctx context.Context, id string, request func(*monitor.Client) (monitor.Container, error),
) (monitor.Container, error) {
	l.change(func() { l.containers[id] = monitor.Container{ID: id, Phase: monitor.Creating} })
	var c monitor.Container
	err := l.ask(ctx, false, func(m *monitor.Client) (err error) {
		c, err = request(m)
		return err
	})
	if err != nil {
		if _, answered := errors.AsType[*monitor.Error](err); !answered {
			err = errors.Join(err, l.undo(ctx, id))
		} else {
			l.change(func() { l.forget(id, "") })
		}
		return c, err
	}
	l.put(c)
	return c, nil
}

// undo deletes a container that was created, or is being created, after [Detached]. It succeeds if there is none.
func (l *link) undo(ctx context.Context, id string) error {
	ctx, cancel := Detached(ctx, UndoTimeout)
	defer cancel()
	err := l.ask(ctx, true, func(m *monitor.Client) error {
		_, err := m.Delete(ctx, id)
		return err
	})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("delete container without a start: %w", err)
	}
	l.change(func() { l.forget(id, "") })
	return nil
}

// put stores the state of a container, as an answer of the monitor. An exit that is known is kept: its event may have come before.
func (l *link) put(c monitor.Container) {
	l.change(func() {
		if old := l.containers[c.ID]; old.Exit != nil && c.Exit == nil {
			c.Phase, c.Exit = old.Phase, old.Exit
		}
		l.containers[c.ID] = c
	})
}

// putCommand stores the state of a command like [link.put].
func (l *link) putCommand(id string, p monitor.Process) {
	l.change(func() {
		c, known := l.containers[id]
		if !known {
			return
		}
		i := slices.IndexFunc(c.Processes, func(old monitor.Process) bool { return old.ID == p.ID })
		c.Processes = slices.Clone(c.Processes)
		if i < 0 {
			c.Processes = append(c.Processes, p)
		} else {
			if p.Exit == nil {
				p.Exit = c.Processes[i].Exit
			}
			c.Processes[i] = p
		}
		l.containers[id] = c
	})
}

// get returns a container. A nil link has none.
func (l *link) get(id string) (monitor.Container, bool) {
	if l == nil {
		return monitor.Container{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c, known := l.containers[id]
	return c, known
}

// all returns all containers. A nil link has none.
func (l *link) all() []monitor.Container {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.containers))
}

// hasSandbox reports whether the monitor has a sandbox. A nil link has none.
func (l *link) hasSandbox(name string) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sandboxes[name]
}

// allSandboxes returns the names of all sandboxes.
func (l *link) allSandboxes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.sandboxes))
}

// deleteSandbox deletes a sandbox with its process. It succeeds if there is none.
func (l *link) deleteSandbox(ctx context.Context, name string) error {
	err := l.ask(ctx, true, func(m *monitor.Client) error { return m.DeleteSandbox(ctx, name) })
	if err != nil {
		return err
	}
	l.change(func() {
		delete(l.sandboxes, name)
		l.forget(name, "")
	})
	return nil
}

// until waits until met, which is called with the lock and after each change, returns true, or ctx ends. If the link is closed, the error
// is [errdefs.ErrUnavailable].
func (l *link) until(ctx context.Context, met func() bool) error {
	for {
		l.mu.Lock()
		done, changed := met(), l.changed
		l.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-l.ended:
			return fmt.Errorf("the engine is closed: %w", errdefs.ErrUnavailable)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// connection returns the connection, and waits for it while the monitor is being started again.
func (l *link) connection(ctx context.Context) (*monitor.Client, error) {
	var c *monitor.Client
	err := l.until(ctx, func() bool {
		c = l.client
		return c != nil
	})
	return c, err
}

// ask sends a request. One that changes nothing, or that may be repeated, is sent again if the monitor was lost meanwhile.
func (l *link) ask(ctx context.Context, repeat bool, request func(*monitor.Client) error) error {
	for {
		c, err := l.connection(ctx)
		if err != nil {
			return err
		}
		if err = request(c); !errors.Is(err, monitor.ErrClosed) || !repeat {
			return err
		}
		if err := l.until(ctx, func() bool { return l.client != c }); err != nil {
			return err
		}
	}
}
