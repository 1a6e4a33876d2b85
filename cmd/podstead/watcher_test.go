package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor"
)

// signalWriter is a buffer that closes a channel when text has been written for the first time.
type signalWriter struct {
	bytes.Buffer
	text    string
	written chan struct{}
}

func (w *signalWriter) Write(p []byte) (int, error) {
	before := strings.Contains(w.String(), w.text)
	n, err := w.Buffer.Write(p)
	if !before && strings.Contains(w.String(), w.text) {
		close(w.written)
	}
	return n, err
}

// TestWaitOverRestartOfDaemon stops the daemon on request while apply waits for a pod. The next daemon reports that the pod is stopped.
func TestWaitOverRestartOfDaemon(t *testing.T) {
	h := newTestHost(t, api.Version{})
	path := h.write(t, "web.toml", script(`readinessGates = [{ conditionType = "example.org/door" }]`, runs))
	var stdout bytes.Buffer
	stderr := &signalWriter{text: "pod/web: ", written: make(chan struct{})}
	code := make(chan int, 1)
	go func() {
		a := &app{in: strings.NewReader(""), out: &stdout, err: stderr}
		code <- a.run(t.Context(), []string{"apply", path, "--wait", "--timeout", "1m"})
	}()
	timeout := time.After(time.Minute)
	select {
	case <-stderr.written:
	case <-timeout:
		t.Fatal("apply does not wait")
	}
	if err := api.RecordStop(h.socket, 1); err != nil {
		t.Fatal(err)
	}
	h.closeServer()
	if err := h.pods.Stop(t.Context(), "web", supervisor.StopOptions{Grace: new(time.Duration)}); err != nil {
		t.Fatal(err)
	}
	h.options.Version.Instance = "two"
	h.serve(t)
	if got := <-code; got != statusFailed || !strings.Contains(stderr.String(), "the pod is stopped: start it with podstead start web") {
		t.Errorf("exit code %d, stdout:\n%sstderr:\n%s", got, stdout.String(), stderr.String())
	}
}
