package runtime

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/podstead/podstead/internal/filecopy"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/files"
	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/spec"
)

// StatFile returns the attributes of a file of a container, see [files.Service.Stat].
func (r *Runtime) StatFile(ctx context.Context, uid, container, path string) (filecopy.Stat, error) {
	return r.files.Stat(ctx, uid, container, path)
}

// ReadFiles writes files of a container to a tar stream, see [files.Service.Read].
func (r *Runtime) ReadFiles(ctx context.Context, uid, container, path string, w io.Writer) (filecopy.Result, error) {
	return r.files.Read(ctx, uid, container, path, w)
}

// WriteFiles creates files of a container from a tar stream, see [files.Service.Write]. With preserve, owners, permissions and times are
// kept.
func (r *Runtime) WriteFiles(ctx context.Context, uid, container, path string, stream io.Reader, preserve bool) (filecopy.Result, error) {
	return r.files.Write(ctx, uid, container, path, stream, files.Options{Preserve: preserve})
}

// DialPort connects to a TCP port of the loopback interface of a pod. It fails if the pod has no sandbox.
func (r *Runtime) DialPort(ctx context.Context, uid string, pod *spec.Pod, port uint16) (net.Conn, error) {
	if pod.HostNetwork {
		return dialLoopback(ctx, "", port)
	}
	numbers, err := r.sandboxes.Numbers(engine.Context(ctx), uid)
	if err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		return nil, errors.New("the pod is not running")
	}
	dir := r.dirs.Sandbox(uid, numbers[len(numbers)-1])
	return dialLoopback(ctx, namespace.Paths(dir, namespace.Options{Network: true}).Network, port)
}
