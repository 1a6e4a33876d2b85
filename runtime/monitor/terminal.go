package monitor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is the terminal of a container. Its output is moved to the FIFO of standard output, and from there like that of other
// containers; its input comes from the FIFO of standard input. Both are splices, so that a kill loses nothing between the two.
type terminal struct {
	master, input int // descriptors; 0: none
	output        token
	in            token
	ended         bool // no process has the terminal
	wants         bool // input waits until the terminal takes it
}

func (t *terminal) unwatch(l *loop) {
	l.unwatch(t.output)
	l.unwatch(t.in)
}

func (c *container) listenTerminal() (err error) {
	t := &c.terminal
	if t.output, err = c.m.loop.watch(t.master, c.terminalReady); err != nil || t.input == 0 {
		return err
	}
	t.in, err = c.m.loop.watch(t.input, func(uint32) { c.typeIn() })
	return err
}

func (c *container) terminalReady(events uint32) {
	if events&unix.EPOLLOUT != 0 {
		c.terminal.wants = false
		c.typeIn()
	}
	c.readTerminal()
	c.read(0)
	c.pollTerminal()
}

// readTerminal moves output to the FIFO, as much as that takes.
func (c *container) readTerminal() {
	t := &c.terminal
	if t.master == 0 || t.ended {
		return
	}
	err := splice(t.master, c.streams[0].fd, turnBytes)
	switch {
	case err == nil, errors.Is(err, unix.EAGAIN):
	case errors.Is(err, unix.EIO): // no process has it open
		t.ended = true
		c.m.loop.unwatch(t.output)
	default:
		t.ended = true
		c.m.loop.unwatch(t.output)
		c.fail("read terminal", err)
	}
}

// typeIn moves input to the terminal.
func (c *container) typeIn() {
	t := &c.terminal
	err := splice(t.input, t.master, 4<<10)
	t.wants = errors.Is(err, unix.EAGAIN) && isReadable(t.input)
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		c.m.loop.unwatch(t.in) // no process reads it
		t.in = 0
	}
	c.pollTerminal()
}

// pollTerminal chooses what is waited for.
func (c *container) pollTerminal() {
	t := &c.terminal
	if t.master == 0 {
		return
	}
	var events uint32
	if !c.streams[0].stopped {
		events |= unix.EPOLLIN
	}
	if t.wants {
		events |= unix.EPOLLOUT
	}
	c.m.loop.change(t.output, events)
	var input uint32 = unix.EPOLLIN
	if t.wants {
		input = 0
	}
	c.m.loop.change(t.in, input)
}

// splice moves what it can without blocking. The error is [unix.EAGAIN] if that is nothing.
func splice(from, to, limit int) error {
	_, err := retry(func() (bool, error) {
		n, err := unix.Splice(from, nil, to, nil, limit, unix.SPLICE_F_NONBLOCK)
		return n > 0, err
	})
	return err
}

func isReadable(fd int) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := retry(func() (int, error) { return unix.Poll(poll, 0) })
	return err == nil && n > 0
}

// resizeTerminal changes the size.
func (c *container) resizeTerminal(s Size) error {
	if c.terminal.master == 0 || c.rec.Phase == Exited {
		return errorf(ClassPrecondition, "container %s has no terminal, or has exited", c.id)
	}
	err := unix.IoctlSetWinsize(c.terminal.master, unix.TIOCSWINSZ, &unix.Winsize{Row: s.Height, Col: s.Width})
	if err != nil {
		return fmt.Errorf("resize terminal of container %s: %w", c.id, err)
	}
	return nil
}

// console is the socket to which the OCI runtime sends a terminal.
type console struct {
	path     string
	listener *net.UnixListener
}

// consoleTimeout bounds the wait for the terminal, which the OCI runtime has sent before it exits.
const consoleTimeout = 10 * time.Second

// newConsole creates the socket. Its path is short, because that of a container is too long for an address.
func (m *Monitor) newConsole() (*console, error) {
	f, err := os.CreateTemp(m.o.dir, "c*.sock")
	if err != nil {
		return nil, fmt.Errorf("create console socket: %w", err)
	}
	path := f.Name()
	if err := errors.Join(f.Close(), os.Remove(path)); err != nil {
		return nil, fmt.Errorf("create console socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("create console socket: %w", err)
	}
	return &console{path, l}, nil
}

// receive returns the terminal's master.
func (s *console) receive() (int, error) {
	_ = s.listener.SetDeadline(time.Now().Add(consoleTimeout))
	conn, err := s.listener.AcceptUnix()
	if err != nil {
		return -1, fmt.Errorf("receive terminal: %w", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(consoleTimeout))
	buf, control := make([]byte, maxMessage), make([]byte, 64)
	_, n, _, _, err := conn.ReadMsgUnix(buf, control)
	var fds []int
	if err == nil {
		fds, err = receivedFiles(control[:n])
	}
	if err == nil && len(fds) != 1 {
		err = fmt.Errorf("%d descriptors", len(fds))
	}
	if err == nil {
		unix.CloseOnExec(fds[0])
		err = unix.SetNonblock(fds[0], true)
	}
	if err != nil {
		closeAll(fds...)
		return -1, fmt.Errorf("receive terminal: %w", err)
	}
	return fds[0], nil
}

func (s *console) close() {
	if s != nil {
		_ = s.listener.Close() // removes the socket
	}
}

// removeConsoles removes the sockets of a monitor that was killed.
func removeConsoles(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, "c*.sock")) // the pattern is valid
	for _, path := range left {
		_ = os.Remove(path) // it disturbs no other terminal
	}
}

// readPIDFile reads the process ID that the OCI runtime has written.
func readPIDFile(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil || pid <= 0 {
		return 0, fmt.Errorf("read %s: unexpected content %.20q", path, text)
	}
	return pid, nil
}
