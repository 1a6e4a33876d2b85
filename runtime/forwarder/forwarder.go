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
// The package imports little, because two processes of each user run it. It must not change links, routes or rules: package network does.
// Package rootless starts and finds the processes.
package forwarder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// Processes returns the processes that serve a socket. Their arguments show what they are, so they may be other processes that a container
// has started.
func Processes(socket string) []int {
	first, workers := processes(socket)
	return append(first, workers...)
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
	ready, user := os.NewFile(ReadyFD, "ready"), os.NewFile(UserFD, "user namespace")
	if ready == nil || user == nil {
		return 2
	}
	listener, err := listen(args[2])
	if err != nil {
		_, _ = fmt.Fprint(ready, err) // the starter reads an error or the end of the file
		return 1
	}
	if _, err := ready.WriteString(Ready); err != nil {
		return 1
	}
	_ = ready.Close()
	for {
		switch err := keep(args, listener, user); {
		case isShort(err): // the connection waits
			<-time.After(shortRun)
		case err != nil:
			return 1
		}
	}
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

// keep waits for a connection, which it leaves to a worker, and for the exit of that worker. Unless [isShort], its error is one of the
// program, which cannot be started: the next command starts another process.
func keep(args []string, listener, user *os.File) error {
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(listener.Fd()), Events: unix.POLLIN}}, -1)
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
	cmd, err := workerCommand(args, user)
	if err != nil {
		return errors.Join(err, theirs.Close())
	}
	cmd.Dir, cmd.ExtraFiles = "/", []*os.File{listener, theirs, user} // listenFD, finderFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	started := time.Now()
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		return err
	}
	go answer(own)
	_ = cmd.Wait() // it was killed: the daemon connects again
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

// owner is a process of the host that has a port. The zero value: it is not known.
type owner struct {
	PID     int    `json:"pid"`
	Process string `json:"process"`
}

// answer answers which processes have ports until the worker exits.
func answer(conn *os.File) {
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var p Port
		if in.Decode(&p) != nil {
			return
		}
		pid, process := holder(p)
		if out.Encode(owner{pid, process}) != nil {
			return
		}
	}
}

// serveInherited is the worker.
func serveInherited(ctx context.Context) int {
	for _, fd := range []int{listenFD, finderFD} {
		unix.CloseOnExec(fd)
	}
	l, f := os.NewFile(listenFD, "listener"), os.NewFile(finderFD, "finder")
	if l == nil || f == nil {
		return 2
	}
	_ = unix.Close(finderFD + 1) // that of the user namespace
	listener, err := net.FileListener(l)
	if err != nil {
		return 1
	}
	finder, err := net.FileConn(f)
	if err := errors.Join(err, l.Close(), f.Close()); err != nil {
		return 1
	}
	s := newServer(ctx)
	s.finder = finder
	s.acceptAll(listener)
	return 1
}
