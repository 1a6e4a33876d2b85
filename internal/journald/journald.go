// Package journald sends entries to systemd-journald in its native protocol, see https://systemd.io/JOURNAL_NATIVE_PROTOCOL. The journal
// package of go-systemd uses a socket that is not connected and has no deadline: it can block forever while journald is stopped and its
// queue is full. This package is for senders that must not wait: containers and the daemon. It does not read the journal.
package journald

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
	"golang.org/x/sys/unix"
)

// Socket is the socket of journald.
const Socket = "/run/systemd/journal/socket"

// Check returns an error if the host has no journald. The directory of the socket exists since journald was started, also while it is
// stopped.
func Check() error {
	if st, err := os.Stat(filepath.Dir(Socket)); err != nil || !st.IsDir() {
		return fmt.Errorf("systemd-journald does not run on this host: no directory %s", filepath.Dir(Socket))
	}
	return nil
}

// Append appends a field to an entry. Its name has upper case letters, digits and underscores, at most 64. The value may have any bytes.
func Append(entry []byte, name string, value []byte) []byte {
	entry = append(entry, name...)
	if bytes.IndexByte(value, '\n') < 0 {
		entry = append(entry, '=')
	} else {
		entry = binary.LittleEndian.AppendUint64(append(entry, '\n'), uint64(len(value)))
	}
	return append(append(entry, value...), '\n')
}

// AppendString is [Append] for text. It appends no field without a value.
func AppendString(entry []byte, name, value string) []byte {
	if value == "" {
		return entry
	}
	return Append(entry, name, []byte(value))
}

// AppendPriority appends the field PRIORITY.
func AppendPriority(entry []byte, p journal.Priority) []byte {
	return AppendString(entry, "PRIORITY", strconv.Itoa(int(p)))
}

// AppendPod appends the field POD, and OBJECT_SYSTEMD_UNIT with the unit of the pod: systemctl status and journalctl -u show entries that
// root has sent with this field as those of the unit.
func AppendPod(entry []byte, pod string) []byte {
	if pod == "" {
		return entry
	}
	return AppendString(AppendString(entry, "POD", pod), "OBJECT_SYSTEMD_UNIT", "podstead@"+pod+".service")
}

// ErrTooLarge is returned for an entry that does not fit into a datagram.
var ErrTooLarge = errors.New("entry too large")

// conn is a connection to journald, which is opened again after an error. It is not safe for concurrent use.
type conn struct {
	path string
	conn net.Conn
}

// send sends an entry. If journald does not read, it waits until the deadline, and returns [os.ErrDeadlineExceeded].
func (c *conn) send(entry []byte, deadline time.Time) error {
	if c.conn == nil {
		var d net.Dialer
		opened, err := d.Dial("unixgram", c.path)
		if err != nil {
			return err
		}
		c.conn = opened
	}
	err := c.conn.SetWriteDeadline(deadline)
	if err == nil {
		_, err = c.conn.Write(entry)
	}
	switch {
	case err == nil || errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case errors.Is(err, unix.EMSGSIZE):
		return ErrTooLarge
	case errors.Is(err, unix.ENOBUFS): // the kernel has no memory at the moment; the socket is still valid
		return err
	}
	c.close() // the socket was created again
	return err
}

func (c *conn) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}
