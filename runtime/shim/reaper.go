package shim

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/pkg/sys/reaper"
	runc "github.com/containerd/go-runc"
	"github.com/containerd/log"
	"golang.org/x/sys/unix"
)

// exitReaper reaps the children of the shim: the commands of the OCI runtime, the processes of containers, and what those orphan.
// It replaces containerd's reaper, which blocks for up to a second per exit as soon as more than 32 exits wait for the task
// service. The service may itself wait for the exit of a runtime command, which would be behind them (containerd#13814).
//
// Here no exit waits for another one: an exit of a command is passed to its caller, every other exit is queued for the task service
// without a limit, in order. Its methods are safe for concurrent use.
//
// No lock is held while a command is started, since its execve waits for the disk. A child that exits meanwhile may be that command, whose
// process ID is not known yet. Unless it is older than all starts in progress, it is parked: it stays a zombie, which also keeps its
// process ID from being reused, and is looked at again at the end of each start.
type exitReaper struct {
	mu       sync.Mutex
	commands map[int]chan runc.Exit     // commands of the OCI runtime that run, by process ID
	starts   map[*exec.Cmd]int64        // starts in progress, by the time before which their process does not exist, see startTime
	execs    map[*exec.Cmd]*crunCommand // runs of crun that start commands in containers
	parked   bool                       // a child has exited that may belong to a start
	queue    []runc.Exit
	queued   chan struct{} // holds a token while the queue may have entries
}

func newExitReaper() *exitReaper {
	return &exitReaper{
		commands: map[int]chan runc.Exit{}, starts: map[*exec.Cmd]int64{}, execs: map[*exec.Cmd]*crunCommand{},
		queued: make(chan struct{}, 1),
	}
}

// reapFor returns the reaper of a process in which containerd's task service has just subscribed to m. From now on it waits for the
// commands of the OCI runtime, and sends all other exits to the service until ctx is cancelled.
func reapFor(ctx context.Context, m *reaper.Monitor) (*exitReaper, error) {
	service, err := serviceExits(m)
	if err != nil {
		return nil, err
	}
	r := newExitReaper()
	runc.Monitor = r
	go r.forward(ctx, service)
	return r, nil
}

// reap reaps all children that have exited and are not parked. Call it on SIGCHLD. It does not block.
func (r *exitReaper) reap() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reapLocked()
}

func (r *exitReaper) reapLocked() error {
	r.parked = false
	for {
		pid, err := exitedChild(unix.P_ALL, 0)
		switch {
		case err != nil:
			return err
		case pid == 0:
			return nil
		case r.mayBeStarting(pid):
			r.parked = true
			return r.reapBehind()
		}
		if err := r.reapChild(pid); err != nil {
			return err
		}
	}
}

// reapBehind reaps the children behind a parked one, which the kernel would return repeatedly.
func (r *exitReaper) reapBehind() error {
	for _, pid := range children() {
		exited, err := exitedChild(unix.P_PID, pid)
		if err == nil && exited != 0 && !r.mayBeStarting(pid) {
			err = r.reapChild(pid)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reapChild reaps a child that has exited.
func (r *exitReaper) reapChild(pid int) error {
	for _, command := range r.execs {
		command.Exiting(pid)
	}
	var status unix.WaitStatus
	reaped, err := retry(func() (int, error) { return unix.Wait4(pid, &status, unix.WNOHANG, nil) })
	if err == nil && reaped == pid {
		r.dispatch(runc.Exit{Timestamp: time.Now(), Pid: pid, Status: exitCode(status)})
	}
	return err
}

// mayBeStarting reports whether a child that has exited may be the command of a start in progress.
func (r *exitReaper) mayBeStarting(pid int) bool {
	if _, known := r.commands[pid]; known || len(r.starts) == 0 {
		return false
	}
	born, err := startTime(pid)
	return err != nil || born >= slices.Min(slices.Collect(maps.Values(r.starts)))
}

// dispatch passes on an exit. The caller holds the lock.
func (r *exitReaper) dispatch(e runc.Exit) {
	if c, ok := r.commands[e.Pid]; ok {
		delete(r.commands, e.Pid)
		c <- e // buffered
		return
	}
	r.queue = append(r.queue, e)
	select {
	case r.queued <- struct{}{}:
	default:
	}
}

// forward sends the exits to the task service until ctx is cancelled.
func (r *exitReaper) forward(ctx context.Context, service chan<- runc.Exit) {
	for {
		select {
		case <-r.queued:
		case <-ctx.Done():
			return
		}
		r.mu.Lock()
		exits := r.queue
		r.queue = nil
		r.mu.Unlock()
		for _, e := range exits {
			select {
			case service <- e:
			case <-ctx.Done():
				return
			}
		}
	}
}

// Start implements [runc.ProcessMonitor].
func (r *exitReaper) Start(c *exec.Cmd) (chan runc.Exit, error) {
	if err := checkLost(c); err != nil {
		return nil, err
	}
	command, err := prepareCommand(c)
	if err != nil {
		return nil, err
	}
	if err := r.begin(c, command); err != nil {
		return nil, err
	}
	if err = c.Start(); err == nil {
		if err := command.Started(c.Process.Pid); err != nil {
			log.L.WithError(err).Warn("a command has the OOM score of the shim")
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.starts, c)
	if err != nil {
		delete(r.execs, c)
	}
	var exit chan runc.Exit
	if err == nil {
		exit = make(chan runc.Exit, 1)
		r.commands[c.Process.Pid] = exit
	}
	if r.parked {
		_ = r.reapLocked() // what fails here is tried again on the next SIGCHLD
	}
	return exit, err
}

// begin records that a command is about to be started. inContainer is what it starts in a container, or nil.
func (r *exitReaper) begin(c *exec.Cmd, inContainer *crunCommand) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, err := bootTime()
	if err != nil {
		return fmt.Errorf("start %s: %w", c.Path, err)
	}
	r.starts[c] = now
	if inContainer != nil {
		r.execs[c] = inContainer
	}
	return nil
}

// StartLocked implements [runc.ProcessMonitor]. Like that of containerd, it locks the thread during the start only.
func (r *exitReaper) StartLocked(c *exec.Cmd) (chan runc.Exit, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return r.Start(c)
}

// Wait implements [runc.ProcessMonitor].
func (r *exitReaper) Wait(c *exec.Cmd, exit chan runc.Exit) (int, error) {
	e := <-exit
	if err := r.finish(c); err != nil {
		log.L.WithError(err).Warn("the processes of a command that have no environment are not found")
	}
	_ = c.Wait() // the process was reaped: this waits for its output
	return e.Status, nil
}

// finish records what the command has started in a container, if it has. Meanwhile nothing is reaped.
func (r *exitReaper) finish(c *exec.Cmd) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	inContainer := r.execs[c]
	delete(r.execs, c)
	return inContainer.Finish()
}

// exitCode is the exit code of a process, or 128 plus the number of the signal that terminated it.
func exitCode(s unix.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}
