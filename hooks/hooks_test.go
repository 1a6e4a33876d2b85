package hooks

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ref = lifecycle.Ref{Container: "c", Round: 1, Attempt: 3}

// execer returns a fixed result for every command and records the last one.
type execer struct {
	code    int
	output  string
	err     error
	uid     string
	ref     lifecycle.Ref
	command []string
	timeout time.Duration
}

func (e *execer) Exec(
	_ context.Context, uid string, ref lifecycle.Ref, command []string, timeout time.Duration, _ int,
) (int, []byte, error) {
	e.uid, e.ref, e.command, e.timeout = uid, ref, command, timeout
	return e.code, []byte(e.output), e.err
}

func TestHooksExec(t *testing.T) {
	for _, test := range []struct {
		name   string
		execer execer
		err    string
	}{
		{"status 0", execer{output: "hello"}, ""},
		{"exit code 3", execer{code: 3, output: "injected output"}, `run hook command: exit code 3: "injected output"`},
		{"exit code 3 without output", execer{code: 3, output: "\n"}, "run hook command: exit code 3"},
		{"not run", execer{err: errors.New("no such program")}, "run hook command: no such program"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := New(&test.execer, nil)
			h := &spec.LifecycleHandler{Exec: &spec.ExecAction{Command: []string{"echo", "$(NAME)"}}}
			c := &spec.Container{Name: "c", Env: []spec.EnvVar{{Name: "NAME", Value: "x"}}}
			_, err := r.Run(t.Context(), "u", "", c, ref, h)
			check(t, err, test.err)
			// Variables in a hook's command are not expanded, and there is no timeout.
			want := execer{uid: "u", ref: ref, command: []string{"echo", "$(NAME)"}}
			got := test.execer
			if got.uid != want.uid || got.ref != want.ref || got.timeout != 0 || !cmp.Equal(got.command, want.command) {
				t.Errorf("ran %+v, want %+v", got, want)
			}
		})
	}
}

func check(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("got error %v, want %q", err, want)
	}
}

func TestHooksHTTPGet(t *testing.T) {
	var got *http.Request
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		code, _ := strconv.Atoi(r.URL.Query().Get("status"))
		w.WriteHeader(max(code, 200))
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	port := func(s *httptest.Server) spec.Port {
		return spec.Port{Number: int32(s.Listener.Addr().(*net.TCPAddr).Port)}
	}
	authorized := []spec.HTTPHeader{{Name: "Authorization", Value: "secret"}, {Name: "X-A", Value: "1"}, {Name: "X-A", Value: "2"}}
	for _, test := range []struct {
		name    string
		action  spec.HTTPGetAction
		address string
		uri     string
		header  http.Header
		warning string
		err     string
	}{
		{
			name: "default path", action: spec.HTTPGetAction{Port: port(plain)}, uri: "/",
			header: http.Header{"User-Agent": {"kube-lifecycle/1.36"}, "Accept": {"*/*"}, "Connection": {"close"}},
		},
		{
			name:   "one leading slash, query, headers",
			action: spec.HTTPGetAction{Port: port(plain), Path: "a?b=c", HTTPHeaders: authorized}, uri: "/a?b=c",
			header: http.Header{
				"User-Agent": {"kube-lifecycle/1.36"}, "Accept": {"*/*"}, "Connection": {"close"},
				"Authorization": {"secret"}, "X-A": {"1", "2"},
			},
		},
		{name: "any status is a success", action: spec.HTTPGetAction{Port: port(plain), Path: "/?status=500"}, uri: "/?status=500"},
		{name: "https, certificate not checked", action: spec.HTTPGetAction{Port: port(secure), Scheme: "HTTPS"}, uri: "/"},
		{
			name:   "https to an http server is repeated without authorization",
			action: spec.HTTPGetAction{Port: port(plain), Scheme: "HTTPS", HTTPHeaders: authorized}, uri: "/",
			header: http.Header{
				"User-Agent": {"kube-lifecycle/1.36"}, "Accept": {"*/*"}, "Connection": {"close"}, "X-A": {"1", "2"},
			},
			warning: "request to HTTPS lifecycle hook " + plain.Listener.Addr().String() + " got HTTP response, retry with HTTP succeeded",
		},
		{name: "host in the action", action: spec.HTTPGetAction{Port: port(plain), Host: "127.0.0.1"}, address: "192.0.2.1", uri: "/"},
		{name: "pod without an address", action: spec.HTTPGetAction{Port: port(plain)}, address: "none", err: "pod has no IP address"},
		{name: "unknown port", action: spec.HTTPGetAction{Port: spec.Port{Name: "web"}}, err: `container "c": port "web" not found`},
		{name: "no port", action: spec.HTTPGetAction{}, err: "port 0: must be between 1 and 65535"},
		{name: "bad path", action: spec.HTTPGetAction{Port: port(plain), Path: "/%zz"}, uri: "/%25zz"},
		{name: "invalid host", action: spec.HTTPGetAction{Port: port(plain), Host: "a b"}, err: "create request"},
		{name: "refused", action: spec.HTTPGetAction{Port: spec.Port{Number: hooksClosedPort}}, err: "connection refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got = nil
			address := map[string]string{"": "127.0.0.1", "none": ""}
			host, special := address[test.address]
			if !special {
				host = test.address
			}
			warning, err := New(&execer{}, nil).Run(t.Context(), "u", host, &spec.Container{Name: "c"}, ref,
				&spec.LifecycleHandler{HTTPGet: &test.action})
			check(t, err, test.err)
			if warning != test.warning {
				t.Errorf("warning %q, want %q", warning, test.warning)
			}
			if (got == nil) != (test.uri == "") || got != nil && got.RequestURI != test.uri {
				t.Fatalf("the server received %+v, want %q", got, test.uri)
			}
			if test.header != nil {
				if diff := cmp.Diff(test.header, got.Header); diff != "" {
					t.Errorf("header (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// hooksClosedPort is a port without a listener. It is never assigned dynamically.
const hooksClosedPort = 1

// A hook has no timeout of its own. Cancellation of its context ends it, whatever the server does.
func TestCancelledHookReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			t.Cleanup(func() { server.Close() })
			go func() { _, _ = server.Read(make([]byte, 1<<20)) }()
			return client, nil
		}
		r := New(&execer{}, silent)
		for _, h := range []*spec.LifecycleHandler{
			{HTTPGet: &spec.HTTPGetAction{Port: spec.Port{Number: 80}}},
			{Sleep: &spec.SleepAction{Seconds: 1e9}},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			start := time.Now()
			_, err := r.Run(ctx, "u", "192.0.2.1", &spec.Container{Name: "c"}, ref, h)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Hour {
				t.Errorf("%+v returned %v after %v", h, err, time.Since(start))
			}
		}
	})
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, seconds := range []spec.Seconds{0, 0.5, 20} {
			start := time.Now()
			h := &spec.LifecycleHandler{Sleep: &spec.SleepAction{Seconds: seconds}}
			_, err := New(&execer{}, nil).Run(t.Context(), "u", "", &spec.Container{}, ref, h)
			if err != nil || time.Since(start) != seconds.Duration() {
				t.Errorf("a sleep of %v s took %v and returned %v", seconds, time.Since(start), err)
			}
		}
	})
}

func TestHooksNoHandler(t *testing.T) {
	_, err := New(&execer{}, nil).Run(t.Context(), "u", "", &spec.Container{}, ref, &spec.LifecycleHandler{})
	check(t, err, "no handler specified")
}
