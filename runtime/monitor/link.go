package monitor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The monitor and its keeper are connected by a pair of SOCK_SEQPACKET sockets. A message is a verb and its arguments, with at most one
// descriptor. What a monitor has sent before it dies is received.
const (
	// Of the monitor.
	verbHold    = "hold"    // NAME, with a descriptor: keep it, in place of an earlier one of this name
	verbRelease = "release" // NAME, or the start of names that ends in a slash: close them
	verbGive    = "give"    // send all descriptors
	verbReap    = "reap"    // PID START: the exit of this process is recorded
	verbUpgrade = "upgrade" // PROGRAM: execute it in place, as keeper
	verbStop    = "stop"    // the monitor exits, and so must the keeper
	// Of the keeper.
	verbGave  = "gave"  // NAME, with a descriptor
	verbGiven = "given" // there are no more
)

// Descriptors with which a monitor is started.
const (
	linkFD = 3 // its end of the connection
	lockFD = 4 // the lock of the state directory, which is held by keeper and monitor
)

// maxMessage is the maximum size of a message.
const maxMessage = 4 << 10

// sendMessage sends a message without blocking. fd is -1 for none. The error is [unix.EAGAIN] if the peer does not read.
func sendMessage(link int, text string, fd int) error {
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	_, err := retry(func() (int, error) {
		return 0, unix.Sendmsg(link, []byte(text), rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	})
	return err
}

// isBusy reports whether a message could not be sent because the peer has not received earlier ones.
func isBusy(err error) bool { return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ETOOMANYREFS) }

// errLinkClosed is the error of a connection whose peer has exited.
var errLinkClosed = errors.New("peer has exited")

// receiveMessage receives a message without blocking. fd is -1 if it has none. The error is [unix.EAGAIN] if there is none.
func receiveMessage(link int, buf []byte) (text string, fd int, err error) {
	var rights [32]byte
	type received struct{ n, rights int }
	r, err := retry(func() (received, error) {
		n, oobn, _, _, err := unix.Recvmsg(link, buf, rights[:], unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		return received{n, oobn}, err
	})
	if errors.Is(err, unix.ECONNRESET) || err == nil && r.n == 0 {
		err = errLinkClosed
	}
	if err != nil {
		return "", -1, err
	}
	fd = -1
	fds, err := receivedFiles(rights[:r.rights])
	if len(fds) == 1 {
		fd = fds[0]
	} else {
		closeAll(fds...)
	}
	return string(buf[:r.n]), fd, err
}

// receivedFiles returns the descriptors in a control message.
func receivedFiles(control []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, fmt.Errorf("receive descriptors: %w", err)
	}
	for _, m := range messages {
		if m.Header.Level != unix.SOL_SOCKET || m.Header.Type != unix.SCM_RIGHTS {
			continue
		}
		some, err := unix.ParseUnixRights(&m)
		if err != nil {
			return fds, fmt.Errorf("receive descriptors: %w", err)
		}
		fds = append(fds, some...)
	}
	return fds, nil
}

// closeAll closes descriptors. Negative ones are none.
func closeAll(fds ...int) {
	for _, fd := range fds {
		if fd >= 0 {
			_ = unix.Close(fd) // what was written to it is not known by close
		}
	}
}

// released reports whether a release of this name means a held one.
func released(release, held string) bool {
	return release == held || strings.HasSuffix(release, "/") && strings.HasPrefix(held, release)
}

// parseReap parses the arguments of verbReap.
func parseReap(s string) (pid int, start uint64, err error) {
	first, second, _ := strings.Cut(s, " ")
	if pid, err = strconv.Atoi(first); err != nil {
		return 0, 0, err
	}
	start, err = strconv.ParseUint(second, 10, 64)
	return pid, start, err
}
