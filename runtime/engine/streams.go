package engine

import (
	"context"
	"path/filepath"

	"github.com/containerd/containerd/v2/pkg/cio"

	"github.com/podstead/podstead/internal/attach"
	"github.com/podstead/podstead/runtime/ocibundle"
)

// Streams are the standard streams of a new task.
type Streams struct {
	ocibundle.Output
	Terminal bool
}

// Creator makes the shim provide the streams; see [client.Container.NewTask].
func (s Streams) Creator() cio.Creator {
	uri := s.URI().String()
	return func(string) (cio.IO, error) {
		// The shim replaces the URI by FIFOs.
		return shimStreams(cio.Config{Terminal: s.Terminal, Stdout: uri, Stderr: uri}), nil
	}
}

// shimStreams are streams that end in the shim.
type shimStreams cio.Config

func (s shimStreams) Config() cio.Config { return cio.Config(s) }
func (shimStreams) Cancel()              {}
func (shimStreams) Wait()                {}
func (shimStreams) Close() error         { return nil }

// monitorLost is why sessions end when the monitor is killed.
const monitorLost = "the monitor was restarted, the container keeps running"

// Attach opens a session with a container of a sandbox, see [attach.Open].
func (e *Engine) Attach(ctx context.Context, sandboxID string, r attach.Request) (*attach.Session, error) {
	if e.link.hasSandbox(sandboxID) {
		s, err := attach.Open(ctx, e.link.Dir, r)
		if err == nil {
			s.Lost = monitorLost
		}
		return s, err
	}
	return attach.Open(ctx, filepath.Join(e.opt.State, sandboxPlugin, Namespace, sandboxID), r)
}
