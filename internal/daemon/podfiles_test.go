package daemon_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/podstead/podstead/api"
)

// write writes a pod file into the pods directory.
func (h *host) write(t *testing.T, name string) {
	t.Helper()
	if err := os.MkdirAll(h.config.Pods.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.config.Pods.Dir, name+".toml"), []byte(web().Text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// awaitPods waits until exactly these pods exist, and returns their UIDs.
func (h *host) awaitPods(t *testing.T, want ...string) (uids []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	pods := map[string]string{}
	for c, err := range h.client.Watch(ctx) {
		if err != nil {
			t.Fatalf("pods %v, want %v: %v", pods, want, err)
		}
		switch c.Type {
		case api.Added, api.Modified:
			pods[c.Object.Metadata.Name] = c.Object.Metadata.UID
		case api.Deleted:
			delete(pods, c.Object.Metadata.Name)
		}
		uids = nil
		for _, name := range want {
			uids = append(uids, pods[name])
		}
		if len(pods) == len(want) && !slices.Contains(uids, "") {
			return uids
		}
	}
	t.Fatalf("pods %v, want %v", pods, want)
	return nil
}

// TestPodsDirectory: a daemon runs the files of the pods directory, and leaves the pods running. The next one continues with what has
// changed meanwhile.
func TestPodsDirectory(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.write(t, "web")
	h.write(t, "db")
	result := h.run(t.Context(), t, false, "1ms")
	uids := h.awaitPods(t, "web", "db")
	for _, uid := range uids {
		h.awaitRunning(t, uid)
	}
	if err := h.client.StopDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, result)
	if len(h.fake.Running(uids[0])) != 1 || len(h.fake.Running(uids[1])) != 1 {
		t.Error("a stop of the daemon has stopped pods")
	}
	if err := os.Remove(filepath.Join(h.config.Pods.Dir, "db.toml")); err != nil {
		t.Fatal(err)
	}
	h.write(t, "log")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	result = h.run(ctx, t, false, "1ms")
	if now := h.awaitPods(t, "web", "log"); now[0] != uids[0] {
		t.Errorf("the unchanged pod was replaced: UID %s, then %s", uids[0], now[0])
	}
	stop()
	await(t, result)
}

// TestOnDemandDaemonRunsPodsDirectory: a daemon that was started on demand runs the pods directory, and does not exit while it has pods. A
// daemon without pods that is started later shows that the idle timeout has passed.
func TestOnDemandDaemonRunsPodsDirectory(t *testing.T) {
	t.Parallel()
	const idle = "300ms"
	h := newHost(t)
	h.write(t, "web")
	created := errors.New("no pod")
	h.onReady = func() { created = h.awaitPod(t.Context()) }
	result := h.run(t.Context(), t, true, idle)
	if created != nil {
		t.Fatal(created)
	}
	h.awaitRunning(t, h.awaitPods(t, "web")[0])
	await(t, newHost(t).run(t.Context(), t, true, idle))
	select {
	case err := <-result:
		t.Fatalf("the daemon exited while a pod runs: %v", err)
	default:
	}
	if err := os.Remove(filepath.Join(h.config.Pods.Dir, "web.toml")); err != nil {
		t.Fatal(err)
	}
	await(t, result)
	if h.networkRemovals.Load() != 1 {
		t.Error("the network was not removed although no pod is left")
	}
}

// awaitPod waits until a pod exists.
func (h *host) awaitPod(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	for c, err := range h.client.Watch(ctx) {
		if err != nil || c.Type == api.Added {
			return err
		}
	}
	return ctx.Err()
}
