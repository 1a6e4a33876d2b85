package ui

import (
	"context"
	"embed"
	"errors"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/channel"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/live"
	"github.com/podstead/podstead/internal/plain"
)

// terminalFiles are the page in the frame of a terminal, and xterm.js, which tools/xterm writes.
//
//go:embed terminal/index.html terminal/style.css terminal/bounds.js terminal/terminal.js terminal/LICENSE terminal/*.gz
var terminalFiles embed.FS

const (
	// framePolicy is the content security policy of the frame: that of the page, and inline styles. xterm.js makes style elements.
	framePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; base-uri 'none'; " +
		"form-action 'none'; frame-ancestors 'self'; require-trusted-types-for 'script'; trusted-types 'none'"
	// maxTerminals bounds the sessions. Each keeps up to 512 KiB here.
	maxTerminals = 16
	// keyProtocol is before the key in a subprotocol of a WebSocket, whose request cannot have the header of the key.
	keyProtocol = "key.podstead."
)

// shell is the command of a terminal.
var shell = []string{"sh"}

// terminalFile answers with a file of the frame. Those of xterm.js are compressed.
func terminalFile(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", framePolicy)
	text, err := terminalFiles.ReadFile(strings.TrimPrefix(path.Clean(r.URL.Path), "/") + ".gz")
	if err != nil {
		http.FileServerFS(terminalFiles).ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("Content-Type", map[string]string{".mjs": "text/javascript", ".css": "text/css"}[path.Ext(r.URL.Path)])
	_, _ = w.Write(text) // the client is gone if that fails
}

// terminal runs a shell in a container, for a browser that connects with a WebSocket, see package channel:
// ?pod=NAME&uid=UID&container=NAME&width=CHARACTERS&height=CHARACTERS. With the UID, no other pod of the name is reached. Errors after the
// upgrade are in the status at the end of the session: a page cannot read the response to a request that is refused.
func (s *Server) terminal(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	name, o := q.Get("pod"), client.ExecOptions{UID: q.Get("uid"), Container: q.Get("container"), Command: shell}
	width, widthErr := strconv.ParseUint(q.Get("width"), 10, 16)
	height, heightErr := strconv.ParseUint(q.Get("height"), 10, 16)
	if name == "" || o.UID == "" || o.Container == "" || widthErr != nil || heightErr != nil {
		refuse(w, http.StatusBadRequest, "pod, uid, container, width and height are required")
		return
	}
	conn, err := channel.Accept(w, r, channel.Stdin)
	if refused, ok := errors.AsType[*channel.RefusedError](err); ok {
		refuse(w, refused.Status, refused.Message)
		return
	}
	if err != nil {
		return // there is no connection to report it on
	}
	defer conn.Close()
	o.Streams = client.Streams{
		Stdin: conn.Reader(channel.Stdin), Stdout: conn.Writer(channel.Stdout),
		TTY: true, Size: channel.Size{Width: uint16(width), Height: uint16(height)}, Resize: conn.Sizes(),
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() { // a browser that is closed ends the session
		select {
		case <-conn.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	status := api.SessionStatus(s.runShell(ctx, name, o))
	status.Message = plain.Text(status.Message)
	if status.Details != nil {
		for i := range status.Details.Causes {
			status.Details.Causes[i].Message = plain.Text(status.Details.Causes[i].Message)
		}
	}
	_ = conn.Finish(status) //nolint:contextcheck // a connection has its own timeouts; a browser that is lost gets no status
}

// runShell runs a shell until it exits or the context ends, and returns its exit code.
func (s *Server) runShell(ctx context.Context, name string, o client.ExecOptions) (int, error) {
	select {
	case s.terminals <- struct{}{}:
		defer func() { <-s.terminals }()
	default:
		return 0, &api.Error{
			Status: http.StatusTooManyRequests, Reason: api.ReasonTooManySessions,
			Message: "too many terminals at once: at most " + strconv.Itoa(maxTerminals), Hint: "try again when one of them is closed",
		}
	}
	if err := live.MayExist(name); err != nil {
		return 0, err
	}
	return s.client.Exec(ctx, name, o)
}
