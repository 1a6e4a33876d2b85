package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
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

// TestObstacle: a command that waits for a pod prints once what keeps it from being removed. Other pods do not matter.
func TestObstacle(t *testing.T) {
	var notes []string
	w := &watcher{Starter: &ondemand.Starter{Notify: func(note string) { notes = append(notes, note) }}, awaited: map[string]bool{}}
	w.await("web")
	const message = "killed processes do not exit: dd (PID 7, waits for a device)"
	failed := []api.Condition{{Type: api.RemovalFailed, Status: "True", Message: message}}
	for _, p := range []struct {
		name       string
		conditions []api.Condition
	}{{"web", nil}, {"other", failed}, {"web", failed}, {"web", failed}} {
		pod := api.Pod{Metadata: api.Metadata{Name: p.name}, Status: api.PodStatus{Conditions: p.conditions}}
		w.printObstacle(&pod)
		w.await("web")
	}
	want := "pod/web is not removed yet, trying again: " + message
	if len(notes) != 1 || notes[0] != want {
		t.Errorf("notes %q, want one: %s", notes, want)
	}
}
