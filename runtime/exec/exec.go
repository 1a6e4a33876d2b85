// Package exec runs commands in containers, for exec probes, lifecycle hooks and sessions of clients.
//
// A command is marked by a variable in its environment, so that all processes that it has started can be found and killed, also by
// the next daemon.
package exec

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/proctree"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	// drainTimeout is how long the rest of the output of an exited command is waited for, if a process that it has left holds it
	// open.
	drainTimeout = 100 * time.Millisecond
	// killTimeout is for killing the processes of a command, which may be stuck in the kernel.
	killTimeout = 10 * time.Second
	// stateTimeout is for querying the state of a command. The daemon waits for it when it starts.
	stateTimeout = 2 * time.Second
	// cancelTimeout is how long a cancelled call waits until its command has been killed.
	cancelTimeout = 2 * time.Second
)

// Cgroups finds the cgroups of containers.
type Cgroups interface {
	// ProcessDir returns a directory that lists the processes of a container.
	ProcessDir(uid, id string) string
	// InPod reports whether a process is in the cgroup of a pod.
	InPod(pid int) bool
}

// Config is what a [Runner] needs. All fields are required.
type Config struct {
	// Session returns the session of a command in a container, or 0 if the command leads one.
	Session func(containerID, execID string) int
	// AwaitResponse waits until the shim of a sandbox responds, if it is known not to. Until then commands can be neither started nor
	// found to be impossible.
	AwaitResponse func(ctx context.Context, sandboxID string) error
	Monitor       Monitor
	Client        *client.Client
	Cgroups       Cgroups
	// Bundles is a directory that contains the bundles of containers.
	Bundles string
	// Dir contains the FIFOs of commands. It is removed when the daemon starts.
	Dir string
	// Environment returns the environment of a container, with the values of secrets.
	Environment func(ctx context.Context, id string, s *specs.Spec) ([]string, error)
	// Exited reports whether a container has no process.
	Exited func(ctx context.Context, uid string, ref lifecycle.Ref) bool
	Log    *slog.Logger
}

// Runner runs commands. It is safe for concurrent use.
type Runner struct {
	config Config
	marks  marks

	mu      sync.Mutex
	closed  bool
	ending  map[string]chan struct{} // commands that have timed out and still end, by request.key; closed when that is over
	running sync.WaitGroup
	closing chan struct{} // closed when all commands must be killed
}

// New returns a runner.
func New(c Config) *Runner {
	return &Runner{config: c, marks: newMarks(), ending: map[string]chan struct{}{}, closing: make(chan struct{})}
}

// Exec runs a command as the container's user and with the container's environment. It returns when the first process of the command
// has exited, with the exit code and the output: standard output followed by standard error, truncated to max bytes.
//
// The timeout includes the time that the OCI runtime takes to start the command; 0 means none. When it expires, and when ctx ends, the
// error is context.DeadlineExceeded or that of ctx, and the command and all processes that it has started are killed, as is an OCI runtime
// that has not started it. That may take longer than the call. The same command with a timeout waits for it. Processes that a command with
// a timeout has left are killed when the timeout expires. Processes that a command without a timeout has left keep running. Any other error
// means that the command could not be run, [lifecycle.FailureNotFound] because the container is not running.
func (r *Runner) Exec(
	ctx context.Context, uid string, ref lifecycle.Ref, command []string, timeout time.Duration, max int,
) (code int, output []byte, err error) {
	done := make(chan result, 1)
	q := request{uid: uid, ref: ref, command: command, timeout: timeout, left: timeout, max: max}
	if timeout > 0 {
		if err := r.awaitEarlier(ctx, &q); err != nil {
			return 0, nil, err
		}
	}
	if !r.begin(func() { r.run(engine.Context(ctx), q, done) }) {
		return 0, nil, engine.Failure(ctx, lifecycle.FailureUnavailable, "", errors.New("exec: the runtime is closed"))
	}
	a := await(ctx, done)
	return a.code, a.output, a.err
}

// await waits for the result of a command. If ctx ends, it waits no longer than [cancelTimeout].
func await(ctx context.Context, done <-chan result) result {
	select {
	case a := <-done:
		return a
	case <-ctx.Done():
	}
	late := time.NewTimer(cancelTimeout)
	defer late.Stop()
	select {
	case a := <-done:
		return a
	case <-late.C:
		return result{err: context.Cause(ctx)}
	}
}

// request is a command to run.
type request struct {
	uid     string
	ref     lifecycle.Ref
	command []string
	timeout time.Duration
	left    time.Duration // what is left of the timeout
	max     int
}

// key identifies a command in a container.
func (q request) key() string { return fmt.Sprintf("%s %v %q", q.uid, q.ref, q.command) }

// timedOut is the error of a command whose timeout has expired.
func (q request) timedOut() error {
	return fmt.Errorf("%v: not done within %v: %w", q, q.timeout, context.DeadlineExceeded)
}

func (q request) String() string { return "exec in container " + q.ref.Container }

// startError is the error of a command that could not be started. If starting a command with a timeout exceeds the engine's timeout,
// it has also exceeded its own.
func (q request) startError(ctx context.Context, err error, exited bool) error {
	switch {
	case exited:
		return engine.Failure(ctx, lifecycle.FailureNotFound, "", fmt.Errorf("%v: %w", q, err))
	case q.timeout > 0 && errdefs.IsDeadlineExceeded(err):
		return fmt.Errorf("%v: not started: %w (%w)", q, context.DeadlineExceeded, err)
	}
	return engine.Failure(ctx, lifecycle.FailureRetry, "", fmt.Errorf("%v: %w", q, err))
}

// result is what [Runner.Exec] returns.
type result struct {
	code   int
	output []byte
	err    error
}

// awaitEarlier waits for the end of an earlier attempt that has timed out, so that attempts do not accumulate. The time that it takes is
// part of the timeout.
func (r *Runner) awaitEarlier(ctx context.Context, q *request) error {
	r.mu.Lock()
	ended := r.ending[q.key()]
	r.mu.Unlock()
	if ended == nil {
		return nil
	}
	begun := time.Now()
	late := time.NewTimer(q.timeout)
	defer late.Stop()
	select {
	case <-ended:
		q.left -= time.Since(begun)
		return nil
	case <-late.C:
		return q.timedOut()
	case <-ctx.Done():
		return fmt.Errorf("%v: %w", q, context.Cause(ctx))
	}
}

// expired makes the same command wait until ended is called, because this one has timed out and still ends.
func (r *Runner) expired(q request) (ended func()) {
	over := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending[q.key()] = over
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		close(over)
		if r.ending[q.key()] == over { // not that of another probe with the same command
			delete(r.ending, q.key())
		}
	}
}

// run runs a command until it and all processes that must be killed with it have exited. It sends the result earlier, as soon as it is
// known.
func (r *Runner) run(ctx context.Context, q request, done chan<- result) {
	report := func(a result) {
		select {
		case done <- a:
		default: // the timeout has expired, which was the result
		}
	}
	ended := func() {}
	defer func() { ended() }()
	expire := sync.OnceFunc(func() {
		ended = r.expired(q)
		report(result{err: q.timedOut()})
	})
	if q.timeout > 0 {
		monitored, err := r.config.Monitor.Runs(ctx, record.ContainerID(q.uid, q.ref))
		if err != nil {
			report(result{err: q.startError(ctx, err, false)})
			return
		}
		if monitored {
			r.runByMonitor(ctx, q, report, expire)
			return
		}
	}
	x, err := r.start(ctx, q, expire)
	if err != nil {
		report(result{err: q.startError(ctx, err, r.config.Exited(ctx, q.uid, q.ref))})
		return
	}
	var left bool
	defer func() { x.delete(ctx, left) }()
	var expired <-chan time.Time // nil: never
	if q.timeout > 0 {
		timer := time.NewTimer(q.left - time.Since(x.begun))
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case status := <-x.exited:
		if err := status.Error(); err != nil {
			report(result{err: engine.Failure(ctx, lifecycle.FailureRetry, "", fmt.Errorf("%v: wait: %w", q, err))})
			x.kill(ctx)
			return
		}
		x.drain()
		report(result{code: int(status.ExitCode()), output: x.output(q.max)})
		left = r.waitForOthers(ctx, x, expired)
	case <-expired:
		expire()
		x.kill(ctx)
	case <-ctx.Done():
		x.kill(ctx)
		report(result{err: fmt.Errorf("%v: %w", q, context.Cause(ctx))})
	case <-r.closing:
		x.kill(ctx)
		report(result{err: engine.Failure(ctx, lifecycle.FailureUnavailable, "", fmt.Errorf("%v: the runtime is closed", q))})
	}
}

// waitForOthers waits for the processes that an exited command has left: until its timeout, after which they are killed, or, for a command
// without a timeout, until they have closed the output. It reports whether processes are left that may still write, because the runner
// is closed.
func (r *Runner) waitForOthers(ctx context.Context, x *execution, expired <-chan time.Time) (left bool) {
	if expired == nil {
		select {
		case <-x.outputClosed:
			return false
		case <-r.closing:
			return true
		}
	}
	if x.tree.IsEmpty(ctx) {
		return false
	}
	select {
	case <-expired:
	case <-r.closing:
	}
	x.kill(ctx)
	return false
}

// begin calls run in a goroutine. It reports false if the runner is closed.
func (r *Runner) begin(run func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.running.Go(run)
	return true
}

// Close kills all running commands and waits for their exit. It gives up after a timeout, so that an engine that does not answer can be
// closed.
func (r *Runner) Close() {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.closing)
	}
	r.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		r.running.Wait()
		close(ended)
	}()
	late := time.NewTimer(killTimeout)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
	}
}

// KillLeft kills the commands that an earlier daemon has left when it was killed. The processes of a command with a timeout are all killed,
// those of another command only if its first process is running. If a shim does not respond, such commands of its containers keep running.
func (r *Runner) KillLeft(ctx context.Context) error {
	r.killStarts()
	err := os.RemoveAll(r.config.Dir)
	list, listErr := r.config.Client.Containers(ctx, fmt.Sprintf("labels.%q", record.LabelUID))
	if err = errors.Join(err, listErr); err != nil {
		return fmt.Errorf("kill commands of an earlier daemon: %w", err)
	}
	var trees []proctree.Tree
	for _, c := range list {
		info := record.Info(ctx, c)
		if info.Labels[record.LabelExit] != "" {
			continue
		}
		cgroup := r.config.Cgroups.ProcessDir(info.Labels[record.LabelUID], c.ID())
		left, leftErr := r.marks.left(cgroup, func(m mark) (bool, error) { return runs(ctx, c, m) })
		err = errors.Join(err, leftErr)
		for _, m := range left {
			trees = append(trees, proctree.Tree{Cgroup: cgroup, Belongs: m.is})
		}
	}
	ctx, cancel := engine.WithTimeout(ctx, killTimeout)
	defer cancel()
	for _, t := range trees {
		err = errors.Join(err, t.Kill(ctx))
	}
	return err
}

// hungUp is the exit code of a process that SIGHUP has terminated.
const hungUp = 128 + uint32(unix.SIGHUP)

// runs reports whether the first process of a command is running, or would be if its terminal had not been closed with the earlier daemon,
// which has it if there is no shim.
func runs(ctx context.Context, c client.Container, m mark) (bool, error) {
	ctx, cancel := engine.WithTimeout(ctx, stateTimeout)
	defer cancel()
	status, err := func() (client.Status, error) {
		task, err := c.Task(ctx, nil)
		if err != nil {
			return client.Status{}, err
		}
		process, err := task.LoadProcess(ctx, m.String(), nil)
		if err != nil {
			return client.Status{}, err
		}
		return process.Status(ctx)
	}()
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("query command %v: %w", m, err)
	}
	return status.Status != client.Stopped || status.ExitStatus == hungUp, nil
}
