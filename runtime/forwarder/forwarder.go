// Package forwarder forwards host ports to pods of a daemon without root. It is a role of the program podstead-monitor, in two processes
// that are in the network namespace of the host.
//
// The first one waits on a socket, starts the worker with the first connection to it, and starts another one if the worker was killed. It
// is in the user namespace of the host, where it may find out which process of the user has a port.
//
// The worker is in the user namespace of the pods, so one of its threads can enter their network namespace, where it creates sockets to
// pods. All others listen on the host. The worker has all ports and connections, and outlives the first process and daemons. Each daemon
// connects to it with a [Client] and sends all ports, so the worker keeps no file.
//
// If the daemon is of another build, the worker starts that as another worker, which inherits the sockets of all ports and answers the
// daemon. The first process executes it in place. The worker of before closes its ports, and exits when its TCP connections have ended.
//
// The package imports little, because two processes of each user run it. It must not change links, routes or rules: package network does.
// Package rootless starts and finds the processes.
package forwarder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	program = "podstead-monitor"
	// role is the first argument of the forwarder. The path of the socket follows, and workerRole for the worker.
	role       = "forwarder"
	workerRole = "worker"
)

const (
	// UserFD is a descriptor of the user namespace of the worker.
	UserFD = 3
	// ReadyFD is a descriptor to which the first process writes [Ready] when it listens, or its error.
	ReadyFD = 4
	// Ready is what it writes.
	Ready = "."
)

// The descriptors of the worker: the socket on which it listens, and one that is connected to the first process.
const listenFD, finderFD = 3, 4

// shortRun is the least time between the starts of two workers: one that cannot run leaves the connection to the next one.
const shortRun = time.Second

// Socket returns the path of the socket in a runtime directory.
func Socket(runDir string) string { return filepath.Join(runDir, "ports.sock") }

// Args returns the arguments (argv) of the first process. Path is that of its program.
func Args(path, socket string) []string { return []string{path, role, socket} }

// Invoked reports whether a process with these arguments (os.Args) is a forwarder.
func Invoked(args []string) bool {
	return (len(args) == 3 || len(args) == 4 && args[3] == workerRole) && filepath.Base(args[0]) == program && args[1] == role
}

// Processes returns the processes that serve a socket, and workers that have left their ports to another one. Their arguments show what
// they are, so they may be other processes that a container has started.
func Processes(socket string) []int {
	first, workers := processes(socket)
	return append(first, workers...)
}

// Serves reports whether a process serves a socket. A worker that has left its ports does not.
func Serves(socket string) bool {
	conn, err := net.Dial("unix", socket)
	return err == nil && conn.Close() == nil
}

func processes(socket string) (first, workers []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")) // it may have exited
		args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
		switch {
		case !Invoked(args) || args[2] != socket:
		case len(args) == 4:
			workers = append(workers, pid)
		default:
			first = append(first, pid)
		}
	}
	return first, workers
}

// Main is the main function. It returns the exit code, and otherwise runs until it is killed.
func Main(ctx context.Context, args []string) int {
	if err := os.WriteFile("/proc/self/comm", []byte(program), 0); err != nil { // one that was executed as /proc/self/exe is named exe
		return 1
	}
	if len(args) == 4 {
		return serveInherited(ctx)
	}
	f := first{args: args, user: os.NewFile(UserFD, "user namespace")}
	if resumed, err := f.resume(); err != nil || !resumed && f.start() != nil {
		return 1
	}
	for {
		switch err := f.keep(); {
		case isShort(err): // the connection waits
			<-time.After(shortRun)
		case err != nil:
			return 1
		}
	}
}

// first is the first process.
type first struct {
	args           []string
	user, listener *os.File
}

// start creates the socket and reports that.
func (f *first) start() error {
	ready := os.NewFile(ReadyFD, "ready")
	defer ready.Close()
	var err error
	if f.listener, err = listen(f.args[2]); err != nil {
		_, _ = fmt.Fprint(ready, err) // the starter reads an error or the end of the file
		return err
	}
	_, err = ready.WriteString(Ready)
	return err
}

// isShort reports whether an error is one of a host or a user without descriptors, processes or memory at the moment.
func isShort(err error) bool {
	return slices.ContainsFunc([]error{unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE}, func(short error) bool {
		return errors.Is(err, short)
	})
}

// listen creates the socket. Only the user connects to it.
func listen(path string) (*os.File, error) {
	if err := os.RemoveAll(path); err != nil {
		return nil, err
	}
	old := unix.Umask(0o177)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	unix.Umask(old)
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	f, err := l.File()
	return f, errors.Join(err, l.Close())
}

// keep waits for a connection, which it leaves to a worker, and for the exit of that worker, or of the last one that has got its ports.
// Unless [isShort], its error is one of the program, which cannot be started: the next command starts another process.
func (f *first) keep() error {
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(f.listener.Fd()), Events: unix.POLLIN}}, -1)
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	if err != nil {
		return err
	}
	own, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer own.Close()
	cmd, err := workerCommand(f.args, f.user)
	if err != nil {
		return errors.Join(err, theirs.Close())
	}
	cmd.Dir, cmd.ExtraFiles = "/", []*os.File{f.listener, theirs, f.user} // listenFD, finderFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	started := time.Now()
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	f.answer(own) // until no worker has ports: the daemon connects again
	<-time.After(shortRun - time.Since(started))
	return nil
}

// workerCommand returns the command of a worker in a user namespace. A program with several threads cannot enter one.
func workerCommand(args []string, user *os.File) (*exec.Cmd, error) {
	args = append(slices.Clip(args), workerRole)
	own, err := os.Stat("/proc/self/ns/user")
	if err != nil {
		return nil, err
	}
	want, err := user.Stat()
	if err != nil {
		return nil, err
	}
	if os.SameFile(own, want) {
		cmd := exec.Command("/proc/self/exe") // without a context: it outlives this process
		cmd.Args = args
		return cmd, nil
	}
	const inherited = "/proc/self/fd/5" // after listenFD and finderFD
	return exec.Command("nsenter", append([]string{"--user=" + inherited, "--preserve-credentials", "--"}, args...)...), nil
}

func socketPair() (own, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "own"), os.NewFile(uintptr(fds[1]), "theirs"), nil
}

// question is what a worker asks the first process: which process has a port, or to execute another build of the program.
type question struct {
	Port
	Program string `json:"program,omitempty"`
}

// owner is a process of the host that has a port. The zero value: it is not known.
type owner struct {
	PID     int    `json:"pid"`
	Process string `json:"process"`
}

// answer answers the questions of a worker, and of those to which it leaves the ports, until the last one exits.
func (f *first) answer(worker *os.File) {
	in, out := json.NewDecoder(worker), json.NewEncoder(worker)
	for {
		var q question
		if in.Decode(&q) != nil {
			return
		}
		var found owner
		if q.Program == "" {
			found.PID, found.Process = holder(q.Port)
		}
		if out.Encode(found) != nil {
			return
		}
		if q.Program != "" {
			f.execute(q.Program, worker)
		}
	}
}

// serveInherited is the worker.
func serveInherited(ctx context.Context) int {
	var h handover
	err := json.NewDecoder(os.Stdin).Decode(&h)
	takesOver := !errors.Is(err, io.EOF)
	in, statErr := os.Stdin.Stat()
	switch {
	case statErr != nil, takesOver && err != nil:
		return 1
	case !takesOver && in.Mode()&os.ModeNamedPipe != 0: // the other worker was killed
		return 1
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := inherit(ctx)
	switch {
	case err == nil && takesOver:
		err = s.takeOver(h)
	case err == nil:
		err = unix.Close(finderFD + 1) // that of the user namespace
	}
	if err != nil {
		return 1
	}
	s.acceptAll(s.listener)
	s.awaitConnections()
	cancel() // resets those that are left
	s.work.Wait()
	return 0
}
