package shim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/task"
	containerdshim "github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/containerd/v2/pkg/shutdown"
	"github.com/containerd/containerd/v2/pkg/sys/reaper"
	"github.com/containerd/log"
	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/attach"
)

const (
	// listenerFD is the file descriptor on which the start action passes the socket to serve.
	listenerFD = 3

	// orphanCheck is the interval at which a shim without containers checks that the daemon still has a record of it.
	orphanCheck = 30 * time.Second

	// idleTime is how long no child may have exited, such as an OCI runtime, before the shim returns unused memory to the kernel.
	idleTime = 10 * time.Second

	// gcPercent is the growth of the heap between two garbage collections, in percent, after the first one.
	gcPercent = 40

	// endTimeout bounds each step of the shutdown: publishing the last events, and answering the shutdown request.
	endTimeout = 2 * time.Second
)

// server is a shim that serves requests.
type server struct {
	namespace, id string
	debug         bool
}

func (s *server) run(ctx context.Context) error {
	// The shim must be a subreaper before the first process of a container exists.
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, unix.SIGCHLD, unix.SIGPIPE, unix.SIGTERM, unix.SIGINT)
	if err := reaper.SetSubreaper(1); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	postponeCollection()
	runtime.GOMAXPROCS(2)
	if err := s.setLog(); err != nil {
		return err
	}
	listener, err := net.FileListener(os.NewFile(listenerFD, "socket"))
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer os.Remove(listener.Addr().String())

	publisher, err := containerdshim.NewPublisher(os.Getenv("TTRPC_ADDRESS"))
	if err != nil {
		return fmt.Errorf("publish events: %w", err)
	}
	ctx, end := shutdown.WithShutdown(ctx)
	tasks := newTasks(end)
	tasks.TTRPCTaskService, err = task.NewTaskService(ctx, tasks.watch(publisher), end)
	if err != nil {
		return fmt.Errorf("task service: %w", err)
	}
	children, err := reapFor(ctx, reaper.Default)
	if err != nil {
		return fmt.Errorf("task service: %w", err)
	}
	end.RegisterCallback(tasks.stopPause)
	rpc, err := ttrpc.NewServer(ttrpc.WithServerHandshaker(ttrpc.UnixSocketRequireSameUser()))
	if err != nil {
		return err
	}
	tasks.register(rpc)
	// The working directory is the bundle.
	clients, err := attach.Listen(attach.Socket)
	if err != nil {
		return fmt.Errorf("serve attach clients: %w", err)
	}
	defer clients.Close()
	served := make(chan error, 2)
	go func() { served <- rpc.Serve(ctx, listener) }()
	go func() { served <- tasks.attached.Serve(clients) }()

	err = s.loop(ctx, tasks, children, signals, served, end)
	return errors.Join(err, s.close(ctx, rpc, publisher))
}

// loop handles signals until the shim shuts down.
//
// SIGTERM does not stop a shim that has running containers. systemd signals the whole cgroup at shutdown. The shim must outlive
// the containers to receive their last output and their exit codes.
func (s *server) loop(
	ctx context.Context, tasks *tasks, children *exitReaper, signals <-chan os.Signal, served <-chan error, end shutdown.Service,
) error {
	idle := time.NewTicker(orphanCheck)
	defer idle.Stop()
	calm := time.NewTimer(idleTime)
	defer calm.Stop()
	var collected int64
	for {
		select {
		case <-end.Done():
			return nil
		case err := <-served:
			return fmt.Errorf("serve: %w", err)
		case <-idle.C:
			if tasks.orphaned() {
				end.Shutdown()
			}
		case <-calm.C:
			collected = freeMemory(collected)
		case sig := <-signals:
			switch sig {
			case unix.SIGCHLD:
				calm.Reset(idleTime)
				if err := children.reap(); err != nil {
					log.G(ctx).WithError(err).Error("reap children")
				}
			case unix.SIGTERM, unix.SIGINT:
				tasks.terminate()
			}
			// SIGPIPE is caught so that a log without a reader does not kill the shim.
		}
	}
}

// postponeCollection leaves the first garbage collection to the default of Go, which is at a heap of 4 MiB. A pod with one container that
// starts and rests allocates less. Without any collection its shim is smaller by 0.9 MiB: the first one makes the runtime of Go allocate
// lists of memory blocks, which it never frees. After that, collections are frequent, because each pod has a shim. See docs/design/lean.md.
func postponeCollection() {
	first := new([64]byte)
	runtime.AddCleanup(first, func(percent int) { debug.SetGCPercent(percent) }, gcPercent)
}

// freeMemory returns unused memory to the kernel if there was a garbage collection since the last time, when their number was collected.
// It returns the new number.
func freeMemory(collected int64) int64 {
	var stats debug.GCStats
	if debug.ReadGCStats(&stats); stats.NumGC == collected {
		return collected
	}
	debug.FreeOSMemory() // collects
	debug.ReadGCStats(&stats)
	return stats.NumGC
}

// close publishes the last events and answers the shutdown request.
func (s *server) close(ctx context.Context, rpc *ttrpc.Server, publisher *containerdshim.RemoteEventsPublisher) error {
	timeout := time.NewTimer(endTimeout)
	defer timeout.Stop()
	select {
	case <-publisher.Done():
	case <-timeout.C:
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err := rpc.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// setLog connects standard error to the FIFO in the bundle from which the daemon reads the shim's log. The daemon reopens the
// FIFO each time it starts.
func (s *server) setLog() error {
	level := log.WarnLevel
	if s.debug {
		level = log.DebugLevel
	}
	if err := errors.Join(log.SetLevel(level), log.SetFormat(log.TextFormat)); err != nil {
		return err
	}
	// Opened for reading and writing, the FIFO needs no reader and buffers output while the daemon is not running.
	fd, err := unix.Open("log", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	if err := unix.Dup3(fd, int(os.Stderr.Fd()), 0); err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	log.L.Logger.SetOutput(lossyWriter(fd))
	return nil
}

// lossyWriter writes to a non-blocking file descriptor and drops what does not fit.
type lossyWriter int

// Write implements io.Writer. It never returns an error.
func (fd lossyWriter) Write(b []byte) (int, error) {
	_, _ = unix.Write(int(fd), b)
	return len(b), nil
}
