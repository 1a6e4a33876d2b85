package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
)

const (
	// importTimeout bounds the wait for the next bytes of an archive. The program that writes it may have to compress a layer first.
	importTimeout = 2 * time.Minute
	// maxPullBody is the maximum size of a request to pull an image.
	maxPullBody = 64 << 10
	// maxExported is the maximum number of images in an archive.
	maxExported = 256
	// maxPrograms is the maximum number of programs that a request looks for in an image.
	maxPrograms = 64
)

// Images manages the images of a host. Its errors are an [*api.Error] or those of the context. It must be safe for concurrent use.
type Images interface {
	// List returns all images, sorted by name.
	List(ctx context.Context) ([]api.Image, error)
	// Inspect returns an image for a platform; empty: any. It looks for the programs in the image.
	Inspect(ctx context.Context, name, platform string, programs []string) (api.ImageDetail, error)
	// Pull pulls an image, and reports whether it has contacted a registry. It calls progress in the same goroutine.
	Pull(ctx context.Context, q api.PullRequest, progress func(api.PullProgress)) (img api.Image, pulled bool, err error)
	// Login checks credentials with a registry, saves them, and returns the normalized name of the registry. Errors have no credentials.
	Login(ctx context.Context, q api.LoginRequest) (registry string, err error)
	// Logout deletes the credentials for a registry, and returns its normalized name.
	Logout(ctx context.Context, registry string) (string, error)
	// Import imports an archive. Without keep, the images are kept only while something uses them. Each text of the signatures is a
	// sequence of JSON values.
	Import(ctx context.Context, archive io.Reader, keep bool, signatures []string) ([]api.Image, error)
	// Export writes an archive. After an error before the first write, nothing was exported.
	Export(ctx context.Context, w io.Writer, platform string, names []string) error
	// Restore makes a name refer to the image before an import without keep after a time, and reports whether it has done so.
	Restore(ctx context.Context, name string, after time.Time) (bool, error)
	// Signatures returns the signatures in the registry of a pulled image, as documents in JSON that Import reads.
	Signatures(ctx context.Context, name, platform string) ([]string, error)
	// Remove removes a name of an image. With force, it refuses only if a pod runs that uses it.
	Remove(ctx context.Context, name, platform string, force bool) (api.RemovedImages, error)
	// Prune removes what nothing uses, and with all also what a person has requested. With dryRun it removes nothing. With an error it
	// returns what it has removed.
	Prune(ctx context.Context, all, dryRun bool) (api.RemovedImages, error)
}

// imageCall is a call that needs images.
func imageCall(call func(*Server, *http.Request) (any, error)) func(*Server, *http.Request) (any, error) {
	return func(s *Server, r *http.Request) (any, error) {
		if s.o.Images == nil {
			return nil, failure(http.StatusNotImplemented, "the daemon does not manage images")
		}
		return call(s, r)
	}
}

// imageStream is a request with a stream that needs images. The function returns an error if it has sent nothing.
func imageStream(send func(*Server, http.ResponseWriter, *http.Request) error) func(*Server, http.ResponseWriter, *http.Request) error {
	return func(s *Server, w http.ResponseWriter, r *http.Request) error {
		_, err := imageCall(func(s *Server, r *http.Request) (any, error) { return nil, send(s, w, r) })(s, r)
		return err
	}
}

func (s *Server) images(r *http.Request) (any, error) {
	list, err := s.o.Images.List(r.Context())
	if list == nil {
		list = []api.Image{}
	}
	return api.ImageList{Items: list}, err
}

// oneImage returns the parameter name, which is required.
func oneImage(q url.Values) (string, error) {
	if names := q["name"]; len(names) == 1 && names[0] != "" {
		return names[0], nil
	}
	return "", invalidField("name", "name: exactly one is required")
}

func (s *Server) inspectImage(r *http.Request) (any, error) {
	q := r.URL.Query()
	name, err := oneImage(q)
	if err != nil {
		return nil, err
	}
	programs := q["program"]
	if len(programs) > maxPrograms {
		return nil, invalidField("program", "program: at most %d are possible", maxPrograms)
	}
	for _, program := range programs {
		if program == "" || !path.IsAbs(program) && strings.Contains(program, "/") {
			return nil, invalidField("program", "program: must be a name or an absolute path")
		}
	}
	return s.o.Images.Inspect(r.Context(), name, q.Get("platform"), programs)
}

func (s *Server) restoreImage(r *http.Request) (any, error) {
	q := r.URL.Query()
	name, err := oneImage(q)
	if err != nil {
		return nil, err
	}
	after, err := timestamp(q, "after")
	if err != nil {
		return nil, err
	}
	if after.IsZero() {
		return nil, invalidField("after", "after: is required")
	}
	restored, err := s.o.Images.Restore(r.Context(), name, after)
	return api.RestoredImage{Restored: restored}, err
}

func (s *Server) imageSignatures(r *http.Request) (any, error) {
	q := r.URL.Query()
	name, err := oneImage(q)
	if err != nil {
		return nil, err
	}
	list, err := s.o.Images.Signatures(r.Context(), name, q.Get("platform"))
	if list == nil {
		list = []string{}
	}
	return api.ImageSignatures{Items: list}, err
}

func (s *Server) removeImage(r *http.Request) (any, error) {
	q := r.URL.Query()
	name, err := oneImage(q)
	if err != nil {
		return nil, err
	}
	force, err := explicit(q, "force")
	if err != nil {
		return nil, err
	}
	return s.o.Images.Remove(r.Context(), name, q.Get("platform"), force)
}

func (s *Server) pruneImages(r *http.Request) (any, error) {
	q := r.URL.Query()
	all, err := explicit(q, "all")
	if err != nil {
		return nil, err
	}
	dryRun, err := explicit(q, "dryRun")
	if err != nil {
		return nil, err
	}
	removed, err := s.o.Images.Prune(r.Context(), all, dryRun)
	if err != nil && len(removed.Items) > 0 {
		e := *asError(err) // it may be a shared one
		e.Removed = &removed
		return nil, &e
	}
	if removed.Items == nil {
		removed.Items = []api.Image{}
	}
	return removed, err
}

// pullImage sends the progress of a pull and then the image or the error. An error before the first progress is a response of its own.
func (s *Server) pullImage(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(http.NewResponseController(w), http.MaxBytesReader(w, r.Body, maxPullBody))
	if err != nil {
		return failure(http.StatusBadRequest, "read request: %v", err)
	}
	var q api.PullRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return failure(http.StatusBadRequest, "read request: %v", err)
	}
	q.Policy = cmp.Or(q.Policy, spec.PullAlways)
	if q.Policy != spec.PullAlways && q.Policy != spec.PullIfNotPresent {
		return invalidField("policy", "policy %q: must be Always or IfNotPresent", q.Policy)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var out *stream
	var sent error
	send := func(u api.PullUpdate) {
		if out == nil {
			out = newStream(w)
		}
		if sent == nil {
			sent = out.send(u)
		}
		if sent == nil {
			sent = out.flush()
		}
		if sent != nil {
			cancel() // the client has disconnected, or is too slow
		}
	}
	img, pulled, err := s.o.Images.Pull(ctx, q, func(p api.PullProgress) { send(api.PullUpdate{Progress: &p}) })
	switch {
	case err != nil && out == nil:
		return err
	case err != nil:
		send(api.PullUpdate{Error: asError(err)})
	default:
		send(api.PullUpdate{Image: &img, Pulled: pulled})
	}
	out.done(sent)
	return nil
}

// importImages imports the archive in the body. The client may send it for any time as long as bytes arrive.
func (s *Server) importImages(w http.ResponseWriter, r *http.Request) error {
	used, err := explicit(r.URL.Query(), "whileUsed")
	if err != nil {
		return err
	}
	control := http.NewResponseController(w)
	body := &arriving{r.Body, control}
	signatures, release, err := s.readSignatures(r, body)
	if err != nil {
		return err
	}
	defer release()
	list, err := s.o.Images.Import(r.Context(), body, !used, signatures)
	if err != nil {
		return err // the deadline stays, as in readBody
	}
	_ = control.SetReadDeadline(time.Time{})
	s.reply(w, r, api.ImageList{Items: list}, nil)
	return nil
}

// readSignatures reads the signatures before the archive in a body, and returns them with those in the URL. They count as the body of a
// request until release is called.
func (s *Server) readSignatures(r *http.Request, body io.Reader) (list []string, release func(), err error) {
	q := r.URL.Query()
	text := cmp.Or(q.Get(api.SignatureBytes), "0")
	size, err := strconv.ParseUint(text, 10, 63)
	if err != nil || size > api.MaxSignatures {
		name := api.SignatureBytes
		return nil, nil, invalidField(name, "%s=%q: must be a number of bytes, at most %d", name, text, api.MaxSignatures)
	}
	if size == 0 {
		return q["signature"], func() {}, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), api.CallTimeout)
	defer cancel()
	if err := s.bodies.Acquire(ctx, int64(size)); err != nil {
		return nil, nil, failure(http.StatusTooManyRequests, "too many large requests at once")
	}
	release = func() { s.bodies.Release(int64(size)) }
	documents := make([]byte, size)
	if _, err := io.ReadFull(body, documents); err != nil {
		release()
		return nil, nil, failure(http.StatusBadRequest, "read request: %d bytes of signatures: %v", size, err)
	}
	return append([]string{string(documents)}, q["signature"]...), release, nil
}

// arriving reads a body with a deadline for each read.
type arriving struct {
	body    io.Reader
	control *http.ResponseController
}

func (a *arriving) Read(b []byte) (int, error) {
	if err := a.control.SetReadDeadline(time.Now().Add(importTimeout)); err != nil {
		return 0, err
	}
	return a.body.Read(b)
}

// exportImages sends an archive. After an error in the middle of it, the connection is closed.
func (s *Server) exportImages(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	names := q["name"]
	if len(names) == 0 || len(names) > maxExported {
		return invalidField("name", "name: 1 to %d names are required", maxExported)
	}
	out := &leaving{w: w, control: http.NewResponseController(w)}
	err := s.o.Images.Export(r.Context(), out, q.Get("platform"), names)
	switch {
	case err == nil:
		_ = out.control.SetWriteDeadline(time.Now().Add(writeTimeout))
		return nil
	case !out.begun:
		return err
	}
	panic(http.ErrAbortHandler) // net/http aborts the response
}

// leaving writes a response with a deadline for each write.
type leaving struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

func (l *leaving) Write(b []byte) (int, error) {
	if !l.begun {
		l.w.Header().Set("Content-Type", api.TarContent)
		l.begun = true
	}
	if err := l.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, fmt.Errorf("send archive: %w", err)
	}
	return l.w.Write(b)
}
