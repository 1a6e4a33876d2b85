package probes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
)

// server accepts connections and answers each with the raw text, after it has read a request. It closes a connection when the client does.
// Its received has the bytes of each request.
func server(t *testing.T, answer string, hold bool) (address *net.TCPAddr, received <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	requests := make(chan string, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				b := make([]byte, 1<<16)
				n, _ := conn.Read(b)
				requests <- string(b[:n])
				_, _ = io.WriteString(conn, answer)
				if hold {
					_, _ = io.Copy(io.Discard, conn)
				}
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr), requests
}

// TestLikeTransport compares responses and errors with those of the transport of net/http, which the kubelet uses: events have them.
func TestLikeTransport(t *testing.T) {
	for _, test := range []struct {
		name, answer string
		hold         bool // the server waits for the end of the connection
		headers      []spec.HTTPHeader
		timeout      time.Duration
	}{
		{"response", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true, nil, 0},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", true, nil, 0},
		{"until the end", "HTTP/1.0 404 Not Found\r\n\r\nno", false, nil, 0},
		{"no body", "HTTP/1.1 204 No Content\r\n\r\n", true, nil, 0},
		{"body too short", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", false, nil, 0},
		{"nothing", "", false, nil, 0},
		{"incomplete header", "HTTP/1.1 200 OK\r\nA: b", false, nil, 0},
		{"no HTTP", "SSH-2.0-OpenSSH_9.2p1\r\n", true, nil, 0},
		{"early hints", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true, nil, 0},
		{"another protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", false, nil, 0},
		{
			"upgrade", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", false,
			headers("Connection", "keep-alive, Upgrade", "Upgrade", "x"), 0,
		},
		{"upgrade to nothing", "HTTP/1.1 204 No Content\r\n\r\n", true, headers("Connection", "Upgrade"), 0},
		{"connection to keep", "HTTP/1.1 204 No Content\r\n\r\n", true, headers("Connection", "keep-alive"), 0},
		{"connection to close", "HTTP/1.1 204 No Content\r\n\r\n", true, headers("Connection", "Close"), 0},
		{
			"headers", "HTTP/1.1 204 No Content\r\n\r\n", true,
			headers("Host", "web.test", "User-Agent", "", "a", "1", "A", "2", "Expect", "100-continue"), 0,
		},
		{"large header", "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", maxHeader+1<<16) + "\r\n\r\n", false, nil, 0},
		{"invalid name", "", false, headers("a b", "c"), 0},
		{"invalid value", "", false, headers("a", "b\nc"), 0},
		{"no response in time", "", true, nil, time.Second},
		{"no body in time", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", true, nil, time.Second},
		{"redirect", "HTTP/1.1 302 Found\r\nLocation: http://elsewhere.test/\r\nContent-Length: 0\r\n\r\n", true, nil, 0},
		{"redirects without end", "HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n", true, nil, 0},
		{"redirect to nowhere", "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", true, nil, 0},
		{"redirect to an unknown scheme", "HTTP/1.1 302 Found\r\nLocation: ftp://127.0.0.1/\r\nContent-Length: 0\r\n\r\n", true, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			address, received := server(t, test.answer, test.hold)
			request := func() *http.Request {
				r := Request{Host: "127.0.0.1", Port: address.Port, Path: "/a?b=c", Headers: test.headers, UserAgent: "test"}
				req, err := r.HTTP(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return req
			}
			count := func() (sent []string) {
				for len(received) > 0 {
					sent = append(sent, sorted(<-received))
				}
				return sent
			}
			want := byTransport(request(), test.timeout)
			wantSent := fmt.Sprintf("%q", count())
			res, err := NewClient(nil).Do(request(), test.timeout, 1<<10)
			got := httpgetDescribe(res.Status, res.Body, res.BodyErr, err)
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if gotSent := fmt.Sprintf("%q", count()); gotSent != wantSent {
				t.Errorf("sent %s\nwant %s", gotSent, wantSent)
			}
			if res.Status == 0 && err == nil {
				t.Error("neither a response nor an error")
			}
		})
	}
}

// byTransport describes the response to a request by the client of net/http.
func byTransport(req *http.Request, timeout time.Duration) string {
	client := http.Client{CheckRedirect: followRedirect, Timeout: timeout, Transport: &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader, DialContext: netDialer().DialContext,
	}}
	res, err := client.Do(req)
	if err != nil {
		return httpgetDescribe(0, nil, nil, err)
	}
	defer res.Body.Close()
	body, bodyErr := io.ReadAll(io.LimitReader(res.Body, 1<<10))
	return httpgetDescribe(res.StatusCode, body, bodyErr, nil)
}

func httpgetDescribe(status int, body []byte, bodyErr, err error) string {
	timedOut := errors.Is(err, context.DeadlineExceeded) || errors.Is(bodyErr, context.DeadlineExceeded)
	return fmt.Sprintf("%d %q, body: %v, error: %v, timeout: %v", status, body, bodyErr, err, timedOut)
}

// sorted sorts the lines of a request after the first one: their order is not relevant.
func sorted(request string) string {
	first, rest, _ := strings.Cut(request, "\r\n")
	lines := strings.Split(strings.TrimSpace(rest), "\r\n")
	slices.Sort(lines)
	return first + "\r\n" + strings.Join(lines, "\r\n")
}
