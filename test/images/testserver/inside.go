package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// reach is the timeout of a page's own requests.
const reach = 10 * time.Second

// inside adds the pages that show the container's view of the network and its files.
func inside(mux *http.ServeMux) {
	mux.HandleFunc("/whoami", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, whoami(r.RemoteAddr)) })
	mux.HandleFunc("/fetch", fetch)
	mux.HandleFunc("/datagram", datagram)
	mux.HandleFunc("/lookup", lookup)
	mux.HandleFunc("/file", file)
}

// whoami returns this program's host name and the client's address without the port.
func whoami(remote string) string {
	name, err := os.Hostname()
	if err != nil {
		name = err.Error()
	}
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	return name + " " + host
}

// echo answers each datagram with whoami, until the connection is closed.
func echo(c net.PacketConn) error {
	buffer := make([]byte, 1500)
	for {
		_, from, err := c.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := c.WriteTo([]byte(whoami(from.String())+"\n"), from); err != nil {
			fmt.Println("datagram to", from, "was lost:", err)
		}
	}
}

// fetch requests ?url= and returns the response. ?network= may be tcp4 or tcp6.
func fetch(w http.ResponseWriter, r *http.Request) {
	network := cmp.Or(r.FormValue("network"), "tcp")
	dial := func(ctx context.Context, _, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	client := &http.Client{Timeout: reach, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	q, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.FormValue("url"), nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	res, err := client.Do(q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body) // the client sees a truncated response
}

// datagram sends a datagram to ?to=, a host and a port, and returns the response.
func datagram(w http.ResponseWriter, r *http.Request) {
	answer, err := exchange(r.Context(), r.FormValue("to"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	_, _ = w.Write(answer)
}

func exchange(ctx context.Context, to string) ([]byte, error) {
	c, err := (&net.Dialer{Timeout: reach}).DialContext(ctx, "udp", to)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(reach)); err != nil {
		return nil, err
	}
	if _, err := c.Write([]byte("?")); err != nil {
		return nil, err
	}
	buffer := make([]byte, 1500)
	n, err := c.Read(buffer)
	return buffer[:n], err
}

// lookup returns the addresses of ?host=, sorted, one per line.
func lookup(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), reach)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, r.FormValue("host"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	slices.Sort(addresses)
	fmt.Fprintln(w, strings.Join(addresses, "\n"))
}

// file returns the content of ?path=.
func file(w http.ResponseWriter, r *http.Request) {
	text, err := os.ReadFile(r.FormValue("path"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	_, _ = w.Write(text)
}
