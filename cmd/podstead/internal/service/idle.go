package service

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
)

// managerTimeout bounds the questions to systemd.
const managerTimeout = 5 * time.Second

// properties are what systemd knows about its units.
type properties interface {
	GetUnitPropertyContext(ctx context.Context, unit, property string) (*dbus.Property, error)
	GetUnitTypePropertyContext(ctx context.Context, unit, kind, property string) (*dbus.Property, error)
}

// Idle reports whether systemd listens on a socket of the API, and the daemon does not run: a connection would start it. Without systemd it
// reports false.
func Idle(ctx context.Context, socket string) bool {
	ctx, cancel := context.WithTimeout(ctx, managerTimeout)
	defer cancel()
	conn, err := connect(ctx, os.Geteuid() == 0)
	if err != nil {
		return false
	}
	defer conn.Close()
	return idle(ctx, conn, socket)
}

// connect connects to systemd. Root uses systemd's own socket: at boot, podstead.socket runs podstead daemon stop before the message bus
// runs. Its socket accepts connections already, and nothing answers until sockets.target is reached, which waits for podstead.socket.
func connect(ctx context.Context, root bool) (*dbus.Conn, error) {
	if root {
		return dbus.NewSystemdConnectionContext(ctx)
	}
	return dbus.NewSystemConnectionContext(ctx)
}

func idle(ctx context.Context, systemd properties, socket string) bool {
	state := func(unit string) (s string) {
		if p, err := systemd.GetUnitPropertyContext(ctx, unit, "ActiveState"); err == nil {
			s, _ = p.Value.Value().(string)
		}
		return s
	}
	listens := func(unit string) bool {
		var sockets []struct{ Type, Path string }
		p, err := systemd.GetUnitTypePropertyContext(ctx, unit, "Socket", "Listen")
		if err != nil || p.Value.Store(&sockets) != nil {
			return false
		}
		return slices.ContainsFunc(sockets, func(s struct{ Type, Path string }) bool { return s.Path == socket }) && state(unit) == "active"
	}
	// A service that waits for its restart after a crash is activating.
	return slices.ContainsFunc([]string{"podstead.socket", "podstead-ro.socket"}, listens) && slices.Contains([]string{"inactive", "failed"}, state(Unit))
}
