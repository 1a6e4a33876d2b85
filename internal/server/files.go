package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/filecopy"
)

// copyTimeout bounds the time in which a copy of files makes no progress: the client neither sends nor receives, or a file system does not
// respond. The size of a copy and its duration are not limited. Only tests change it.
var copyTimeout = 2 * time.Minute

// copyBlock is how much of a copy is in memory.
const copyBlock = 64 << 10

// stalled is the cause of the end of a copy without progress.
func stalled() error { return fmt.Errorf("%w for %v", errStalled, copyTimeout) }

var errStalled = errors.New("no progress")

// ContainerFiles reads and writes files of containers.
type ContainerFiles interface {
	StatFile(ctx context.Context, uid, container, path string) (filecopy.Stat, error)
	ReadFiles(ctx context.Context, uid, container, path string, w io.Writer) (filecopy.Result, error)
	WriteFiles(ctx context.Context, uid, container, path string, r io.Reader, preserve bool) (filecopy.Result, error)
}

// target is the file of a request.
type target struct {
	uid, container, path string
}

// fileTarget reads the pod, the container and the path of a request.
func (s *Server) fileTarget(r *http.Request) (t target, err error) {
	if s.o.ContainerFiles == nil {
		return t, failure(http.StatusNotImplemented, "the daemon cannot copy files")
	}
	snapshot, err := s.lookUp(r)
	if err != nil {
		return t, err
	}
	q := r.URL.Query()
	t = target{snapshot.Facts.UID, q.Get("container"), q.Get("path")}
	if t.path == "" || strings.ContainsRune(t.path, 0) {
		return t, invalidField("path", "path: required value")
	}
	t.container, err = containerName(&snapshot, t.container)
	return t, err
}

// statFile returns the attributes of a file of a container.
func (s *Server) statFile(r *http.Request) (any, error) {
	t, err := s.fileTarget(r)
	if err != nil {
		return nil, err
	}
	st, err := s.o.ContainerFiles.StatFile(r.Context(), t.uid, t.container, t.path)
	if err != nil {
		return nil, copyError(err)
	}
	kind := api.OtherFile
	switch {
	case st.Mode.IsDir():
		kind = api.Directory
	case st.Mode.IsRegular():
		kind = api.RegularFile
	}
	return api.FileStat{Path: []byte(st.Path), Type: kind, Mode: uint32(st.Mode.Perm()), Size: st.Size, ModTime: st.ModTime}, nil
}

// copyError converts an error of a copy.
func copyError(err error) error {
	e, ok := errors.AsType[*filecopy.Error](err)
	if !ok {
		return err
	}
	status := map[filecopy.Kind]int{
		filecopy.NotFound: http.StatusNotFound, filecopy.Conflict: http.StatusConflict, filecopy.Busy: http.StatusTooManyRequests,
	}[e.Kind]
	result := &api.Error{Status: status, Message: e.Error(), Hint: e.Hint}
	if e.Kind == filecopy.NotFound {
		result.Reason = api.ReasonFileNotFound
	}
	return result
}

// progress cancels a copy that makes no progress.
type progress struct {
	timer *time.Timer
}

func newProgress(ctx context.Context, cancel context.CancelCauseFunc) progress {
	p, cause := progress{time.NewTimer(copyTimeout)}, stalled()
	go func() {
		select {
		case <-p.timer.C:
			cancel(cause)
		case <-ctx.Done():
		}
	}()
	return p
}

func (p progress) made() { p.timer.Reset(copyTimeout) }
func (p progress) end()  { p.timer.Stop() }

// copied is what a call of [ContainerFiles] returns.
type copied struct {
	result filecopy.Result
	err    error
}

// readFiles sends files of a container as a tar stream. An error after the start of the stream is in the trailer.
func (s *Server) readFiles(w http.ResponseWriter, r *http.Request) error {
	t, err := s.fileTarget(r)
	if err != nil {
		return err
	}
	return s.sendArchive(w, r, func(ctx context.Context, to io.Writer) (filecopy.Result, error) {
		return s.o.ContainerFiles.ReadFiles(ctx, t.uid, t.container, t.path, to)
	})
}

// sendArchive sends the tar stream that write writes.
func (s *Server) sendArchive(
	w http.ResponseWriter, r *http.Request, write func(context.Context, io.Writer) (filecopy.Result, error),
) error {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	from, to := io.Pipe()
	defer from.Close()
	defer context.AfterFunc(ctx, func() { _ = to.CloseWithError(context.Cause(ctx)) })()
	done := make(chan copied, 1)
	go func() {
		result, err := write(ctx, to)
		done <- copied{result, err}
		_ = to.CloseWithError(err)
	}()
	p := newProgress(ctx, cancel)
	defer p.end()
	block := make([]byte, copyBlock)
	n, err := from.Read(block)
	if n == 0 && err != nil && !errors.Is(err, io.EOF) {
		return copyError(err)
	}
	w.Header().Set("Content-Type", api.TarContent)
	w.Header().Set("Trailer", api.CopyTrailer)
	control := http.NewResponseController(w)
	for err == nil {
		p.made()
		if err := errors.Join(control.SetWriteDeadline(time.Now().Add(copyTimeout)), writeAll(w, block[:n])); err != nil {
			panic(http.ErrAbortHandler) // the client has disconnected
		}
		n, err = from.Read(block)
	}
	end := api.CopyEnd{}
	if !errors.Is(err, io.EOF) {
		end.Error = asError(copyError(err)).WithReason()
		s.o.Log.LogAttrs(r.Context(), slog.LevelDebug, "copy files", slog.Any("error", err))
	} else {
		end.Warnings = (<-done).result.Warnings
	}
	s.endCopy(w, end)
	return nil
}

func writeAll(w io.Writer, b []byte) error {
	_, err := w.Write(b)
	return err
}

// endCopy sends the trailer.
func (s *Server) endCopy(w http.ResponseWriter, end api.CopyEnd) {
	text, err := end.Trailer()
	if err == nil {
		err = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set(api.CopyTrailer, string(text))
}

// writeFiles creates files of a container from the tar stream in the body. With preserve=false, the owner is the user of the container, and
// permissions and times are those of new files.
func (s *Server) writeFiles(w http.ResponseWriter, r *http.Request) error {
	t, err := s.fileTarget(r)
	preserve := true
	if err == nil && r.URL.Query().Has("preserve") {
		preserve, err = flag(r.URL.Query(), "preserve")
	}
	s.receiveArchive(w, r, err, func(ctx context.Context, from io.Reader) (filecopy.Result, error) {
		return s.o.ContainerFiles.WriteFiles(ctx, t.uid, t.container, t.path, from, preserve)
	})
	return nil
}

// receiveArchive calls read with the tar stream in the body of a request, unless there is an error before.
func (s *Server) receiveArchive(
	w http.ResponseWriter, r *http.Request, err error, read func(context.Context, io.Reader) (filecopy.Result, error),
) {
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // an error is sent while the client sends
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	p := newProgress(ctx, cancel)
	defer p.end()
	body := &upload{ctx: ctx, control: control, body: r.Body, progress: p}
	var result filecopy.Result
	if err == nil {
		result, err = receiveBody(ctx, body, read)
		err = copyError(err)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, body) // what follows the end of the archive
	}
	s.reply(w, r, api.CopyResult{Files: result.Files, Bytes: result.Bytes, Warnings: result.Warnings}, err)
	if err != nil && control.Flush() == nil {
		_, _ = io.Copy(io.Discard, body) // closing the connection before the client has read the response could lose it
	}
}

// receiveBody calls read with the body of a request, until ctx ends.
func receiveBody(
	ctx context.Context, body io.Reader, read func(context.Context, io.Reader) (filecopy.Result, error),
) (filecopy.Result, error) {
	from, to := io.Pipe()
	defer context.AfterFunc(ctx, func() { _ = to.CloseWithError(context.Cause(ctx)) })()
	done := make(chan copied, 1)
	go func() {
		result, err := read(ctx, from)
		done <- copied{result, err}
		_ = from.CloseWithError(io.ErrClosedPipe)
	}()
	_, err := io.CopyBuffer(writerOnly{to}, body, make([]byte, copyBlock))
	if !errors.Is(err, io.ErrClosedPipe) { // otherwise the call has returned before the end of the body
		_ = to.CloseWithError(err)
	}
	r := <-done
	if errors.Is(r.err, context.Canceled) && errors.Is(err, errStalled) { // net/http ends the context at the deadline of the read, too
		r.err = err
	}
	return r.result, r.err
}

// writerOnly hides other methods of a pipe from io.CopyBuffer.
type writerOnly struct{ io.Writer }

// upload is the body of a request. Each read is bounded, and is progress.
type upload struct {
	ctx      context.Context //nolint:containedctx // of the request
	control  *http.ResponseController
	body     io.Reader
	progress progress
}

func (u *upload) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	if err := u.control.SetReadDeadline(time.Now().Add(copyTimeout)); err != nil {
		return 0, err
	}
	n, err := u.body.Read(p)
	u.progress.made()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = stalled()
	}
	return n, err
}
