package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	// drainTime is how long the output of a command that has ended is waited for, where a process that it has left
	// behind holds it open.
	drainTime = 100 * time.Millisecond
	// execEndTime bounds the killing of a command's processes, which may be stuck in the kernel.
	execEndTime = 10 * time.Second
	// execLag bounds how long a caller that has given up waits until what it started has ended.
	execLag = 2 * time.Second
)

// Exec runs a command in a run of a container, as the container's user and with its environment, and returns as soon as
// the command's first process has ended, with its status and what it has written to its standard output, followed by its
// standard error, cut to max bytes. More is taken from it, and dropped.
//
// The timeout (0: none) counts from the start of the command. When it is over, and when ctx ends, the command is killed
// with all that it has started, and the error is context.DeadlineExceeded or that of ctx. What a command with a timeout
// has left behind when it ends is killed when the timeout is over; what one without has left behind lives on. Any other
// error says that the command could not be run, [lifecycle.FailureNotFound] because the container does not run.
func (r *Runtime) Exec(
	ctx context.Context, uid string, ref lifecycle.Ref, command []string, timeout time.Duration, max int,
) (code int, output []byte, err error) {
	answer := make(chan execAnswer, 1)
	q := execQuery{uid: uid, ref: ref, command: command, timeout: timeout, max: max}
	if !r.execs.begin(func() { r.runExec(inNamespace(ctx), q, answer) }) {
		return 0, nil, fail(ctx, lifecycle.FailureUnavailable, "", errors.New("exec: the runtime is closed"))
	}
	select {
	case a := <-answer:
		return a.code, a.output, a.err
	case <-ctx.Done():
	}
	late := time.NewTimer(execLag)
	defer late.Stop()
	select {
	case a := <-answer:
		return a.code, a.output, a.err
	case <-late.C:
		return 0, nil, context.Cause(ctx)
	}
}

// execQuery is a command that is to be run.
type execQuery struct {
	uid     string
	ref     lifecycle.Ref
	command []string
	timeout time.Duration
	max     int
}

func (q execQuery) String() string { return "exec in container " + q.ref.Container }

// notStarted is the answer to a command that could not be started. One with a timeout that did not even start in the engine's time
// has exceeded its own.
func (q execQuery) notStarted(ctx context.Context, err error, over bool) error {
	switch {
	case over:
		return fail(ctx, lifecycle.FailureNotFound, "", fmt.Errorf("%v: %w", q, err))
	case q.timeout > 0 && errdefs.IsDeadlineExceeded(err):
		return fmt.Errorf("%v: not started within %v: %w", q, createTimeout, context.DeadlineExceeded)
	}
	return fail(ctx, lifecycle.FailureRetry, "", fmt.Errorf("%v: %w", q, err))
}

// execAnswer is what [Runtime.Exec] returns.
type execAnswer struct {
	code   int
	output []byte
	err    error
}

// runExec runs a command to the end of all that it has started and is to end with it. It answers before that, as soon as
// there is something to tell.
func (r *Runtime) runExec(ctx context.Context, q execQuery, answer chan<- execAnswer) {
	x, err := r.startExec(ctx, q)
	if err != nil {
		answer <- execAnswer{err: q.notStarted(ctx, err, r.isOver(ctx, q.uid, q.ref))}
		return
	}
	var left bool
	defer func() { x.delete(ctx, left) }()
	var over <-chan time.Time // nil: never
	if q.timeout > 0 {
		timer := time.NewTimer(q.timeout)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case status := <-x.exited:
		if err := status.Error(); err != nil {
			answer <- execAnswer{err: fail(ctx, lifecycle.FailureRetry, "", fmt.Errorf("%v: wait: %w", q, err))}
			x.kill(ctx)
			return
		}
		x.drain()
		answer <- execAnswer{code: int(status.ExitCode()), output: x.output(q.max)}
		left = r.outlive(ctx, x, over)
	case <-over:
		x.kill(ctx)
		answer <- execAnswer{err: fmt.Errorf("%v: not done within %v: %w", q, q.timeout, context.DeadlineExceeded)}
	case <-ctx.Done():
		x.kill(ctx)
		answer <- execAnswer{err: fmt.Errorf("%v: %w", q, context.Cause(ctx))}
	case <-r.execs.closing:
		x.kill(ctx)
		answer <- execAnswer{err: fail(ctx, lifecycle.FailureUnavailable, "", fmt.Errorf("%v: the runtime is closed", q))}
	}
}

// outlive looks after what a command that has ended has left behind: until its time is over, or, where the command had no
// time limit, for as long as it may write something. It reports whether something is left that may, because the runtime is
// closed.
func (r *Runtime) outlive(ctx context.Context, x *execution, over <-chan time.Time) (left bool) {
	if over == nil {
		select {
		case <-x.silent:
			return false
		case <-r.execs.closing:
			return true
		}
	}
	if pids, err := x.tree.members(); err == nil && len(pids) == 0 {
		return false
	}
	select {
	case <-over:
	case <-r.execs.closing:
	}
	x.kill(ctx)
	return false
}

// execution is a command that was started.
type execution struct {
	log            *slog.Logger
	process        client.Process
	exited         <-chan client.ExitStatus
	stopWaiting    context.CancelFunc
	silent         <-chan struct{} // closed when nobody holds the output open any more
	stdout, stderr *capture
	tree           tree
}

// startExec starts a command. Once that has begun it is done, also if ctx ends meanwhile: half a process cannot be found.
func (r *Runtime) startExec(ctx context.Context, q execQuery) (_ *execution, err error) {
	ctx, cancel := whole(ctx, createTimeout)
	defer cancel()
	c, err := r.client.LoadContainer(ctx, containerID(q.uid, q.ref))
	if err != nil {
		return nil, err
	}
	task, err := c.Task(ctx, nil)
	if err != nil {
		return nil, err
	}
	s, err := c.Spec(ctx)
	if err != nil {
		return nil, err
	}
	env, err := r.environmentOf(c.ID(), s)
	if err != nil {
		return nil, err
	}
	mark := r.execs.mark(q.timeout > 0)
	p := *s.Process
	p.Args, p.Terminal = q.command, false
	p.Env = append(slices.Clone(env), markVariable+"="+mark.String())

	x := &execution{log: r.log, stdout: newCapture(q.max), stderr: newCapture(q.max)}
	streams := cio.NewCreator(cio.WithStreams(nil, x.stdout, x.stderr), cio.WithFIFODir(r.execDir()))
	if x.process, err = task.Exec(ctx, mark.String(), &p, streams); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_, undone := x.process.Delete(ctx)
			err = errors.Join(err, undone)
		}
	}()
	waiting, stopWaiting := context.WithCancel(context.WithoutCancel(ctx))
	x.stopWaiting = stopWaiting
	if x.exited, err = x.process.Wait(waiting); err == nil {
		err = x.process.Start(ctx)
	}
	if err != nil {
		stopWaiting()
		return nil, err
	}
	x.tree = tree{cgroup: r.cgroups.procs(q.uid, c.ID()), belongs: mark.is, leader: int(x.process.Pid())}
	silent := make(chan struct{})
	x.silent = silent
	go func() {
		x.process.IO().Wait()
		close(silent)
	}()
	return x, nil
}

// drain waits for the rest of the output, which a process that was left behind may hold open for ever.
func (x *execution) drain() {
	t := time.NewTimer(drainTime)
	defer t.Stop()
	select {
	case <-x.silent:
	case <-t.C:
	}
}

func (x *execution) output(max int) []byte {
	out := append(x.stdout.bytes(), x.stderr.bytes()...)
	return out[:min(len(out), max)]
}

// kill ends everything that the command has started.
func (x *execution) kill(ctx context.Context) {
	ctx, cancel := whole(ctx, execEndTime)
	defer cancel()
	if err := x.tree.kill(ctx); err != nil {
		x.log.WarnContext(ctx, "a command's processes do not end", slog.Any("error", err))
	}
}

// delete takes away what is left of the command with the engine and on disk. While something is left that may write, the
// engine would wait for it, and close its output in the end: then only our end of the streams is closed.
func (x *execution) delete(ctx context.Context, left bool) {
	ctx, cancel := whole(ctx, undoTimeout)
	defer cancel()
	defer x.stopWaiting()
	var err error
	if !left {
		select {
		case <-x.exited: // closed, or its last word: the process can be deleted
		case <-ctx.Done():
		}
		if _, err = x.process.Delete(ctx); err == nil {
			return
		}
	}
	// With the container gone, the engine knows nothing of the process any more. The streams are ours.
	streams := x.process.IO()
	streams.Cancel()
	streams.Wait()
	_ = streams.Close()
	if err != nil && !errdefs.IsNotFound(err) && !isAway(err) {
		x.log.WarnContext(ctx, "a command was not cleaned up", slog.Any("error", err))
	}
}

// capture keeps the beginning of what is written to it, and drops the rest.
type capture struct {
	mu   sync.Mutex
	kept []byte
	room int
}

func newCapture(max int) *capture { return &capture{room: max} }

// Write implements io.Writer. It never fails.
func (c *capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(b), c.room)
	c.kept = append(c.kept, b[:n]...)
	c.room -= n
	return len(b), nil
}

func (c *capture) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.kept)
}

// execs are the commands that run, and their names.
type execs struct {
	instance string // tells the commands of this daemon from those of former ones
	number   atomic.Uint64

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	closing chan struct{} // closed when they are to end
}

func newExecs() *execs {
	return &execs{instance: uuid.NewString()[:8], closing: make(chan struct{})}
}

func (e *execs) mark(limited bool) mark {
	return mark{instance: e.instance, number: e.number.Add(1), limited: limited}
}

// begin calls run in a goroutine of its own, unless close was called before.
func (e *execs) begin(run func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.running.Go(run)
	return true
}

// close ends the commands that run, and returns when they have ended, or when that takes too long: an engine that hangs
// has to be closed too.
func (e *execs) close() {
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		close(e.closing)
	}
	e.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		e.running.Wait()
		close(ended)
	}()
	late := time.NewTimer(execEndTime)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
	}
}

// execDir holds the FIFOs of commands.
func (r *Runtime) execDir() string { return filepath.Join(r.opts.RunDir, "exec") }

// endFormerExecs ends the commands that a daemon which was killed has left: those with a time limit with all that they have
// started, the others only if they have not ended themselves.
func (r *Runtime) endFormerExecs(ctx context.Context) error {
	err := os.RemoveAll(r.execDir())
	list, listErr := r.client.Containers(ctx, fmt.Sprintf("labels.%q", labelUID))
	if err = errors.Join(err, listErr); err != nil {
		return fmt.Errorf("end commands of a former daemon: %w", err)
	}
	ctx, cancel := limit(ctx, execEndTime)
	defer cancel()
	for _, c := range list {
		record, infoErr := info(ctx, c)
		if infoErr != nil || record.Labels[labelExit] != "" {
			continue
		}
		cgroup := r.cgroups.procs(record.Labels[labelUID], c.ID())
		former, formerErr := formerMarks(cgroup, r.execs.instance)
		err = errors.Join(err, formerErr)
		for _, m := range former {
			err = errors.Join(err, tree{cgroup: cgroup, belongs: m.is}.kill(ctx))
		}
	}
	return err
}

// mark names a command in the environment of its processes.
type mark struct {
	instance string
	number   uint64
	limited  bool // it has a time limit, and so has what it leaves behind
}

// markVariable holds the mark of a command.
const markVariable = "PODSTEAD_EXEC"

func (m mark) String() string {
	kind := "hook"
	if m.limited {
		kind = "probe"
	}
	return m.instance + "-" + strconv.FormatUint(m.number, 10) + "-" + kind
}

func (m mark) is(text string) bool { return text == m.String() }
