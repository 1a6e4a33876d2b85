package daemon

import (
	"context"
	"log/slog"
	"net"

	"github.com/podstead/podstead/internal/server"
)

// listen listens on a socket of the API: on that of systemd for the path, if there is one.
func (o *Options) listen(ctx context.Context, path string,
	create func(context.Context, string) (net.Listener, error),
) (net.Listener, error) {
	if l := o.activated(path); l != nil {
		return server.Activated(l, path)
	}
	return create(ctx, path)
}

// activated returns the socket of systemd for a path; nil: there is none.
func (o *Options) activated(path string) net.Listener {
	for _, l := range o.Listeners {
		if l.Addr().String() == path {
			return l
		}
	}
	return nil
}

// closeUnused closes sockets of systemd that the configuration does not name.
func (o *Options) closeUnused(ctx context.Context) {
	for _, l := range o.Listeners {
		path := l.Addr().String()
		if path != o.Config.Socket && path != o.Config.ReadOnlySocket {
			o.Log.LogAttrs(ctx, slog.LevelWarn, "systemd listens on a socket that the configuration does not name",
				slog.String("socket", path))
			_ = l.Close()
		}
	}
}
