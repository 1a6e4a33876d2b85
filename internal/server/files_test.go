package server_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/filecopy"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
)

// largeCopy is larger than all buffers between the client and the container.
const largeCopy = 32 << 20

// fakeFiles are the files of containers. The path says what happens.
type fakeFiles struct{ received chan int64 }

func (fakeFiles) StatFile(_ context.Context, _, container, path string) (filecopy.Stat, error) {
	if path == "/none" {
		return filecopy.Stat{}, &filecopy.Error{Kind: filecopy.NotFound, Err: errors.New("no such file")}
	}
	return filecopy.Stat{Path: path + "@" + container, Mode: 0o640}, nil
}

func (fakeFiles) ReadFiles(ctx context.Context, _, _, path string, w io.Writer) (filecopy.Result, error) {
	switch path {
	case "/refused":
		return filecopy.Result{}, &filecopy.Error{Kind: filecopy.Conflict, Err: errors.New("read-only"), Hint: "do something else"}
	case "/busy":
		return filecopy.Result{}, &filecopy.Error{Kind: filecopy.Busy, Err: errors.New("8 copies are in progress"), Hint: "try again later"}
	case "/silent", "/stops":
		if path == "/stops" {
			if _, err := w.Write(make([]byte, 1<<10)); err != nil { // fits in the buffer of the socket
				return filecopy.Result{}, err
			}
		}
		<-ctx.Done()
		return filecopy.Result{}, context.Cause(ctx)
	case "/endless":
		for ctx.Err() == nil {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return filecopy.Result{}, err
			}
		}
		return filecopy.Result{}, ctx.Err()
	}
	if _, err := w.Write(make([]byte, largeCopy)); err != nil {
		return filecopy.Result{}, err
	}
	if path == "/fails" {
		return filecopy.Result{}, errors.New("disk failed")
	}
	return filecopy.Result{Warnings: []string{`"a\nb" left out`}}, nil
}

func (f fakeFiles) WriteFiles(_ context.Context, _, _, path string, r io.Reader, preserve bool) (filecopy.Result, error) {
	if path == "/refused" {
		return filecopy.Result{}, &filecopy.Error{Kind: filecopy.Conflict, Err: errors.New("read-only")}
	}
	n, err := io.Copy(io.Discard, r)
	if f.received != nil {
		f.received <- n
	}
	if !preserve {
		n = -n
	}
	return filecopy.Result{Files: 1, Bytes: n}, err
}

// newCopyDaemon returns a daemon with the pod web.
func newCopyDaemon(t *testing.T, files server.ContainerFiles, ports server.PodPorts) *testDaemon {
	t.Helper()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.closeServer()
	d.containerFiles, d.ports = files, ports
	d.serve(t, "second")
	d.create(t, file("web", app("c", "sleep 1000")))
	return d
}

func TestReadFiles(t *testing.T) {
	t.Parallel()
	d := newCopyDaemon(t, fakeFiles{}, nil)
	ctx := t.Context()
	var out bytes.Buffer
	result, err := d.client.ReadFiles(ctx, "web", client.FileQuery{Path: "/x"}, &out)
	if err != nil || out.Len() != largeCopy || len(result.Warnings) != 1 {
		t.Errorf("got %d bytes, %v, %v", out.Len(), result, err)
	}
	n, err := d.client.ReadFiles(ctx, "web", client.FileQuery{Path: "/fails"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "disk failed") || n.Bytes != largeCopy {
		t.Errorf("an error after the start: got %v, %v", n, err)
	}
	if _, err := d.client.ReadFiles(ctx, "web", client.FileQuery{Path: "/refused"}, io.Discard); !hasStatus(err, http.StatusConflict) {
		t.Errorf("an error before the start: got %v", err)
	}
	if _, err := d.client.ReadFiles(ctx, "web", client.FileQuery{Path: "/x", Container: "none"},
		io.Discard); !hasStatus(err, http.StatusNotFound) {
		t.Errorf("no such container: got %v", err)
	}
	if _, err := d.client.ReadFiles(ctx, "web", client.FileQuery{}, io.Discard); !hasStatus(err, http.StatusBadRequest) {
		t.Errorf("no path: got %v", err)
	}
	st, err := d.client.StatFile(ctx, "web", client.FileQuery{Path: "/not\xffutf8"})
	if err != nil || !strings.HasPrefix(string(st.Path), "/not\xffutf8@") || st.Type != api.RegularFile || st.Mode != 0o640 {
		t.Errorf("got %+v, %v", st, err)
	}
	_, err = d.client.StatFile(ctx, "web", client.FileQuery{Path: "/none"})
	if e, ok := errors.AsType[*api.Error](err); !ok || e.Reason != api.ReasonFileNotFound {
		t.Errorf("no such file: got %v", err)
	}
}

func hasStatus(err error, status int) bool {
	e, ok := errors.AsType[*api.Error](err)
	return ok && e.Status == status
}

// TestTooManyCopies checks the response to a copy beyond the limit, which package runtime/files has.
func TestTooManyCopies(t *testing.T) {
	t.Parallel()
	d := newCopyDaemon(t, fakeFiles{}, nil)
	_, err := d.client.ReadFiles(t.Context(), "web", client.FileQuery{Path: "/busy"}, io.Discard)
	e, ok := errors.AsType[*api.Error](err)
	if !ok || e.Status != http.StatusTooManyRequests || e.Reason != api.ReasonTooManyRequests || e.Hint == "" {
		t.Errorf("got %+v", err)
	}
}

// TestCopyWithoutProgress checks that a copy ends if the container or the client is silent, before and after the start.
func TestCopyWithoutProgress(t *testing.T) {
	server.SetCopyTimeout(t, time.Second) // longer than the write of a block, which has the same timeout
	d := newCopyDaemon(t, fakeFiles{}, nil)
	silent, end := io.Pipe()
	defer end.Close()
	var copies sync.WaitGroup
	for name, run := range map[string]func() error{
		"the container sends nothing": func() error {
			_, err := d.client.ReadFiles(t.Context(), "web", client.FileQuery{Path: "/silent"}, io.Discard)
			return err
		},
		"the container stops to send": func() error {
			_, err := d.client.ReadFiles(t.Context(), "web", client.FileQuery{Path: "/stops"}, io.Discard)
			return err
		},
		"the client sends nothing": func() error {
			_, err := d.client.WriteFiles(t.Context(), "web", client.FileQuery{Path: "/x"}, true, silent)
			return err
		},
	} {
		copies.Go(func() {
			err := run()
			if e, ok := errors.AsType[*api.Error](err); !ok || e.Reason != api.ReasonInternalError || e.Message != "no progress for 1s" {
				t.Errorf("%s: got %+v", name, err)
			}
		})
	}
	copies.Wait()
}

// TestReadFilesCut checks that a copy that the daemon aborts, because it is stopped, is an error of the client.
func TestReadFilesCut(t *testing.T) {
	t.Parallel()
	d := newCopyDaemon(t, fakeFiles{}, nil)
	stop := newOnce(d.closeServer)
	_, err := d.client.ReadFiles(t.Context(), "web", client.FileQuery{Path: "/endless"}, stop)
	if !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	<-stop.done
}

// once is a writer that calls a function after the first write.
type once struct {
	call func()
	done chan struct{}
}

func newOnce(call func()) *once { return &once{call, make(chan struct{})} }

func (o *once) Write(p []byte) (int, error) {
	if o.call != nil {
		go func(call func()) {
			call()
			close(o.done)
		}(o.call)
		o.call = nil
	}
	return len(p), nil
}

func TestWriteFiles(t *testing.T) {
	t.Parallel()
	d := newCopyDaemon(t, fakeFiles{}, nil)
	ctx := t.Context()
	for _, preserve := range []bool{true, false} {
		result, err := d.client.WriteFiles(ctx, "web", client.FileQuery{Path: "/x"}, preserve, bytes.NewReader(make([]byte, largeCopy)))
		if err != nil || result.Files != 1 || (result.Bytes == largeCopy) != preserve {
			t.Errorf("got %+v, %v", result, err)
		}
	}
	_, err := d.client.WriteFiles(ctx, "web", client.FileQuery{Path: "/refused"}, true, bytes.NewReader(make([]byte, largeCopy)))
	if !hasStatus(err, http.StatusConflict) {
		t.Errorf("an error while the client sends: got %v", err)
	}
	if _, err := d.client.WriteFiles(ctx, "none", client.FileQuery{Path: "/x"}, true,
		strings.NewReader("")); !hasStatus(err, http.StatusNotFound) {
		t.Errorf("no such pod: got %v", err)
	}
}

// TestWriteFilesCut checks that the container notices that the client has not sent everything.
func TestWriteFilesCut(t *testing.T) {
	t.Parallel()
	d := newCopyDaemon(t, fakeFiles{received: make(chan int64, 1)}, nil)
	broken := io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), failing{})
	if _, err := d.client.WriteFiles(t.Context(), "web", client.FileQuery{Path: "/x"}, true, broken); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

var errBroken = errors.New("broken source")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errBroken }

// fakePorts connects to a listener, or refuses.
type fakePorts struct{ address string }

func (p fakePorts) DialPort(ctx context.Context, _ string, _ *spec.Pod, port uint16) (net.Conn, error) {
	if port == 9 {
		return nil, errors.New("connection refused")
	}
	return new(net.Dialer).DialContext(ctx, "tcp", p.address)
}

// TestDialPort sends data both ways. The server answers with a checksum after the end of its input, so that a half-close must arrive.
func TestDialPort(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				sum := sha256.New()
				if _, err := io.Copy(io.MultiWriter(sum, conn), conn); err == nil {
					_, _ = conn.Write(sum.Sum(nil))
				}
			}()
		}
	}()
	d := newCopyDaemon(t, nil, fakePorts{l.Addr().String()})
	conn, err := d.client.DialPort(t.Context(), "web", "", 80)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	data := bytes.Repeat([]byte("0123456789abcdef"), largeCopy/16)
	go func() {
		_, _ = conn.Write(data)
		_ = conn.CloseWrite()
	}()
	got, err := io.ReadAll(conn)
	want := sha256.Sum256(data)
	if err != nil || len(got) != len(data)+len(want) || !bytes.Equal(got[len(data):], want[:]) || !bytes.Equal(got[:len(data)], data) {
		t.Errorf("got %d bytes, %v, want %d", len(got), err, len(data)+len(want))
	}
	if _, err := d.client.DialPort(t.Context(), "web", "", 9); !hasStatus(err, http.StatusBadGateway) ||
		!strings.Contains(err.Error(), `connect to port 9 of pod "web": connection refused`) {
		t.Errorf("refused connection: got %v", err)
	}
	if _, err := d.client.DialPort(t.Context(), "none", "", 80); !hasStatus(err, http.StatusNotFound) {
		t.Errorf("no such pod: got %v", err)
	}
	if _, err := d.client.DialPort(t.Context(), "web", "", 0); !hasStatus(err, http.StatusBadRequest) {
		t.Errorf("port 0: got %v", err)
	}
}

// TestForwardLimit occupies all connections but one. The last one is forwarded, and a further one is rejected until it ends.
func TestForwardLimit(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d := newCopyDaemon(t, nil, fakePorts{l.Addr().String()})
	if !d.server.Forward(server.MaxForwards - 1) {
		t.Fatalf("the server forwards less than %d connections", server.MaxForwards-1)
	}
	last, err := d.client.DialPort(t.Context(), "web", "", 80)
	if err != nil {
		t.Fatal("the last connection:", err)
	}
	_, err = d.client.DialPort(t.Context(), "web", "", 80)
	if e, ok := errors.AsType[*api.Error](err); !ok || e.Status != http.StatusTooManyRequests || e.Reason != api.ReasonTooManyRequests {
		t.Errorf("one connection too many: got %v", err)
	}
	_ = last.Close()
	until(t, "there is room after the end of a connection", func() bool {
		conn, err := d.client.DialPort(t.Context(), "web", "", 80)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
}

// fakeVolumes are the files of persistent volumes.
type fakeVolumes struct{ received string }

func (*fakeVolumes) ExportVolume(_ context.Context, name string, w io.Writer) (filecopy.Result, error) {
	if name == "none" {
		return filecopy.Result{}, fs.ErrNotExist
	}
	_, err := io.WriteString(w, "files of "+name)
	return filecopy.Result{Warnings: []string{"left out"}}, err
}

func (f *fakeVolumes) ImportVolume(_ context.Context, name string, r io.Reader, replace bool, free func() error) (filecopy.Result, error) {
	if err := free(); err != nil {
		return filecopy.Result{}, err
	}
	text, err := io.ReadAll(r)
	f.received = fmt.Sprintf("%s%v%s", name, replace, text)
	return filecopy.Result{Files: 2}, err
}

// TestVolumeFiles exports and imports volumes. A volume that a running pod uses is exported, and not replaced.
func TestVolumeFiles(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	fake := &fakeVolumes{}
	d.closeServer()
	d.volumeFiles = fake
	d.serve(t, "volumes")
	const volume = "volumes = [{ name = \"v\", persistentVolumeClaim = { claimName = \"data\" } }]\n"
	d.create(t, file("web", volume+app("main", "exec sleep inf")))
	var out bytes.Buffer
	exported, err := d.client.ExportVolume(t.Context(), "data", &out)
	if err != nil || out.String() != "files of data" || len(exported.Warnings) != 1 {
		t.Errorf("export: %q, %+v, %v", &out, exported, err)
	}
	_, err = d.client.ExportVolume(t.Context(), "none", &out)
	if e, ok := errors.AsType[*api.Error](err); !ok || e.Status != http.StatusNotFound || e.Reason != api.ReasonNotFound {
		t.Errorf("no such volume: %v", err)
	}
	_, err = d.client.ImportVolume(t.Context(), "data", true, strings.NewReader("x"))
	if e, ok := errors.AsType[*api.Error](err); !ok || e.Status != http.StatusConflict || e.Hint != "stop it with podstead stop web" {
		t.Errorf("a volume in use: %v", err)
	}
	imported, err := d.client.ImportVolume(t.Context(), "other", true, strings.NewReader("x"))
	if err != nil || imported.Files != 2 || fake.received != "othertruex" {
		t.Errorf("import: %+v, %v, %q", imported, err, fake.received)
	}
	if err := d.client.Stop(t.Context(), "web", client.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "a stopped pod does not prevent an import", func() bool {
		_, err := d.client.ImportVolume(t.Context(), "data", false, strings.NewReader("y"))
		return err == nil
	})
}
