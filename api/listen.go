package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxSocketPath is what the kernel takes (108 with the final zero), less one for the name that a socket is made under.
	maxSocketPath = 106
	// group is the group whose members may use the socket. They are as powerful as root on this machine.
	group = "podstead"
)

// CheckSocket says what is wrong with a path as that of the daemon's socket.
func CheckSocket(path string) error {
	switch {
	case !filepath.IsAbs(path):
		return fmt.Errorf("socket %q: not an absolute path", path)
	case len(path) > maxSocketPath:
		return fmt.Errorf("socket %s: path too long: it has %d bytes, a socket's path can have %d", path, len(path), maxSocketPath)
	}
	return nil
}

// Listen opens the daemon's socket, which root and the members of the group podstead may use. A socket that nobody listens
// on any more is replaced; the caller holds the daemon's lock, so that nobody else replaces it at the same time. Closing the
// listener removes the socket.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if err := CheckSocket(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := stale(ctx, path); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	// It is made under another name, so that nobody can connect before it has its permissions.
	made := path + "~"
	if err := os.Remove(made); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(permit(made), os.Rename(made, path)); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", path, err), l.Close())
	}
	return &listener{l, path}, nil
}

// stale reports, as an error, anything at the path that must not be replaced.
func stale(ctx context.Context, path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.Mode().Type() != fs.ModeSocket {
		return errors.New("there is something that is no socket")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		_ = c.Close()
	}
	return errors.New("another process listens there")
}

func permit(path string) error {
	if g, err := user.LookupGroup(group); err == nil {
		gid, err := strconv.Atoi(g.Gid)
		if err != nil {
			return fmt.Errorf("group %s: %w", group, err)
		}
		if err := os.Chown(path, -1, gid); err != nil {
			return err
		}
	}
	return os.Chmod(path, 0o660)
}

// listener removes the socket's path when it is closed.
type listener struct {
	net.Listener
	path string
}

func (l *listener) Close() error {
	err := os.Remove(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.Listener.Close())
}

// peer is the process at the other end of a connection.
type peer struct {
	pid int32
	uid uint32
}

type peerKey struct{}

// withPeer puts the peer of a connection into the context of its requests.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return ctx
	}
	var cred *unix.Ucred
	var known error
	if err := raw.Control(func(fd uintptr) {
		cred, known = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil || known != nil {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, peer{cred.Pid, cred.Uid})
}

// by says who asks, in the words of the event: the kernel knows the process, and the process says which command it is.
func by(ctx context.Context, agent string) string {
	who := "a client"
	if agentPattern.MatchString(agent) {
		who = agent
	}
	if p, known := ctx.Value(peerKey{}).(peer); known {
		who += fmt.Sprintf(", pid %d, uid %d", p.pid, p.uid)
	}
	return who
}
