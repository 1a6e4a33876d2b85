package exec

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/errdefs"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/proctree"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// execution is a command that was started.
type execution struct {
	log            *slog.Logger
	begun          time.Time // when its start began
	process        client.Process
	exited         <-chan client.ExitStatus
	stopWaiting    context.CancelFunc
	outputClosed   <-chan struct{} // closed when no process holds the output open
	stdout, stderr *capture
	tree           proctree.Tree
}

// awaitShim waits until the shim of a container responds, as long as a command may take to start.
func (r *Runner) awaitShim(ctx context.Context, c client.Container) error {
	ctx, cancel := context.WithTimeout(ctx, engine.CreateTimeout)
	defer cancel()
	return r.config.AwaitResponse(ctx, record.Info(ctx, c).SandboxID)
}

// start starts a command whose output is kept. It calls expire if the timeout expires before the OCI runtime has started the command.
func (r *Runner) start(ctx context.Context, q request, expire func()) (*execution, error) {
	stdout, stderr := newCapture(q.max), newCapture(q.max)
	streams := cio.NewCreator(cio.WithStreams(nil, stdout, stderr), cio.WithFIFODir(r.config.Dir))
	k := hook
	if q.timeout > 0 {
		k = probe
	}
	edit := func(p *specs.Process) { p.Args, p.Terminal = q.command, false }
	x, err := r.launch(ctx, q.uid, q.ref, r.marks.next(k), q.limit(expire), edit, streams)
	if err != nil {
		return nil, err
	}
	x.stdout, x.stderr = stdout, stderr
	return x, nil
}

// launch starts a process that has what the container's first process has, but for what edit changes. A process that is started in part
// cannot be found. If ctx ends, or the OCI runtime takes too long, that is therefore killed instead, see [starting].
func (r *Runner) launch(
	ctx context.Context, uid string, ref lifecycle.Ref, mark mark, limit limit, edit func(*specs.Process), streams cio.Creator,
) (_ *execution, err error) {
	c, err := r.config.Client.LoadContainer(ctx, record.ContainerID(uid, ref))
	if err != nil {
		return nil, err
	}
	if err := r.awaitShim(ctx, c); err != nil {
		return nil, err
	}
	start := r.watchStart(ctx, c.ID(), mark, limit)
	defer func() { err = start.end(err) }()
	ctx, cancel := engine.Detached(ctx, engine.CreateTimeout)
	defer cancel()
	task, err := c.Task(ctx, nil)
	if err != nil {
		return nil, err
	}
	s, err := c.Spec(ctx)
	if err != nil {
		return nil, err
	}
	env, err := r.config.Environment(ctx, c.ID(), s)
	if err != nil {
		return nil, err
	}
	x := &execution{log: r.config.Log, begun: start.begun}
	if x.process, err = task.Exec(ctx, mark.String(), processOf(s.Process, env, mark, edit), streams); err != nil {
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
	x.tree = proctree.Tree{
		Cgroup: r.config.Cgroups.ProcessDir(uid, c.ID()), Belongs: mark.is, Leader: int(x.process.Pid()),
		Session: r.config.Session(c.ID(), mark.String()),
	}
	closed := make(chan struct{})
	x.outputClosed = closed
	go func() {
		x.process.IO().Wait()
		close(closed)
	}()
	return x, nil
}

// processOf returns the process of a command in a container with this process and environment.
func processOf(container *specs.Process, env []string, mark mark, edit func(*specs.Process)) *specs.Process {
	p := *container
	p.Env = slices.Clone(env)
	edit(&p)
	p.Env = append(p.Env, proctree.MarkVariable+"="+mark.String()) // the last one, see proctree
	return &p
}

// drain waits for the rest of the output, with a timeout because a process that was left may hold it open.
func (x *execution) drain() {
	t := time.NewTimer(drainTimeout)
	defer t.Stop()
	select {
	case <-x.outputClosed:
	case <-t.C:
	}
}

func (x *execution) output(max int) []byte {
	out := append(x.stdout.bytes(), x.stderr.bytes()...)
	return out[:min(len(out), max)]
}

// kill kills all processes that the command has started.
func (x *execution) kill(ctx context.Context) {
	ctx, cancel := engine.Detached(ctx, killTimeout)
	defer cancel()
	if err := x.tree.Kill(ctx); err != nil {
		x.log.WarnContext(ctx, "cannot kill the processes of a command", slog.Any("error", err))
	}
}

// delete removes the command from the engine and from disk. While processes are left that may write, the engine would wait for them, and
// close their output in the end. Then only this side of the streams is closed.
func (x *execution) delete(ctx context.Context, left bool) {
	ctx, cancel := engine.Detached(ctx, engine.UndoTimeout)
	defer cancel()
	defer x.stopWaiting()
	var err error
	if !left {
		select {
		case <-x.exited: // closed, or the exit status: the process can be deleted
		case <-ctx.Done():
		}
		if _, err = x.process.Delete(ctx); err == nil {
			return
		}
	}
	// If the container was removed, the engine has no record of the process. The streams must be closed here.
	streams := x.process.IO()
	streams.Cancel()
	streams.Wait()
	_ = streams.Close()
	if err != nil && !errdefs.IsNotFound(err) && !engine.Unavailable(err) {
		x.log.WarnContext(ctx, "cannot clean up after a command", slog.Any("error", err))
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
