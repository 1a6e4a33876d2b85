// Package usermanager requests cgroups from the systemd of an ordinary user (user@.service), over the socket of that in the runtime
// directory of the user. It needs no message bus of the user.
package usermanager

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/guard"
)

// service is the unit of the daemon of a user.
const service = "podstead.service"

const (
	// requestTimeout bounds a request to systemd, and scopeTimeout the start of a scope whose name is that of one that systemd is about to
	// remove.
	requestTimeout, scopeTimeout = 5 * time.Second, 10 * time.Second
	pollInterval                 = 50 * time.Millisecond
)

// Manager is a connection to the systemd of a user. The zero value is not valid. It is safe for concurrent use.
type Manager struct {
	conn  *dbus.Conn
	mount string // the mount point of cgroup v2
}

// Connect connects to the systemd of a user. Dir is the runtime directory of the user, uid the ID that systemd sees: in a user namespace,
// this process has another one. The caller closes the connection, which ends with ctx.
func Connect(ctx context.Context, dir string, uid int) (*Manager, error) {
	conn, err := dbus.NewConnection(func() (*godbus.Conn, error) {
		conn, err := godbus.Dial("unix:path="+filepath.Join(dir, "systemd/private"), godbus.WithContext(ctx))
		if err != nil {
			return nil, err
		}
		if err := conn.Auth([]godbus.Auth{godbus.AuthExternal(strconv.Itoa(uid))}); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return conn, nil
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the systemd of user %d: %w", uid, err)
	}
	return &Manager{conn, "/sys/fs/cgroup"}, nil
}

// Close closes the connection.
func (m *Manager) Close() { m.conn.Close() }

// Stopping reports whether systemd is exiting: the user has logged out without lingering, or the host shuts down.
func (m *Manager) Stopping() (bool, error) {
	state, err := m.conn.GetManagerProperty("SystemState")
	return state == `"stopping"`, err
}

// Controllers returns the cgroup controllers that are delegated to the user.
func (m *Manager) Controllers() ([]string, error) {
	group, err := m.conn.GetManagerProperty("ControlGroup")
	if err != nil {
		return nil, fmt.Errorf("find cgroup of the systemd of the user: %w", err)
	}
	group, err = strconv.Unquote(group)
	if err != nil {
		return nil, fmt.Errorf("find cgroup of the systemd of the user: %w", err)
	}
	return ControllersIn(filepath.Join(m.mount, group))
}

// ControllersIn returns the controllers that a cgroup can enable for the cgroups below it, by its directory.
func ControllersIn(dir string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	return strings.Fields(string(text)), err
}

// Scope is a scope with a delegated cgroup: systemd leaves what is below it to the user.
type Scope struct {
	m    *Manager
	name string
	// Cgroup is the path of the cgroup, relative to the root of the hierarchy.
	Cgroup string
}

// Delegate starts a scope with a process, or finds the one with this name, and moves the process to a cgroup in the scope.
func (m *Manager) Delegate(ctx context.Context, name, leaf string, pid int) (Scope, error) {
	ctx, cancel := context.WithTimeout(ctx, scopeTimeout)
	defer cancel()
	s := Scope{m: m, name: name}
	var err error
	for range guard.Poll(ctx, pollInterval) {
		var exists bool
		exists, err = m.start(ctx, name, pid)
		if err == nil {
			s.Cgroup, err = m.cgroupOf(ctx, name)
		}
		if err == nil {
			err = s.Move(ctx, leaf, pid)
		}
		if err == nil || !exists || s.isPopulated() { // else systemd is about to remove a scope without processes
			break
		}
	}
	return s, err
}

// Scope returns a scope that exists.
func (m *Manager) Scope(ctx context.Context, name string) (Scope, error) {
	group, err := m.cgroupOf(ctx, name)
	return Scope{m, name, group}, err
}

// start starts a scope, and returns when systemd has moved the process to it. Exists: there is one with this name.
func (m *Manager) start(ctx context.Context, name string, pid int) (exists bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	done := make(chan string, 1)
	_, err = m.conn.StartTransientUnitContext(ctx, name, "fail", []dbus.Property{
		dbus.PropDescription("Podstead pods"),
		dbus.PropPids(uint32(pid)),
		{Name: "Delegate", Value: godbus.MakeVariant(true)},
		{Name: "CollectMode", Value: godbus.MakeVariant("inactive-or-failed")},
		// systemd stops the scope with its slice when it exits, but not before the service of the daemon, which stops pods in order.
		{Name: "DefaultDependencies", Value: godbus.MakeVariant(false)},
		dbus.PropBefore(service),
		// Each pod has a limit of its own.
		{Name: "TasksMax", Value: godbus.MakeVariant(uint64(math.MaxUint64))},
	}, done)
	if e, is := errors.AsType[godbus.Error](err); is && e.Name == "org.freedesktop.systemd1.UnitExists" {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("start %s: %w", name, err)
	}
	select {
	case result := <-done:
		if result != "done" {
			return false, fmt.Errorf("start %s: the systemd of the user reports %q", name, result)
		}
		return false, nil
	case <-ctx.Done():
		return false, fmt.Errorf("start %s: %w", name, ctx.Err())
	}
}

// cgroupOf returns the cgroup of a scope.
func (m *Manager) cgroupOf(ctx context.Context, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	p, err := m.conn.GetUnitTypePropertyContext(ctx, name, "Scope", "ControlGroup")
	if err != nil {
		return "", fmt.Errorf("find cgroup of %s: %w", name, err)
	}
	group, _ := p.Value.Value().(string)
	if group == "" || group == "/" {
		return "", fmt.Errorf("find cgroup of %s: it has none", name)
	}
	return group, nil
}

// isPopulated reports whether a process is in the scope.
func (s Scope) isPopulated() bool {
	text, _ := os.ReadFile(filepath.Join(s.m.mount, s.Cgroup, "cgroup.events")) // it may have been removed
	return s.Cgroup != "" && strings.Contains(string(text), "populated 1")
}

// Controllers returns the controllers that can be enabled in the scope.
func (s Scope) Controllers() ([]string, error) {
	return ControllersIn(filepath.Join(s.m.mount, s.Cgroup))
}

// Move moves a process to a cgroup in the scope, which is created if necessary. It does nothing for a process that is in it. A process
// in the session of a login is moved by the systemd of the host, which that of the user requests over the message bus of the host.
func (s Scope) Move(ctx context.Context, leaf string, pid int) error {
	group := filepath.Join(s.Cgroup, leaf)
	if cgroupOf(pid) == group {
		return nil
	}
	dir := filepath.Join(s.m.mount, group)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("create cgroup in %s: %w", s.name, err)
	}
	if os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600) == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := s.m.conn.AttachProcessesToUnit(ctx, s.name, "/"+leaf, []uint32{uint32(pid)}); err != nil {
		return fmt.Errorf("move process %d to %s: %w", pid, s.name, err)
	}
	if at := cgroupOf(pid); at != group {
		return fmt.Errorf("move process %d to %s: it is in cgroup %q", pid, s.name, at)
	}
	return nil
}

// CanMove reports whether this process may move processes, itself included, from its cgroup to the scope: both are below a cgroup of the
// user.
func (s Scope) CanMove() bool {
	common := commonParent(cgroupOf(os.Getpid()), s.Cgroup)
	return unix.Access(filepath.Join(s.m.mount, common, "cgroup.procs"), unix.W_OK) == nil
}

// commonParent returns the lowest cgroup that contains two others.
func commonParent(a, b string) string {
	parts, others := strings.Split(a, "/"), strings.Split(b, "/")
	n := 0
	for n < min(len(parts), len(others)) && parts[n] == others[n] {
		n++
	}
	return "/" + strings.Trim(strings.Join(parts[:n], "/"), "/")
}

// InScope reports whether a process is in a scope.
func InScope(pid int, name string) bool { return within(cgroupOf(pid), name) }

// within reports whether a cgroup is that of a unit or below it.
func within(group, unit string) bool { return slices.Contains(strings.Split(group, "/"), unit) }

// cgroupOf returns the cgroup of a process in the hierarchy of cgroup v2; "": it has exited.
func cgroupOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	for line := range strings.Lines(string(text)) {
		if path, found := strings.CutPrefix(strings.TrimSpace(line), "0::"); found {
			return path
		}
	}
	return ""
}
