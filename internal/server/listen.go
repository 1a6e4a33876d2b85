package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/supervisor/state"
)

const (
	// Group is the group whose members have access to the socket. This makes them equivalent to root.
	Group = "podstead"
	// ReadOnlyGroup is the group whose members have access to the read-only socket.
	ReadOnlyGroup = "podstead-ro"
)

// Listen listens on the daemon's socket, which is accessible to root and to members of the group podstead. It replaces a stale socket. The
// caller must hold the daemon's lock, so that no other daemon replaces the socket concurrently. Closing the listener removes the socket,
// unless systemd has replaced it. It returns [ErrSocketInUse] if another process listens on the socket.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	return listen(ctx, path, Group)
}

// ListenReadOnly listens on the socket for [Server.ServeReadOnly], which is accessible to root and to members of the group podstead-ro.
// Otherwise it is [Listen].
func ListenReadOnly(ctx context.Context, path string) (net.Listener, error) {
	return listen(ctx, path, ReadOnlyGroup)
}

// Activated returns a listener for the socket at the path, on which systemd listens too. Closing it keeps the socket: the next client makes
// systemd start a daemon.
func Activated(l net.Listener, path string) (net.Listener, error) {
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	if err := api.RemoveStopRecord(path); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", path, err), l.Close())
	}
	return l, nil
}

func listen(ctx context.Context, path, group string) (net.Listener, error) {
	if err := api.CheckSocket(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := checkReplaceable(ctx, path); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	// The socket is created under a temporary name, so that no process can connect before the permissions are set.
	temporary := path + "~"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	made, err := os.Lstat(temporary)
	if err := errors.Join(err, setPermissions(temporary, group), api.RemoveStopRecord(path), os.Rename(temporary, path)); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", path, err), l.Close())
	}
	return &listener{l, path, made}, nil
}

// ErrSocketInUse reports that another process listens on a socket.
var ErrSocketInUse = errors.New("another process is listening on the socket")

// checkReplaceable returns an error if the path is not a socket, or if a process listens on the socket.
func checkReplaceable(ctx context.Context, path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.Mode().Type() != fs.ModeSocket {
		return errors.New("file exists and is not a socket")
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
	return ErrSocketInUse
}

// setPermissions gives the group access to the socket, if the group exists.
func setPermissions(path, group string) error {
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

// listener removes the socket when it is closed.
type listener struct {
	net.Listener
	path string
	made fs.FileInfo // the socket
}

func (l *listener) Close() error {
	err := l.remove()
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.Listener.Close())
}

// remove removes the socket that the listener has made. The start of a socket unit replaces it while a daemon that was started on demand
// still runs, and clients need that one. One that is put there between the look and the removal is put back.
func (l *listener) remove() error {
	if !l.isMine(l.path) {
		return nil
	}
	old := l.path + "~old"
	if err := os.Rename(l.path, old); err != nil {
		return err
	}
	var err error
	if !l.isMine(old) {
		if err = os.Link(old, l.path); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	return errors.Join(err, os.Remove(old))
}

func (l *listener) isMine(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && os.SameFile(st, l.made)
}

// peer is the process that connected to the socket.
type peer struct {
	pid      int32
	uid, gid uint32
	groups   []uint32 // supplementary
}

type peerKey struct{}

// maxGroups is the kernel's limit of supplementary groups (NGROUPS_MAX).
const maxGroups = 65536

// peerGroups returns the supplementary groups that the peer had when it connected, none on an error.
func peerGroups(fd uintptr) []uint32 {
	groups := make([]uint32, 64)
	for {
		size := uint32(len(groups) * 4)
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == 0:
			return groups[:size/4]
		case errno == unix.ERANGE && len(groups) < maxGroups:
			groups = make([]uint32, maxGroups)
		default:
			return nil
		}
	}
}

// clientProcess returns the process that sent a request, or the zero Process if it is not known.
func clientProcess(r *http.Request) state.Process {
	if p, ok := r.Context().Value(peerKey{}).(peer); ok {
		return state.ProcessOf(int(p.pid))
	}
	return state.Process{}
}

// requester returns who sent a request, as events show it: the command that the client claims to be, and the process ID and the user ID
// from the kernel.
func requester(r *http.Request) string {
	name := "a client"
	if agent := r.UserAgent(); agentPattern.MatchString(agent) {
		name = agent
	}
	if p, ok := r.Context().Value(peerKey{}).(peer); ok {
		name += fmt.Sprintf(", pid %d, uid %d", p.pid, proc.UIDOutside(int(p.uid)))
	}
	return name
}
