package shim

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/containerd/containerd/v2/pkg/sys/reaper"
	runc "github.com/containerd/go-runc"
	"golang.org/x/sys/unix"
)

// exitReaper reaps the children of the shim: the commands of the OCI runtime, the processes of containers, and what those orphan.
// It replaces containerd's reaper, which blocks for up to a second per exit as soon as more than 32 exits wait for the task
// service. The service may itself wait for the exit of a runtime command, which would be behind them (containerd#13814).
//
// Here no exit waits for another one: an exit of a command is passed to its caller, every other exit is queued for the task service
// without a limit, in order. Its methods are safe for concurrent use.
type exitReaper struct {
	mu       sync.Mutex
	commands map[int]chan runc.Exit // commands of the OCI runtime that run, by process ID
	queue    []runc.Exit
	queued   chan struct{} // holds a token while the queue may have entries
}

func newExitReaper() *exitReaper {
	return &exitReaper{commands: map[int]chan runc.Exit{}, queued: make(chan struct{}, 1)}
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

// reap reaps all children that have exited. Call it on SIGCHLD. It does not block.
func (r *exitReaper) reap() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD), err == nil && pid <= 0:
			return nil
		case err != nil:
			return err
		}
		r.dispatch(runc.Exit{Timestamp: time.Now(), Pid: pid, Status: exitCode(status)})
	}
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
	r.mu.Lock() // the command must not be reaped before it is registered
	defer r.mu.Unlock()
	if err := c.Start(); err != nil {
		return nil, err
	}
	exit := make(chan runc.Exit, 1)
	r.commands[c.Process.Pid] = exit
	return exit, nil
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
	_ = c.Wait() // the process was reaped: this waits for its output
	return e.Status, nil
}

// exitCode is the exit code of a process, or 128 plus the number of the signal that terminated it.
func exitCode(s unix.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// serviceExits returns the channel from which containerd's task service reads exits. The service subscribes to containerd's reaper,
// whose only way to send is its own loop over wait4, so the channel is read from the reaper's unexported list of subscribers.
func serviceExits(m *reaper.Monitor) (chan<- runc.Exit, error) {
	m.Lock()
	defer m.Unlock()
	field := reflect.ValueOf(m).Elem().FieldByName("subscribers")
	if field.Kind() != reflect.Map || field.Len() != 1 {
		return nil, fmt.Errorf("subscribers of containerd's reaper: got %v, want one", field)
	}
	subscribers := reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
	c, ok := reflect.TypeAssert[chan runc.Exit](subscribers.MapKeys()[0])
	if !ok {
		return nil, fmt.Errorf("subscribers of containerd's reaper: unexpected type %v", field.Type())
	}
	return c, nil
}
