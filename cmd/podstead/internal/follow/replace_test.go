package follow

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/runtime/fakeruntime"
)

// awaitRunning waits until a pod is running.
func awaitRunning(t *testing.T, daemon *client.Client, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for c, err := range daemon.Watch(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if p := &c.Object; p.Metadata.Name == name && p.Status.Phase == api.PhaseRunning {
			return
		}
	}
	t.Fatalf("pod %q is not running within %v", name, testTimeout)
}

// TestStopWhileWaitingForDeletionCounts requests a stop while the run waits for a stopping pod of the same file. The next one kills the
// pods that the run has created.
func TestStopWhileWaitingForDeletionCounts(t *testing.T) {
	t.Parallel()
	h, s := newHost(t, fakeruntime.Options{}), newRecorder()
	c := client.New(h.socket, "podstead delete")
	defer c.Close()
	stopping := file("old", "trap '' TERM; sleep 1000")
	old, err := c.Create(t.Context(), stopping)
	if err != nil {
		t.Fatal(err)
	}
	awaitRunning(t, c, "old")
	grace := time.Hour
	if err := c.Stop(t.Context(), "old", client.StopOptions{UID: old.Pod.Metadata.UID, Delete: true, Grace: &grace}); err != nil {
		t.Fatal(err)
	}
	stops := make(chan struct{})
	result := h.start(Options{Printer: s, Stops: stops, Grace: &grace},
		file("a", "trap '' TERM; sleep 1000"), stopping)
	s.await(t, "the wait", func() bool { return len(s.notices) > 0 })
	awaitRunning(t, c, "a")
	stops <- struct{}{}
	s.await(t, "the graceful stop", s.hasEvent(api.EventContainerStopping))
	stops <- struct{}{}
	if err := await(t, result); !errors.Is(err, ErrStopped) || !strings.Contains(err.Error(), "/pods/old.toml") {
		t.Errorf("error %v, want %v for old.toml", err, ErrStopped)
	}
	if !s.hasEvent(api.EventContainerKilled)() {
		t.Errorf("no container was killed: %+v", s.events)
	}
}
