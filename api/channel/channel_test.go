package channel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"
)

// testTimeout bounds what must happen; no test waits for it to pass.
const testTimeout = time.Minute

// patient are limits that no test reaches.
var patient = limits{write: testTimeout, ping: testTimeout, answer: testTimeout, lost: testTimeout}

// modes are the subprotocols that a client can offer.
var modes = map[string][]string{"with flow control": {FlowSubprotocol, Subprotocol}, "Kubernetes": {Subprotocol}}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server serves sessions on a unix socket, and passes each connection to the test.
type server struct {
	client *http.Client
	conns  chan *Conn
}

func newServer(t *testing.T, l limits) *server {
	t.Helper()
	s := &server{conns: make(chan *Conn, 1)}
	h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := accept(w, r, l, []ID{Stdin})
		if refused, ok := errors.AsType[*RefusedError](err); ok {
			http.Error(w, refused.Message, refused.Status)
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		s.conns <- c
		<-c.Done()
	}))
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	h.Listener.Close()
	h.Listener = listener
	h.Start()
	s.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		h.Close()
	})
	return s
}

// connect returns both sides of a session.
func (s *server) connect(t *testing.T, l limits, subprotocols []string) (server, client *Conn) {
	t.Helper()
	client, _, err := dial(t.Context(), s.client, "http://podstead/", nil, l, subprotocols, //nolint:bodyclose // nil without an error
		[]ID{Stdin, Stdout, Stderr})
	if err != nil {
		t.Fatal(err)
	}
	server = <-s.conns
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return server, client
}

// raw returns the server's side of a session with a client that only sends what the test sends.
func (s *server) raw(t *testing.T, subprotocols []string) (*Conn, *websocket.Conn) {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), "http://podstead/", //nolint:bodyclose // the package closes it
		&websocket.DialOptions{HTTPClient: s.client, Subprotocols: subprotocols})
	if err != nil {
		t.Fatal(err)
	}
	c := <-s.conns
	t.Cleanup(func() {
		_ = ws.CloseNow()
		c.Close()
	})
	return c, ws
}

func ended(t *testing.T, c *Conn) error {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(testTimeout):
		t.Fatal("the connection did not end")
	}
	return c.Err()
}

// digest returns a short form of long data.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:4])
}

// bothModes runs a test with each subprotocol.
func bothModes(t *testing.T, l limits, test func(t *testing.T, server, client *Conn)) {
	t.Helper()
	for name, subprotocols := range modes {
		t.Run(name, func(t *testing.T) {
			server, client := newServer(t, l).connect(t, l, subprotocols)
			test(t, server, client)
		})
	}
}

func TestStreamsAndStatus(t *testing.T) {
	bothModes(t, patient, func(t *testing.T, server, client *Conn) {
		data := bytes.Repeat([]byte("0123456789abcde\x00"), 1<<16) // larger than the window
		go func() {
			_, _ = client.Writer(Stdin).Write(data)
			_ = client.Writer(Stdin).Close()
		}()
		served := make(chan error, 1)
		go func() {
			if _, err := io.Copy(server.Writer(Stdout), server.Reader(Stdin)); err != nil {
				t.Error(err)
			}
			if _, err := server.Writer(Stderr).Write([]byte("warning")); err != nil {
				t.Error(err)
			}
			served <- server.Finish(Status{Status: StatusFailure, Message: strings.Repeat("x", 2*maxStatusText)})
		}()
		got, err := io.ReadAll(client.Reader(Stdout))
		if err != nil || digest(got) != digest(data) {
			t.Errorf("stdout: %d bytes, %v; want the %d bytes of stdin", len(got), err, len(data))
		}
		if got, err := io.ReadAll(client.Reader(Stderr)); string(got) != "warning" || err != nil {
			t.Errorf("stderr: %q, %v", got, err)
		}
		status, err := client.Status(t.Context())
		if err != nil || status.Status != StatusFailure || len(status.Message) != maxStatusText {
			t.Errorf("status: %v, %v", status, err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		if _, err := client.Writer(Stdin).Write([]byte("x")); err == nil {
			t.Error("a write after the end succeeded")
		}
	})
}

// Each side closes its direction, and the other one stays open.
func TestHalfClose(t *testing.T) {
	bothModes(t, patient, func(t *testing.T, server, client *Conn) {
		for _, side := range []struct{ from, to *Conn }{{client, server}, {server, client}} {
			if _, err := side.from.Writer(Data).Write([]byte("last")); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := side.from.Writer(Data).Close(); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := io.ReadAll(side.to.Reader(Data)); string(got) != "last" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
			if _, err := side.from.Writer(Data).Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("write to a closed channel: %v", err)
			}
		}
	})
}

// A size that was not received is replaced by the next one, also while nobody reads stdin and the channel is full.
func TestResizeWithFullChannel(t *testing.T) {
	server, client := newServer(t, patient).connect(t, patient, modes["with flow control"])
	written := make(chan error, 1)
	go func() {
		_, err := client.Writer(Stdin).Write(make([]byte, Window+1))
		written <- err
	}()
	client.Writer(Stdin).awaitFull(t)
	for width := range uint16(3) {
		if err := client.Resize(Size{Width: width + 80, Height: 25}); err != nil {
			t.Fatal(err)
		}
	}
	for size := range server.Sizes() {
		if size == (Size{Width: 82, Height: 25}) {
			break
		}
	}
	select {
	case err := <-written:
		t.Errorf("the write returned %v before its data was read", err)
	default:
	}
	if n := server.Reader(Stdin).buffered(); n > Window {
		t.Errorf("%d bytes are kept, maximum %d", n, Window)
	}
	if _, err := io.CopyN(io.Discard, server.Reader(Stdin), Window+1); err != nil {
		t.Error(err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}

// awaitFull waits until the peer permits no more data.
func (w *Writer) awaitFull(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(testTimeout); ; <-time.After(time.Millisecond) {
		w.mu.Lock()
		room := w.room
		w.mu.Unlock()
		if room == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d bytes are permitted", room)
		}
	}
}

func (r *Reader) buffered() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buffer.Len()
}

// A lost client is noticed while nobody reads stdin and the channel is full.
func TestLostPeerWithFullChannel(t *testing.T) {
	for name, subprotocols := range modes {
		t.Run(name, func(t *testing.T) {
			// Without flow control nobody reads the answer to a ping. The next ping cannot be sent.
			l := limits{write: testTimeout, ping: time.Millisecond, answer: time.Second, lost: testTimeout}
			server, client := newServer(t, l).connect(t, l, subprotocols)
			go func() { _, _ = client.Writer(Stdin).Write(make([]byte, 8*Window)) }()
			for end := time.Now().Add(testTimeout); server.Reader(Stdin).buffered() < Window; <-time.After(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the channel is not full")
				}
			}
			client.Close()
			if err := ended(t, server); !errors.Is(err, ErrLost) {
				t.Errorf("the connection ended with %v", err)
			}
			if n, err := io.Copy(io.Discard, server.Reader(Stdin)); n < Window || !errors.Is(err, ErrLost) {
				t.Errorf("read %d bytes, %v after the loss", n, err)
			}
		})
	}
}

// The loss of the server is the error of all streams, after the data that was received.
func TestLostServer(t *testing.T) {
	bothModes(t, patient, func(t *testing.T, server, client *Conn) {
		if _, err := server.Writer(Stdout).Write([]byte("some")); err != nil {
			t.Fatal(err)
		}
		server.Close()
		if got, err := io.ReadAll(client.Reader(Stdout)); string(got) != "some" || !errors.Is(err, ErrLost) {
			t.Errorf("stdout: %q, %v", got, err)
		}
		if status, err := client.Status(t.Context()); status != nil || !errors.Is(err, ErrLost) {
			t.Errorf("status: %v, %v", status, err)
		}
	})
}

// A client that exists but reads nothing holds neither a goroutine nor memory for long: neither one to which data is sent, nor one that
// does not answer pings.
func TestPeerThatStopsReading(t *testing.T) {
	for _, tt := range []struct {
		name  string
		l     limits
		bytes int
		want  string
	}{
		{
			"while data is sent",
			limits{write: 50 * time.Millisecond, ping: testTimeout, answer: testTimeout, lost: testTimeout},
			64 << 20,
			"received nothing for 50ms",
		},
		{
			"while nothing is sent",
			limits{write: testTimeout, ping: 10 * time.Millisecond, answer: 50 * time.Millisecond, lost: 50 * time.Millisecond},
			0,
			"did not respond for 50ms",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server, _ := newServer(t, tt.l).raw(t, modes["Kubernetes"])
			if tt.bytes > 0 {
				if _, err := server.Writer(Stdout).Write(make([]byte, tt.bytes)); !errors.Is(err, ErrLost) {
					t.Errorf("write: %v", err)
				}
			}
			if err := ended(t, server); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the connection ended with %v, want %q", err, tt.want)
			}
		})
	}
}

// A client that answers pings is not lost, however long nobody reads its output.
func TestOutputThatIsNotRead(t *testing.T) {
	l := limits{write: testTimeout, ping: time.Millisecond, answer: testTimeout, lost: testTimeout}
	server, client := newServer(t, l).connect(t, l, modes["with flow control"])
	go func() { _, _ = server.Writer(Stdout).Write(make([]byte, Window+1)) }()
	server.Writer(Stdout).awaitFull(t)
	start := server.heard.Load()
	for end := time.Now().Add(testTimeout); server.heard.Load() == start; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the client did not answer a ping while its output was not read")
		}
	}
	if n, err := io.CopyN(io.Discard, client.Reader(Stdout), Window+1); err != nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

func TestMessagesThatEndTheConnection(t *testing.T) {
	for _, tt := range []struct {
		name    string
		kind    websocket.MessageType
		message []byte
		repeat  int
		want    websocket.StatusCode
	}{
		{"oversize message", websocket.MessageBinary, make([]byte, maxMessage+2), 1, websocket.StatusMessageTooBig},
		{"text message", websocket.MessageText, []byte("x"), 1, websocket.StatusProtocolError},
		{"invalid size", websocket.MessageBinary, []byte("\x04[]"), 1, websocket.StatusProtocolError},
		{"close of nothing", websocket.MessageBinary, []byte{255}, 1, websocket.StatusProtocolError},
		{"permission for nothing", websocket.MessageBinary, []byte{5, 1}, 1, websocket.StatusProtocolError},
		{"too much permission", websocket.MessageBinary, []byte{5, 1, 0, 0, 0, 1}, 1, websocket.StatusProtocolError},
		{
			"data without permission", websocket.MessageBinary, make([]byte, maxMessage), Window/maxMessage + 1,
			websocket.StatusProtocolError,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server, ws := newServer(t, patient).raw(t, modes["with flow control"])
			for range tt.repeat {
				if err := ws.Write(t.Context(), tt.kind, tt.message); err != nil {
					t.Fatal(err)
				}
			}
			if _, _, err := ws.Read(t.Context()); websocket.CloseStatus(err) != tt.want {
				t.Errorf("the client got %v, want close status %d", err, tt.want)
			}
			if err := ended(t, server); !errors.Is(err, ErrLost) {
				t.Errorf("the connection ended with %v", err)
			}
		})
	}
}

// Messages that a later version may send, or that make no difference, do not end a session.
func TestMessagesThatAreIgnored(t *testing.T) {
	server, ws := newServer(t, patient).raw(t, modes["Kubernetes"])
	for _, m := range []string{
		"", "\x09x", "\x01x", "\x03{}", "\x05x", "\xff\x01", "\xff\x63", "\x00data", "\xff\x00", "\x00late", "\xff\x00",
	} {
		if err := ws.Write(t.Context(), websocket.MessageBinary, []byte(m)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := io.ReadAll(server.Reader(Stdin)); string(got) != "data" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := server.Err(); err != nil {
		t.Error(err)
	}
}

func TestRefusedRequests(t *testing.T) {
	s := newServer(t, patient)
	upgrade := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"?"}}
	for _, tt := range []struct {
		name, protocol string
		header         http.Header
		status         int
		want           string
	}{
		{"plain request", "", nil, http.StatusUpgradeRequired, "upgraded to a WebSocket"},
		{"no subprotocol", "", upgrade, http.StatusBadRequest, "unsupported subprotocol"},
		{"other subprotocol", "v4.channel.k8s.io", upgrade, http.StatusBadRequest, `"v4.channel.k8s.io": must be v5.channel.k8s.io`},
		{"invalid key", "a, v5.channel.k8s.io", upgrade, http.StatusBadRequest, "Sec-WebSocket-Key"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://podstead/", nil)
		r.RequestURI, r.Header = "", tt.header.Clone()
		if r.Header == nil {
			r.Header = http.Header{}
		}
		if tt.protocol != "" {
			r.Header.Set("Sec-WebSocket-Protocol", tt.protocol)
		}
		resp, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tt.status || !strings.Contains(string(text), tt.want) || err != nil {
			t.Errorf("%s: %s: %s, %v; want %d and %q", tt.name, resp.Status, text, err, tt.status, tt.want)
		}
	}
}

// A client gets the complete response of a server that refuses, and an error from one that does not know the subprotocol.
func TestDialRefused(t *testing.T) {
	long := strings.Repeat("x", 4<<10)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/unknown" {
			if ws, err := websocket.Accept(w, r, nil); err == nil {
				_ = ws.CloseNow()
			}
			return
		}
		http.Error(w, long, http.StatusConflict)
	}))
	defer h.Close()
	client := h.Client()
	defer client.CloseIdleConnections()
	_, resp, err := Dial(t.Context(), client, h.URL, nil)
	if err == nil || resp == nil {
		t.Fatalf("%v, %v", resp, err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); resp.StatusCode != http.StatusConflict || strings.TrimSpace(string(text)) != long || err != nil {
		t.Errorf("%s, %d bytes, %v", resp.Status, len(text), err)
	}
	_, other, err := Dial(t.Context(), client, h.URL+"/unknown", nil)
	if other != nil {
		other.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "does not support the subprotocol") {
		t.Errorf("server without the subprotocol: %v", err)
	}
}
