package probes

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	"golang.org/x/net/http/httpguts"
)

// plainTransport exchanges requests without TLS. A connection of [http.Transport] has two goroutines, and waking them up was a large part
// of the CPU time of a probe. This one has none. Its errors are those of the transport, because the events of the kubelet show them.
type plainTransport struct{ dial Dial }

// RoundTrip implements [http.RoundTripper] for a request without a body. The connection is closed with the body of the response.
func (p plainTransport) RoundTrip(req *http.Request) (_ *http.Response, err error) {
	if err := checkHeader(req.Header); err != nil {
		return nil, err
	}
	ctx := req.Context()
	conn, err := p.dial(ctx, "tcp", address(req))
	if err != nil {
		return nil, ended(ctx, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	res, err := exchange(conn, req)
	if err != nil {
		stop()
		_ = conn.Close()
		return nil, ended(ctx, err)
	}
	content := reader{ctx, res.Body}
	res.Body = &body{Reader: content, close: func() error {
		stop()
		return conn.Close()
	}}
	return res, nil
}

// checkHeader refuses what the transport refuses.
func checkHeader(header http.Header) error {
	for name, values := range header {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("net/http: invalid header field name %q", name)
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return fmt.Errorf("net/http: invalid header field value for %q", name)
			}
		}
	}
	return nil
}

// address returns the address to connect to.
func address(req *http.Request) string {
	if port := req.URL.Port(); port != "" {
		return net.JoinHostPort(req.URL.Hostname(), port)
	}
	return net.JoinHostPort(req.URL.Hostname(), "80") // a redirect may have no port
}

// ended returns the error of ctx if ctx is done, which is the cause of the error then.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// exchange sends a request and reads the header of the response.
func exchange(conn net.Conn, req *http.Request) (*http.Response, error) {
	closing := *req
	upgrade := req.Header.Get("Upgrade") != "" && httpguts.HeaderValuesContainsToken(req.Header["Connection"], "Upgrade")
	closing.Close = !upgrade
	w := bufio.NewWriterSize(conn, 1<<10)
	if err := closing.Write(w); err != nil {
		return nil, err
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: conn, N: maxHeader}
	r := bufio.NewReaderSize(limited, 1<<10)
	if _, err := r.Peek(1); err != nil { // EOF, or a reset
		return nil, err
	}
	for {
		res, err := http.ReadResponse(r, req)
		if err != nil && limited.N <= 0 {
			err = fmt.Errorf("net/http: server response headers exceeded %d bytes; aborted", maxHeader)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", err)
		case res.StatusCode >= http.StatusOK || res.StatusCode == http.StatusSwitchingProtocols:
			limited.N = 1 << 62 // the caller limits the body
			return res, nil
		}
	}
}

// body is the body of a response. Its end closes the connection, without reading the rest.
type body struct {
	io.Reader
	close func() error
}

func (b *body) Close() error { return b.close() }

// reader reads a body. Its error is that of ctx, if ctx is done.
type reader struct {
	ctx  context.Context //nolint:containedctx // of the request
	body io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // a wrapped one is no end
		err = ended(r.ctx, err)
	}
	return n, err
}
