package ui

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/api/client"
)

// fakeDaemon serves a daemon's responses, and returns a client of it.
func fakeDaemon(t *testing.T, routes map[string]http.HandlerFunc) *client.Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "ui") // the path of a socket in it must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for pattern, handle := range routes {
		mux.HandleFunc(pattern, handle)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: testTimeout}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), <-served); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	c := client.New(socket, "podstead ui")
	t.Cleanup(c.Close)
	return c
}

// sends responds with values, one in each line.
func sends(values ...any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, v := range values {
			_ = json.NewEncoder(w).Encode(v) // the client is gone if that fails
		}
	}
}
