package runtime

import (
	"context"
	"io"

	"github.com/podstead/podstead/internal/filecopy"
	"github.com/podstead/podstead/runtime/files"
)

// StatFile returns the attributes of a file of a container, see [files.Service.Stat].
func (r *Runtime) StatFile(ctx context.Context, uid, container, path string) (filecopy.Stat, error) {
	return r.files.Stat(ctx, uid, container, path)
}

// ReadFiles writes files of a container to a tar stream, see [files.Service.Read].
func (r *Runtime) ReadFiles(ctx context.Context, uid, container, path string, w io.Writer) (filecopy.Result, error) {
	return r.files.Read(ctx, uid, container, path, w)
}

// WriteFiles creates files of a container from a tar stream, see [files.Service.Write]. With preserve, owners, permissions and times are kept.
func (r *Runtime) WriteFiles(ctx context.Context, uid, container, path string, stream io.Reader, preserve bool) (filecopy.Result, error) {
	return r.files.Write(ctx, uid, container, path, stream, files.Options{Preserve: preserve})
}
