package channel

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// maxRefusal is the maximum size of a response other than an upgrade.
const maxRefusal = 64 << 10

// RefusedError is the error of a request that cannot be upgraded.
type RefusedError struct {
	Status  int // HTTP status code
	Message string
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Message }

// Accept upgrades a request. The data of other channels than receive is discarded. The handler of the request must not return before the
// end of the session. If the error is a [*RefusedError], no response was sent.
func Accept(w http.ResponseWriter, r *http.Request, receive ...ID) (*Conn, error) {
	return accept(w, r, defaultLimits, receive)
}

func accept(w http.ResponseWriter, r *http.Request, l limits, receive []ID) (*Conn, error) {
	if err := check(r); err != nil {
		return nil, err
	}
	u := &upgrade{ResponseWriter: w}
	ws, err := websocket.Accept(u, r, &websocket.AcceptOptions{Subprotocols: []string{FlowSubprotocol, Subprotocol}})
	if err != nil {
		if u.refused != 0 {
			return nil, &RefusedError{Status: u.refused, Message: strings.TrimSpace(u.text.String())}
		}
		return nil, fmt.Errorf("upgrade connection: %w", err)
	}
	return newConn(r.Context(), ws, true, l, receive), nil
}

// check returns an error for a request that [websocket.Accept] would accept without a subprotocol.
func check(r *http.Request) error {
	var offered []string
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		for name := range strings.SplitSeq(line, ",") {
			offered = append(offered, strings.TrimSpace(name))
		}
	}
	for _, name := range offered {
		if name == Subprotocol || name == FlowSubprotocol {
			return nil
		}
	}
	if r.Header.Get("Upgrade") == "" {
		return &RefusedError{Status: http.StatusUpgradeRequired, Message: "the request must be upgraded to a WebSocket"}
	}
	return &RefusedError{
		Status:  http.StatusBadRequest,
		Message: fmt.Sprintf("unsupported subprotocol %q: must be %s", strings.Join(offered, ","), Subprotocol),
	}
}

// upgrade keeps the response to a request that is refused, so that the caller can send another one.
type upgrade struct {
	http.ResponseWriter

	refused int
	text    bytes.Buffer
}

func (u *upgrade) WriteHeader(status int) {
	if status == http.StatusSwitchingProtocols {
		u.ResponseWriter.WriteHeader(status)
		return
	}
	u.refused = status
}

func (u *upgrade) Write(b []byte) (int, error) { return u.text.Write(b) }

func (u *upgrade) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(u.ResponseWriter).Hijack()
}

// Dial opens a session at the URL, of which ctx bounds only the start. The data of other channels than receive is discarded. The response
// is nil, or that of a server that refused the upgrade, with its complete body.
func Dial(ctx context.Context, client *http.Client, url string, header http.Header, receive ...ID) (*Conn, *http.Response, error) {
	return dial(ctx, client, url, header, defaultLimits, []string{FlowSubprotocol, Subprotocol}, receive)
}

func dial(
	ctx context.Context, client *http.Client, url string, header http.Header, l limits, subprotocols []string, receive []ID,
) (*Conn, *http.Response, error) {
	transport := client.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	k := &keeper{next: transport}
	ws, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: k}, HTTPHeader: header, Subprotocols: subprotocols,
	})
	if err != nil {
		return nil, k.refused, err
	}
	if ws.Subprotocol() == "" {
		_ = ws.CloseNow()
		return nil, nil, fmt.Errorf("%w: the server does not support the subprotocol %s", ErrLost, Subprotocol)
	}
	c := newConn(ctx, ws, false, l, receive)
	c.header = resp.Header
	return c, nil, nil
}

// keeper keeps the response of a server that refused the upgrade. The websocket package would truncate it.
type keeper struct {
	next    http.RoundTripper
	refused *http.Response
}

func (k *keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := k.next.RoundTrip(r)
	if err != nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return resp, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	kept := *resp
	kept.Body = io.NopCloser(bytes.NewReader(body))
	k.refused = &kept
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}
