package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/runtime/fakeruntime"
)

// request sends a request without the client, and returns its response.
func (d *testDaemon) request(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	client := &http.Client{Timeout: testTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", d.socket)
		},
	}}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://podstead"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("User-Agent", "podstead get")
	response, err := client.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return response.StatusCode, string(text)
}

// TestErrors checks the status, the reason and the field of errors.
func TestErrors(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.create(t, file("web", app("main", "exec sleep inf")))
	for _, test := range []struct {
		method, path, body string
		status             int
		reason             api.ErrorReason
		field, hint        string
	}{
		{"GET", "/v1/pods?watched=true", "", 400, api.ReasonBadRequest, "watched", "use one of watch, redact"},
		{"GET", "/v1/version?a=1", "", 400, api.ReasonBadRequest, "a", ""},
		{"GET", "/v1/pods?watch=maybe", "", 400, api.ReasonBadRequest, "watch", ""},
		{"GET", "/v1/events?after=1&after=2", "", 400, api.ReasonBadRequest, "after", ""},
		{"GET", "/v1/events?since=yesterday", "", 400, api.ReasonBadRequest, "since", ""},
		{"GET", "/v1/events?labelSelector=%3D", "", 400, api.ReasonBadRequest, "labelSelector", ""},
		{"GET", "/v1/pods/web/output?runs=all", "", 400, api.ReasonBadRequest, "runs", ""},
		{"GET", "/v1/pods/web/output?from=1", "", 400, api.ReasonBadRequest, "from", ""},
		{"GET", "/v1/pods/web/output?container=x&container=main", "", 404, api.ReasonNotFound, "", "use one of main"},
		{"GET", "/v1/why?lines=1001", "", 400, api.ReasonBadRequest, "lines", ""},
		{"DELETE", "/v1/pods/web?grace=soon", "", 400, api.ReasonBadRequest, "grace", ""},
		{"GET", "/v1/pods/none", "", 404, api.ReasonNotFound, "", ""},
		{"GET", "/v2/pods", "", 404, api.ReasonNotFound, "", ""},
		{"DELETE", "/v1/volumes/..%2f", "", 400, api.ReasonBadRequest, "name", ""},
		{"DELETE", "/v1/volumes/A", "", 400, api.ReasonBadRequest, "name", ""},
		{"POST", "/v1/pods", `{"file":"web.toml"}`, 400, api.ReasonBadRequest, "file", ""},
		{"POST", "/v1/pods", `{"file":"/web.toml","text":"name = 1"}`, 400, api.ReasonInvalid, "", ""},
		{"POST", "/v1/pods", `{`, 400, api.ReasonBadRequest, "", ""},
		{"PUT", "/v1/pods/web/conditions/a", `{"status":"Maybe"}`, 400, api.ReasonBadRequest, "status", ""},
		{"POST", "/v1/pods/web/rollout/undo", `{"generation":-1}`, 400, api.ReasonBadRequest, "generation", ""},
	} {
		status, text := d.request(t, test.method, test.path, test.body)
		var e api.Error
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Errorf("%s %s: %q: %v", test.method, test.path, text, err)
			continue
		}
		if status != test.status || e.Status != status || e.Reason != test.reason || e.Field != test.field || e.Hint != test.hint ||
			e.Message == "" {
			t.Errorf("%s %s: %d %+v", test.method, test.path, status, e)
		}
	}
	_, err := d.client.Create(t.Context(), file("web", app("main", "exit 0")))
	e, ok := err.(*api.Error) //nolint:errorlint // the client returns it as it is
	if !ok || e.Reason != api.ReasonAlreadyExists || e.Pod != "web" {
		t.Errorf("a second pod with the name: %v", err)
	}
}

// TestUnknownParameters sends every endpoint a parameter that it does not have.
func TestUnknownParameters(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	for _, e := range server.Endpoints() {
		path := strings.NewReplacer("{name}", "web", "{id}", "s", "{type...}", "example.org/door").Replace(e.Path)
		status, text := d.request(t, e.Method, path+"?unknown=1", "{}")
		if status != http.StatusBadRequest || !strings.Contains(text, `"field":"unknown"`) {
			t.Errorf("%s: %d %s", e.Pattern(), status, text)
		}
	}
}

// syncBuffer is a buffer for concurrent use.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// await waits until the log has a text.
func (b *syncBuffer) await(t *testing.T, text string) {
	t.Helper()
	until(t, fmt.Sprintf("%q is in the log", text), func() bool { return strings.Contains(b.String(), text) })
}

// TestLongPathLog checks that a long path is shortened in the log and in the response, and that what readers send is not logged.
func TestLongPathLog(t *testing.T) {
	t.Parallel()
	log := &syncBuffer{}
	d := newTestDaemon(t, fakeruntime.Options{})
	d.closeServer()
	d.log = slog.New(slog.NewTextHandler(log, nil))
	d.serve(t, "logged")
	long := strings.Repeat("x", 60_000)
	if status, text := d.request(t, "DELETE", "/v1/unknown/"+long, ""); status != http.StatusNotFound || len(text) > 1000 {
		t.Errorf("status %d, %d bytes", status, len(text))
	}
	d.request(t, "DELETE", "/v1/pods/"+long, "")
	log.await(t, "method=DELETE path=/v1/pods/xxx")
	size := len(log.String())
	if size > 2000 {
		t.Errorf("the log has %d bytes", size)
	}
	writable := d.socket
	d.socket += "-ro"
	for range 10 {
		if status, _ := d.request(t, "DELETE", "/v1/pods/"+long, ""); status != http.StatusForbidden {
			t.Errorf("a reader: status %d", status)
		}
	}
	d.socket = writable
	d.request(t, "DELETE", "/v1/pods/last", "")
	log.await(t, "path=/v1/pods/last")
	if strings.Contains(log.String(), "status=403") {
		t.Errorf("requests of a reader are logged:\n%s", log)
	}
}

// TestOlderDaemon: an endpoint or a parameter that the daemon does not have means that it is older.
func TestOlderDaemon(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/version", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"version":"0.1.0"}`) })
	mux.HandleFunc("GET /v1/volumes", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, `{"status":404,"error":"unknown endpoint GET /v1/volumes","reason":"NotFound"}`, http.StatusNotFound)
	})
	mux.HandleFunc("GET /v1/pods", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"status":400,"error":"unknown parameter \"new\" of GET /v1/pods","reason":"BadRequest"}`, http.StatusBadRequest)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: testTimeout}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	c := client.New(socket, "podstead")
	defer c.Close()
	_, volumes := c.Volumes(t.Context())
	_, pods := c.Pods(t.Context())
	for want, err := range map[string]error{"the endpoint GET /v1/volumes": volumes, `the parameter "new" of GET /v1/pods`: pods} {
		e, ok := errors.AsType[*api.Error](err)
		want = "the daemon, version 0.1.0, is older than this command: it does not know " + want
		if !ok || e.Status != http.StatusNotImplemented || e.Message != want || !strings.Contains(e.Hint, "restart") {
			t.Errorf("got %+v, want %s", err, want)
		}
	}
}

// TestRequestLog checks that a request is logged with the process that sent it, and changes at a higher level.
func TestRequestLog(t *testing.T) {
	t.Parallel()
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo} {
		t.Run(level.String(), func(t *testing.T) {
			log := &syncBuffer{}
			d := newTestDaemon(t, fakeruntime.Options{})
			d.closeServer()
			d.log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))
			d.serve(t, "logged")
			d.request(t, "GET", "/v1/pods", "")
			d.request(t, "PUT", "/v1/sessions/s", "")
			d.request(t, "DELETE", "/v1/pods/none", "")
			log.await(t,
				fmt.Sprintf(`level=INFO msg=request uid=%d pid=%d command="podstead get" method=DELETE path=/v1/pods/none status=404 `+
					`duration=`,
					os.Getuid(), os.Getpid()))
			for _, text := range []string{
				"level=DEBUG msg=request", "method=GET path=/v1/pods status=200", "method=PUT path=/v1/sessions/s status=404",
			} {
				if strings.Contains(log.String(), text) != (level == slog.LevelDebug) {
					t.Errorf("%q in the log at level %v:\n%s", text, level, log)
				}
			}
		})
	}
}
