package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	api "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/log"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/attach"
	"github.com/podstead/podstead/internal/crilog"
)

// logs copies the output of one container to its log file and to the clients that are attached to it. Nil is a container without a log
// file.
type logs struct {
	writer   *crilog.Writer
	pumps    sync.WaitGroup
	stdin    *attach.Stdin
	attached *attach.Container
	// held keeps the FIFOs open for writing until the container has opened them. A FIFO without a writer is at EOF.
	held []*os.File
	// complete is closed when all output is in the log. The first call begins to wait for it.
	complete func() <-chan struct{}
}

// openLogs opens the log file and the standard input of a container that is about to be created. It replaces the URI in the request by the
// FIFOs that the OCI runtime's side copies the container's pipes to and from.
func openLogs(ctx context.Context, r *api.CreateTaskRequest, t *tasks) (_ *logs, err error) {
	o, ours, err := parseOutput(r.Stdout)
	if !ours {
		return nil, nil
	}
	defer func() {
		if err != nil {
			err = errgrpc.ToGRPCf(errdefs.ErrInvalidArgument, "container %s: %v", r.ID, err)
		}
	}()
	if err != nil {
		return nil, err
	}
	l := &logs{}
	l.complete = sync.OnceValue(l.finish)
	if l.writer, err = crilog.Open(o.Log, o.Options); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.created()
			l.drain(drainTimeout)
		}
	}()
	if o.Journal != nil {
		l.writer.CopyTo(crilog.NewJournal(*o.Journal, ""))
	}
	if o.Stdin != NoStdin {
		// Closing the standard input of a terminal would close the terminal.
		l.stdin, err = attach.NewStdin(filepath.Join(r.Bundle, "stdin"), o.Stdin == OnceStdin && !r.Terminal,
			func() error { return t.closeIO(ctx, r.ID) })
		if err != nil {
			return nil, err
		}
		r.Stdin = l.stdin.Path()
	}
	l.attached = attach.NewContainer(attach.Options{
		Stdin: l.stdin, Terminal: r.Terminal, Resize: func(s attach.Size) error { return t.resize(ctx, r.ID, s) },
	})
	if r.Stdout, err = l.pump(ctx, r.Bundle, crilog.Stdout); err != nil {
		return nil, err
	}
	r.Stderr = "" // a terminal has one output stream
	if !r.Terminal {
		r.Stderr, err = l.pump(ctx, r.Bundle, crilog.Stderr)
	}
	return l, err
}

// pump creates a FIFO and starts to copy it to the log.
func (l *logs) pump(ctx context.Context, bundle string, s crilog.Stream) (string, error) {
	path := filepath.Join(bundle, string(s))
	if err := unix.Mkfifo(path, 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
		return "", fmt.Errorf("create fifo %s: %w", path, err)
	}
	r, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	w, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", errors.Join(err, r.Close())
	}
	l.held = append(l.held, w)
	copied := l.attached.Copy(r, string(s))
	l.pumps.Go(func() {
		defer r.Close()
		if err := l.writer.Copy(copied, s); err != nil {
			log.G(ctx).WithError(err).WithField("fifo", path).Error("read container output")
		}
	})
	return path, nil
}

// created closes the write ends. Call it when the container has opened the FIFOs or its creation has failed.
func (l *logs) created() {
	if l == nil {
		return
	}
	for _, w := range l.held {
		_ = w.Close()
	}
	l.held = nil
	l.stdin.Created()
}

// finish closes the log when all output is in it.
func (l *logs) finish() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.pumps.Wait()
		_ = l.writer.Close()
	}()
	return done
}

// await waits until all output of a container that has exited is in its log, for at most the timeout.
func (l *logs) await(timeout time.Duration) {
	if l == nil {
		return
	}
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-l.complete():
	case <-t.C:
	}
}

// drain waits like await, for the output of a container that is deleted. Then it disconnects clients.
func (l *logs) drain(timeout time.Duration) {
	if l == nil {
		return
	}
	l.await(timeout)
	l.attached.Close()
}
