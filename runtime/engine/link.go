package engine

import (
	"cmp"
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
	// unavailableAfter is how long the monitor may not be reached before that is reported. Requests fail then, until it is. It is longer
	// than it takes to replace one that hangs.
	unavailableAfter = 20 * time.Second
	// startGrace is how long a monitor that was started may take to answer before it is taken for one that hangs. It takes over its
	// containers first. The grace doubles with each monitor that was replaced, up to maxGrace.
	startGrace, maxGrace = 10 * time.Second, 4 * time.Minute
	// placeInterval is the time between two attempts to move the monitor to its cgroup, each of which has placeTimeout.
	placeInterval, placeTimeout = 30 * time.Second, 20 * time.Second
	// monitorCheckInterval and monitorCheckTimeout determine how soon a monitor that does not respond is replaced: in less than 20 s.
	monitorCheckInterval = 10 * time.Second
	monitorCheckTimeout  = 5 * time.Second
	// keeperInterval is the time for a keeper that was started to start the monitor, before another keeper is started.
	keeperInterval = 2 * time.Second
	// reconnectInterval is the time between two attempts to connect to the monitor. Its keeper starts it again at once. It is retryInterval
	// after unavailableAfter.
	reconnectInterval, retryInterval = 20 * time.Millisecond, time.Second
)

// Reasons for which the monitor was started again.
const (
	monitorExited = "it exited or was killed"
	monitorHung   = "it did not respond and was killed"
)

// link is the engine's connection to the monitor, and what it knows of the containers there. It connects again when the monitor was
// started again, and starts it if there is none. It is safe for concurrent use.
type link struct {
	linkOptions
	begun  time.Time // when a keeper was started; used by one goroutine
	failed error     // why that failed, likewise
	cause  string    // why the monitor is started again, likewise; "": monitorExited
	stop   context.CancelFunc
	close  func() error  // [link.Close], once
	ended  chan struct{} // closed when the connection is no longer maintained

	mu           sync.Mutex
	client       *monitor.Client // nil: not connected
	down         error           // why the monitor cannot be reached; nil: it can, or is being started
	listed       bool            // the containers and sandboxes are known
	process      processHandle   // of the monitor that the client is connected to
	roles        []int           // the process IDs of its keeper and of it
	containers   map[string]monitor.Container
	sandboxes    map[string]bool
	replacing    int  // the process ID of the monitor that was asked to execute another program in place; 0: none
	requested    bool // that was requested, and its result is not known
	replacements int  // that were completed or have failed
	waiters      map[*waiter]struct{}
}

// waiter waits for a change of a link, see [link.until].
type waiter struct {
	met  func() bool
	done chan struct{} // closed when met has returned true
}

// linkOptions say where the monitor is, and how it is started.
type linkOptions struct {
	Dir     string // the monitor's state directory
	Program string // absolute path of podstead-monitor
	Cgroup  string // see [Options.MonitorCgroup]
	Place   func(ctx context.Context, pids ...int) error
	Report  func(MonitorReport)
	Log     *slog.Logger
	// UnavailableAfter is unavailableAfter in tests; 0: the constant.
	UnavailableAfter time.Duration
	// commands are those that were prepared; nil: none are.
	commands *commands
	// ReplaceTimeout is replaceTimeout in tests; 0: the constant.
	ReplaceTimeout time.Duration
}

// MonitorReport is a change of the monitor. One field is set.
type MonitorReport struct {
	Restarted   string // why the monitor was started again
	Unavailable error  // why the monitor cannot be reached, which is tried again
	Available   bool   // it can be reached again
	Replaced    *MonitorReplacement
}

// openLink connects to the monitor, which is started if there is none. It returns when the monitor is connected to, or cannot be reached
// and is tried again. The caller must close the link.
func openLink(ctx context.Context, o linkOptions) (*link, error) {
	l := &link{linkOptions: o, ended: make(chan struct{}), containers: map[string]monitor.Container{}}
	l.sandboxes = map[string]bool{}
	if err := privateDir(o.Dir); err != nil {
		return nil, err
	}
	detached := context.WithoutCancel(ctx)
	l.close = sync.OnceValue(func() error { return l.Close(detached) })
	running, stop := context.WithCancel(detached)
	l.stop = stop
	go l.run(running)
	if err := l.until(ctx, func() bool { return l.listed || l.down != nil }); err != nil {
		return nil, errors.Join(fmt.Errorf("start monitor: %w", err), l.close())
	}
	return l, nil
}

// Close closes the connection. The monitor and its containers keep running. A monitor without any is shut down.
func (l *link) Close(ctx context.Context) error {
	l.stop()
	<-l.ended
	l.mu.Lock()
	used := len(l.containers)+len(l.sandboxes) > 0 || !l.listed
	l.mu.Unlock()
	if used {
		return nil
	}
	err := l.shutdown(ctx)
	if errdefs.IsFailedPrecondition(err) {
		l.Log.WarnContext(ctx, "the monitor keeps running without a known container", slog.Any("error", err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("stop monitor: %w", err)
	}
	return nil
}

// shutdown shuts the monitor down, and returns when it and its keeper have exited. If it has containers, the error is
// [errdefs.ErrFailedPrecondition].
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
	if err := c.Shutdown(ctx); err != nil && !errors.Is(err, monitor.ErrClosed) {
		return err
	}
	if err := keeper.wait(ctx); err != nil {
		return err
	}
	keeper.reap()
	if l.Cgroup == "" {
		return nil
	}
	return cgroup.Remove(l.Cgroup)
}

// run maintains the connection until ctx ends.
func (l *link) run(ctx context.Context) {
	defer close(l.ended)
	go l.replace(ctx) // a disk that does not respond does not delay anything
	for l.connect(ctx) == nil {
		l.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		l.Log.WarnContext(ctx, "the monitor was lost, connecting again")
	}
}

// connect connects to the monitor and reads its list, until that succeeds or ctx ends.
func (l *link) connect(ctx context.Context) error {
	begun, grace := time.Now(), startGrace
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		err := l.try(ctx)
		if err == nil {
			l.reached(ctx)
			return nil
		}
		wait, late := reconnectInterval, time.Since(begun) >= cmp.Or(l.UnavailableAfter, unavailableAfter)
		if ctx.Err() == nil && (isHang(err) || late) && l.free(ctx, grace) { // late: a keeper without a monitor may hang
			grace = min(2*grace, maxGrace)
		}
		if ctx.Err() == nil && late {
			l.unreached(ctx, err)
			wait = retryInterval
		}
		next.Reset(wait)
		select {
		case <-next.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// isHang reports whether an error is that of a monitor that does not respond: the kernel accepts connections in its place until too many
// wait.
func isHang(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, unix.EAGAIN)
}

// free replaces a monitor that does not respond. It reports whether there was one.
func (l *link) free(ctx context.Context, grace time.Duration) bool {
	freed := monitor.Free(l.Dir, grace)
	if freed == (monitor.Freed{}) {
		return false
	}
	if freed.Monitors > 0 {
		l.cause = monitorHung
	}
	l.Log.ErrorContext(ctx, "the monitor does not respond, replacing it",
		slog.Int("monitors", freed.Monitors), slog.Int("keepers", freed.Keepers))
	return freed.Monitors > 0
}

// unreached makes requests fail until the monitor is reached. That is reported once.
func (l *link) unreached(ctx context.Context, err error) {
	l.mu.Lock()
	known := l.down != nil
	l.mu.Unlock()
	l.change(func() { l.down = err })
	if known {
		return
	}
	l.Log.WarnContext(ctx, "the monitor cannot be reached, retrying", slog.Any("error", err),
		slog.String("log", filepath.Join(l.Dir, monitor.LogFile)))
	l.report(MonitorReport{Unavailable: err})
}

// reached ends what unreached has begun.
func (l *link) reached(ctx context.Context) {
	l.mu.Lock()
	known := l.down != nil
	l.mu.Unlock()
	if !known {
		return
	}
	l.change(func() { l.down = nil })
	l.Log.InfoContext(ctx, "the monitor is available again")
	l.report(MonitorReport{Available: true})
}

func (l *link) report(r MonitorReport) {
	if l.Report != nil {
		l.Report(r)
	}
}

// place moves the processes of the monitor to their cgroup until that succeeds or ctx ends: systemd may not respond.
func (l *link) place(ctx context.Context, pids ...int) {
	warned := false
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		placing, cancel := context.WithTimeout(ctx, placeTimeout)
		err := l.Place(placing, pids...)
		cancel()
		if err == nil || ctx.Err() != nil {
			return
		}
		if !warned {
			warned = true
			l.Log.WarnContext(ctx, "cannot set up the cgroup of the monitor, retrying: until then it may stop with that of the daemon",
				slog.Any("error", err))
		}
		next.Reset(placeInterval)
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
	}
}

// try connects once. If no keeper runs, it starts one.
func (l *link) try(running context.Context) error {
	ctx, cancel := context.WithTimeout(running, monitorCheckTimeout)
	defer cancel()
	c, err := monitor.Dial(ctx, l.Dir)
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		return errors.Join(err, l.startKeeper(running))
	}
	hello, err := c.Hello(ctx)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	p, err := openProcess(hello.PID)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	containers, sandboxes, _, err := c.Subscribe(ctx) // it also proves that the process is the one that was opened
	if err != nil {
		p.close()
		return errors.Join(err, c.Close())
	}
	l.change(func() {
		l.client, l.process, l.roles, l.listed = c, p, []int{hello.Keeper, hello.PID}, true
		l.containers, l.sandboxes = map[string]monitor.Container{}, map[string]bool{}
		for _, one := range containers {
			l.containers[one.ID] = one
		}
		for _, name := range sandboxes {
			if l.containers[name].Exit == nil { // otherwise its process has exited before the connection
				l.sandboxes[name] = true
			}
		}
		l.commands.prune(l.containers)
	})
	return nil
}

// startKeeper starts a keeper, unless that was done a moment ago. It returns why the last one could not be started.
func (l *link) startKeeper(ctx context.Context) error {
	if time.Since(l.begun) >= keeperInterval {
		l.begun, l.failed = time.Now(), l.newKeeper(ctx)
	}
	return l.failed
}

// newKeeper starts a keeper, which starts the monitor. A keeper that finds another one exits. It is reaped if it exits before ctx ends.
func (l *link) newKeeper(ctx context.Context) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	errs, err := os.OpenFile(filepath.Join(l.Dir, monitor.LogFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
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
	p, err := openProcess(cmd.Process.Pid)
	_ = cmd.Process.Release() // it has no error
	if err != nil {
		return err
	}
	go func() { // cmd.Wait would need a thread as long as the keeper runs, and outlast the link
		defer p.close()
		_ = p.wait(ctx)
		p.reap()
	}()
	return nil
}

// follow applies events until the connection is lost or ctx ends. It kills a monitor that does not respond.
func (l *link) follow(ctx context.Context) {
	c := l.client
	if l.Place != nil {
		placing, cancel := context.WithCancel(ctx)
		defer cancel()
		go l.place(placing, l.roles...) // a bus that ignores the end of its context does not delay anything
	}
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
			l.apply(ctx, *e)
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
				l.cause = monitorHung
				l.process.kill() // its keeper starts another one
				_ = c.Close()    // one that waits for a disk keeps it open
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
	for w := range l.waiters {
		if w.met() {
			delete(l.waiters, w)
			close(w.done)
		}
	}
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
		l.commands.forget(e.Container, "")
		l.change(func() { l.forget(e.Container, "") })
	case monitor.EventLost:
		l.commands.forget(e.Container, e.Exec)
		l.change(func() { l.forget(e.Container, e.Exec) })
	case monitor.EventRestarted:
		if l.isReplacement(e.PID) {
			return // replace reports it
		}
		cause := cmp.Or(l.cause, monitorExited)
		l.cause = ""
		l.Log.WarnContext(ctx, "the monitor was started again, containers kept running", slog.String("cause", cause))
		l.report(MonitorReport{Restarted: cause})
	case monitor.EventFailed:
		l.Log.ErrorContext(ctx, "work of the monitor failed", slog.String("container", e.Container),
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

// isListed reports whether the containers and sandboxes are known.
func (l *link) isListed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.listed
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
// is [errdefs.ErrUnavailable]. Met must not block or panic. Each container and sandbox has a goroutine that waits here, so a change wakes
// only those whose condition it meets.
func (l *link) until(ctx context.Context, met func() bool) error {
	w := &waiter{met, make(chan struct{})}
	l.mu.Lock()
	if met() {
		l.mu.Unlock()
		return nil
	}
	if l.waiters == nil {
		l.waiters = map[*waiter]struct{}{}
	}
	l.waiters[w] = struct{}{}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiters, w)
	}()
	select {
	case <-w.done:
		return nil
	case <-l.ended:
		return fmt.Errorf("the engine is closed: %w", errdefs.ErrUnavailable)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// connection returns the connection, and waits for it while the monitor is being started again. If the monitor cannot be reached, the error
// is [errdefs.ErrUnavailable].
func (l *link) connection(ctx context.Context) (*monitor.Client, error) {
	var c *monitor.Client
	var down error
	err := l.until(ctx, func() bool {
		c, down = l.client, l.down
		return c != nil || down != nil
	})
	if err == nil && c == nil {
		err = fmt.Errorf("%w: the monitor cannot be reached: %w", errdefs.ErrUnavailable, down)
	}
	return c, err
}

// ask sends a request. One that changes nothing, or that may be repeated, is sent again if the monitor was lost meanwhile. Any request is
// sent again if it was refused because the monitor is being replaced.
func (l *link) ask(ctx context.Context, repeat bool, request func(*monitor.Client) error) error {
	for {
		before := l.replaced()
		c, err := l.connection(ctx)
		if err != nil {
			return err
		}
		err = request(c)
		if l.isRefused(err, before) {
			if err := l.until(ctx, func() bool { return l.client != c || !l.requested }); err != nil {
				return err
			}
			continue
		}
		if !errors.Is(err, monitor.ErrClosed) || !repeat {
			return err
		}
		if err := l.until(ctx, func() bool { return l.client != c }); err != nil {
			return err
		}
	}
}
