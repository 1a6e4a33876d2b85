package forwarder

import (
	"bytes"
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
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
)

const (
	// startTimeout bounds the start of the worker of another build.
	startTimeout = 5 * time.Second
	// leaveTimeout bounds the TCP connections of a worker that has left its ports to another one.
	leaveTimeout = time.Hour
)

// The further descriptors of a worker that takes over: the client, the network namespace of its pods, and the sockets of ports.
const clientFD, namespaceFD, socketFD = finderFD + 1, finderFD + 2, finderFD + 3

// inherited is the number of the connection that a worker inherits. Those that it accepts count from 1.
const inherited = 0

// handover is what a worker writes to the standard input of the one to which it leaves its ports. That answers with [Ready], and begins at
// the end of the file. The standard input of a worker that the first process starts is empty.
type handover struct {
	Request json.RawMessage `json:"request"` // of the client, which waits for the answer
	Deaf    bool            `json:"deaf,omitempty"`
	// Bindings are those of the descriptors from socketFD on.
	Bindings []binding `json:"bindings"`
}

// handOver leaves the ports to a worker of another build if the client is of that one. The other worker answers the request. After an
// error, this worker has the ports.
func (s *server) handOver(
	client *net.UnixConn, namespace *os.File, number uint64, path string, raw json.RawMessage,
) (left bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if path == "" || number < s.newest || s.left {
		return false, nil
	}
	same, err := number == inherited, error(nil) // this worker was started for the request, possibly by a script
	if !same {
		same, err = proc.Executes(os.Getpid(), path)
	}
	if same {
		s.ask(question{Program: path}) // so the first process executes it if it is of another build
	}
	if same || err != nil {
		return false, err
	}
	begin, err := s.start(client, namespace, path, raw)
	if err != nil {
		return false, fmt.Errorf("start %s as forwarder: %w", path, err)
	}
	for _, b := range s.bindings {
		b.leave()
	}
	s.left = true
	_ = errors.Join(s.finder.Close(), begin.Close())
	_ = s.listener.Close() // the end of this process, when it has no connections
	return true, nil
}

// start starts the program of a client as a worker with the sockets of this one. It begins when the closer is closed.
func (s *server) start(client *net.UnixConn, namespace *os.File, path string, raw json.RawMessage) (begin io.Closer, err error) {
	if filepath.Base(path) != program {
		return nil, fmt.Errorf("its name is not %s", program)
	}
	h := handover{Request: raw, Deaf: s.deaf}
	sockets := []interface{ File() (*os.File, error) }{s.listener, s.finder, client}
	for b, open := range s.bindings {
		h.Bindings, sockets = append(h.Bindings, b), append(sockets, open)
	}
	var files []*os.File
	for _, socket := range sockets {
		f, err := socket.File()
		if err != nil {
			return nil, err
		}
		defer f.Close()
		files = append(files, f)
	}
	cmd := exec.Command(path) // without a context: it outlives this process
	cmd.Args = append(Args(path, s.listener.Addr().String()), workerRole)
	cmd.Dir, cmd.ExtraFiles = "/", slices.Insert(files, namespaceFD-listenFD, namespace)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	kill := func() { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) } // with what it has started, if it is a script
	answered, late := make(chan struct{}), false
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-answered:
		case <-time.After(startTimeout):
			late = true
			kill()
		}
	})
	err = json.NewEncoder(in).Encode(h)
	if err == nil {
		_, err = io.ReadFull(out, make([]byte, len(Ready)))
	}
	close(answered)
	if watch.Wait(); late {
		err = fmt.Errorf("not ready within %v", startTimeout)
	}
	if err != nil {
		kill()
		return nil, errors.Join(err, cmd.Wait())
	}
	go func() { _ = cmd.Wait() }()
	return in, nil
}

// inherit returns a worker with the descriptors that each one inherits.
func inherit(ctx context.Context) (*server, error) {
	s := newServer(ctx)
	l, f := os.NewFile(listenFD, "listener"), os.NewFile(finderFD, "finder")
	defer l.Close()
	defer f.Close()
	listener, err := net.FileListener(l)
	if err != nil {
		return nil, err
	}
	finder, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	var isListener, isConn bool
	s.listener, isListener = listener.(*net.UnixListener)
	s.finder, isConn = finder.(*net.UnixConn)
	if !isListener || !isConn {
		return nil, unix.EPROTOTYPE
	}
	return s, nil
}

// takeOver takes the ports of another worker when that has left them, and answers its client.
func (s *server) takeOver(h handover) error {
	f, namespace := os.NewFile(clientFD, "client"), os.NewFile(namespaceFD, "network namespace")
	conn, err := net.FileConn(f)
	if err != nil {
		return err
	}
	client, is := conn.(*net.UnixConn)
	if !is {
		return unix.EPROTOTYPE
	}
	_ = f.Close()
	s.deaf, s.earlier = h.Deaf, map[binding]*os.File{}
	unix.CloseOnExec(namespaceFD)
	for i, b := range h.Bindings {
		unix.CloseOnExec(socketFD + i)
		s.earlier[b] = os.NewFile(uintptr(socketFD+i), b.Addr.String())
	}
	if s.pods, err = newPodNetwork(namespace); err != nil {
		return err
	}
	if _, err := os.Stdout.WriteString(Ready); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // the other worker has left, or was killed
	go func() {
		defer client.Close()
		defer namespace.Close()
		s.answer(client, namespace, inherited, io.MultiReader(bytes.NewReader(h.Request), client))
	}()
	return nil
}

// awaitConnections waits for the end of the connections of a worker that has left its ports.
func (s *server) awaitConnections() {
	done := make(chan struct{})
	go func() {
		s.work.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(leaveTimeout):
	}
}

// resumeVariable is the environment variable of a first process that was executed in place. Its values are the descriptors of the socket
// and of the connection to the worker.
const resumeVariable = "PODSTEAD_FORWARDER"

// execute executes another build of the program in this process. It returns if it is the same one, or cannot be executed.
func (f *first) execute(path string, worker *os.File) {
	if same, err := proc.Executes(os.Getpid(), path); same || err != nil || filepath.Base(path) != program {
		return
	}
	passed := []uintptr{f.listener.Fd(), worker.Fd()}
	for _, fd := range passed {
		_, _ = unix.FcntlInt(fd, unix.F_SETFD, 0)
	}
	variable := fmt.Sprintf("%s=%d %d", resumeVariable, passed[0], passed[1])
	_ = syscall.Exec(path, Args(path, f.args[2]), append(os.Environ(), variable))
	for _, fd := range passed {
		unix.CloseOnExec(int(fd))
	}
}

// resume goes on in place of another build, until its worker exits. False: this process was started.
func (f *first) resume() (resumed bool, err error) {
	text, resumed := os.LookupEnv(resumeVariable)
	if !resumed {
		return false, nil
	}
	var listener, worker int
	_, err = fmt.Sscan(text, &listener, &worker)
	if err := errors.Join(err, os.Unsetenv(resumeVariable)); err != nil {
		return true, err
	}
	unix.CloseOnExec(listener)
	unix.CloseOnExec(worker)
	f.listener = os.NewFile(uintptr(listener), "listener")
	w := os.NewFile(uintptr(worker), "worker")
	defer w.Close()
	go func() { // workers that the other build has started
		for err := error(nil); err == nil || errors.Is(err, unix.EINTR); {
			_, err = unix.Wait4(-1, nil, 0, nil)
		}
	}()
	f.answer(w)
	return true, nil
}
