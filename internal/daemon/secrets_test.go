package daemon_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/podstead/podstead/api"
)

// TestSecretsOfEngine: the daemon reads secrets where the engine does, which keeps what it has decrypted.
func TestSecretsOfEngine(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.values.Credentials = t.TempDir()
	if err := os.WriteFile(filepath.Join(h.values.Credentials, "token"), []byte("planted-value"), 0o600); err != nil {
		t.Fatal(err)
	}
	result := h.run(t.Context(), t, false, "1h")
	created, err := h.client.Create(t.Context(), api.CreateRequest{File: "/pods/job.toml", Text: `restartPolicy = "Never"
imageArchives = ["i"]
secrets.db = { credential = "token" }

[[containers]]
name = "main"
image = "i"
command = ["sh", "-c", "echo planted-value; exit 3"]
env.TOKEN.secretKeyRef = { name = "db", key = "token" }
`})
	if err != nil {
		t.Fatal(err)
	}
	h.awaitPhase(t, created.Pod.Metadata.UID, api.PhaseFailed)
	e, err := h.client.Why(t.Context(), "job", 1)
	if err != nil {
		t.Fatal(err)
	}
	if c := e.Containers[0]; c.Evidence == nil || !slices.Equal(c.Evidence.Log, []string{"[redacted]"}) {
		t.Errorf("the secret was not read: %+v", c.Evidence)
	}
	if err := h.client.StopDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, result)
}

// awaitPhase waits until a pod has a phase.
func (h *host) awaitPhase(t *testing.T, uid string, want api.Phase) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	last := api.Phase("")
	for c, err := range h.client.Watch(ctx) {
		if err != nil {
			t.Fatalf("phase %q, want %q: %v", last, want, err)
		}
		if c.Object.Metadata.UID != uid {
			continue
		}
		if last = c.Object.Status.Phase; last == want {
			return
		}
	}
}
