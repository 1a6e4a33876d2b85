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
)

const (
	// listenerFD is where the «start» action left the socket that the shim is to serve.
	listenerFD = 3

	// orphanCheck is how often an empty shim looks whether anybody still knows of it.
	orphanCheck = 30 * time.Second

	// quiet is how long no process ended, an OCI runtime's for example, before the shim gives unused memory back.
	quiet = 10 * time.Second

	// endTimeout bounds each step of the shim's end: the last events, and the answer to the request to end.
	endTimeout = 2 * time.Second
)

// server is a shim that serves.
type server struct {
	namespace, id string
	debug         bool
}

func (s *server) run(ctx context.Context) error {
	// Containers' processes become the shim's children before the first of them exists.
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, unix.SIGCHLD, unix.SIGPIPE, unix.SIGTERM, unix.SIGINT)
	if err := reaper.SetSubreaper(1); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	// There is a shim for each pod, and it is idle for nearly all of its life.
	debug.SetGCPercent(40)
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
	end.RegisterCallback(tasks.endPause)
	rpc, err := ttrpc.NewServer(ttrpc.WithServerHandshaker(ttrpc.UnixSocketRequireSameUser()))
	if err != nil {
		return err
	}
	tasks.register(rpc)
	served := make(chan error, 1)
	go func() { served <- rpc.Serve(ctx, listener) }()

	err = s.loop(ctx, tasks, signals, served, end)
	return errors.Join(err, s.close(ctx, rpc, publisher))
}

// loop handles signals until the shim is told to end.
//
// SIGTERM does not end a shim that has running containers. Whoever stops pods as a whole, like systemd at shutdown,
// signals it together with the containers: it must outlive them to take their last output and their exit statuses.
func (s *server) loop(ctx context.Context, tasks *tasks, signals <-chan os.Signal, served <-chan error, end shutdown.Service) error {
	idle := time.NewTicker(orphanCheck)
	defer idle.Stop()
	calm := time.NewTimer(quiet)
	defer calm.Stop()
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
			debug.FreeOSMemory()
		case sig := <-signals:
			switch sig {
			case unix.SIGCHLD:
				calm.Reset(quiet)
				if err := reaper.Reap(); err != nil {
					log.G(ctx).WithError(err).Error("reap children")
				}
			case unix.SIGTERM, unix.SIGINT:
				tasks.terminate()
			}
			// SIGPIPE is caught so that a log which nobody reads does not kill the shim.
		}
	}
}

// close lets the last events go out and the request to end be answered.
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

// setLog makes the daemon's standard error the shim's, by way of a FIFO of the bundle that the daemon opens each time
// it starts.
func (s *server) setLog() error {
	level := log.WarnLevel
	if s.debug {
		level = log.DebugLevel
	}
	if err := errors.Join(log.SetLevel(level), log.SetFormat(log.TextFormat)); err != nil {
		return err
	}
	// Open for both, the FIFO waits for no reader, and keeps what is written while the daemon is away.
	fd, err := unix.Open("log", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	if err := unix.Dup3(fd, int(os.Stderr.Fd()), 0); err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	log.L.Logger.SetOutput(lossy(fd))
	return nil
}

// lossy writes to a file descriptor that does not block, and drops what it does not take.
type lossy int

// Write implements io.Writer. It never fails.
func (fd lossy) Write(b []byte) (int, error) {
	_, _ = unix.Write(int(fd), b)
	return len(b), nil
}
