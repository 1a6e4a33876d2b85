// Command testserver is the web server of Podstead's examples and test suites: a small static program whose health can be switched by
// requests, for probes, restarts and graceful stops.
//
// It listens on port $PORT, by default 8080, and logs each request on standard output. It answers each datagram to the same port with
// its host name and the sender's address. It exits with code 0 on SIGTERM or SIGINT, unless -ignore-term is set. /env shows other
// arguments.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ignoreTerm := flag.Bool("ignore-term", false, "do not exit on SIGTERM and SIGINT")
	dir := flag.String("dir", "", "serve this `directory` at /files/")
	flag.Parse()
	if err := run(context.Background(), *dir, *ignoreTerm); err != nil {
		fmt.Fprintln(os.Stderr, "testserver:", err)
		os.Exit(1)
	}
}

// run serves until a signal. Requests that have not finished one second later, such as /hang, are aborted.
func run(ctx context.Context, dir string, ignoreTerm bool) error {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM, syscall.SIGINT)

	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	datagrams, err := net.ListenPacket("udp", ":"+port)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer datagrams.Close()
	srv := &http.Server{Handler: logged(newServer(dir, os.Exit)), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 2)
	go func() { served <- srv.Serve(l) }()
	go func() { served <- echo(datagrams) }()
	fmt.Println("listening on", l.Addr())
	for {
		select {
		case err := <-served:
			return err
		case s := <-term:
			if ignoreTerm {
				fmt.Println("ignoring", s)
				continue
			}
			fmt.Println("exiting on", s)
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := srv.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			return nil
		}
	}
}

// logged logs each request before it is handled.
func logged(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Printf("%s %q from %s\n", r.Method, r.URL.RequestURI(), r.RemoteAddr)
		h.ServeHTTP(w, r)
	})
}
