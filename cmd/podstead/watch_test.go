package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/filewatch"
	"github.com/podstead/podstead/cmd/podstead/internal/follow"
	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/internal/view"
)

// TestWatchEndsWithoutDaemon: after the daemon was stopped without its pods, the command waits for the next one to delete them, and another
// request to stop ends it.
func TestWatchEndsWithoutDaemon(t *testing.T) {
	c := client.New(filepath.Join(t.TempDir(), "none.sock"), "podstead up")
	defer c.Close()
	var notices bytes.Buffer
	stops, connecting := make(chan struct{}), make(chan struct{})
	w := &filesWatch{client: c, options: follow.Options{
		Stops: stops, Printer: &view.Text{Out: io.Discard, Err: &notices},
		Connect: func(context.Context) error {
			connecting <- struct{}{}
			return &api.StoppedError{Pods: 1}
		},
	}}
	result := make(chan error)
	go func() { result <- w.end(t.Context(), nil, nil) }()
	for range 3 {
		<-connecting
	}
	for stopping := stops; ; {
		select {
		case stopping <- struct{}{}:
			stopping = nil
			continue
		case <-connecting:
			continue
		case err := <-result:
			if !errors.Is(err, errInterrupted) {
				t.Errorf("error %v", err)
			}
		}
		break
	}
	if n := strings.Count(notices.String(), "Ctrl-C leaves them running"); n != 1 {
		t.Errorf("notices %q", notices.String())
	}
}

// TestWatchNoDaemon: only a daemon that was stopped has deleted the pods.
func TestWatchNoDaemon(t *testing.T) {
	if err := noDaemon(&api.StoppedError{}); err.Error() != "the daemon was stopped, and has deleted the pods" {
		t.Errorf("stopped: %v", err)
	}
	if failed := errors.New("the daemon cannot start"); noDaemon(failed) != failed { //nolint:errorlint // the same one
		t.Errorf("not started: %v", noDaemon(failed))
	}
}

// TestWatchDivide: a file that is in the directory of a trigger can also be a definition, even if it is new.
func TestWatchDivide(t *testing.T) {
	w := &filesWatch{
		watched: filewatch.Set{
			Files: []string{"/shop/compose.yaml"},
			Trees: []filewatch.Tree{{Path: "/shop", Flat: true, Include: []string{"*.yaml"}}, {Path: "/shop"}},
		},
		triggers: []compose.Trigger{{Pods: []string{"web"}, Container: "web", Path: "/shop"}},
	}
	changed := []string{"/shop/compose.override.yaml", "/shop/compose.yaml", "/shop/main.py", "/shop/src/a.yaml", "/web.env"}
	definitions, restarts := w.divide(changed)
	if want := []string{"/shop/compose.override.yaml", "/shop/compose.yaml", "/web.env"}; !slices.Equal(definitions, want) {
		t.Errorf("definitions %q, want %q", definitions, want)
	}
	if len(restarts) != 1 || !slices.Equal(restarts[0].paths, changed[:4]) {
		t.Errorf("restarts %+v", restarts)
	}
}
