package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// newSlowDaemon listens on a socket. It responds to requests that only read, and to others when the returned function is called.
func newSlowDaemon(t *testing.T) (respond func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "p") // the path of a socket in it must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	release := make(chan struct{})
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/version" || r.URL.Path == "/v1/pods" && !r.URL.Query().Has("watch"):
			_, _ = io.WriteString(w, "{}")
			return
		case strings.HasSuffix(r.URL.Path, "/ephemeral"):
			_, _ = io.WriteString(w, `{"pod": {"metadata": {"name": "web", "uid": "u"}}}`)
			return
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"status": 500, "error": "out of order"}`)
	})}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Setenv("PODSTEAD_SOCKET", l.Addr().String())
	if err := os.WriteFile(filepath.Join(dir, "podstead.toml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PODSTEAD_CONFIG", filepath.Join(dir, "podstead.toml"))
	t.Setenv("PODSTEAD_STATE_DIR", dir)
	return func() { close(release) }
}

// TestSlowCommands checks that commands show on a terminal what they wait for, and remove it when the daemon responds. They wait at the
// same time.
func TestSlowCommands(t *testing.T) {
	release := newSlowDaemon(t)
	t.Setenv("TERM", "xterm")
	file := filepath.Join(t.TempDir(), "web.toml")
	if err := os.WriteFile(file, []byte("[[containers]]\nname = \"app\"\nimage = \"i\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var running, waiting sync.WaitGroup
	for line, want := range map[string]string{
		"apply $FILE": "Applying pod files (",
		"debug web --image docker.io/library/busybox:1 -c look": `Waiting until container "look" runs (`,
		"image prune":                           "Removing images that nothing uses (",
		"image rm nginx:1":                      "Removing images (",
		"login a.example -u x --password-stdin": "Logging in to a.example (",
		"system df":                             "Measuring the disk usage (",
		"system prune --yes":                    "Removing what nothing uses (",
		"volume rm data":                        "Deleting persistent volumes (",
	} {
		terminal, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer terminal.Close()
		waiting.Add(1)
		running.Go(func() {
			shown := make(chan string, 1)
			go func() {
				var text bytes.Buffer
				buffer := make([]byte, 4096)
				isShown := sync.OnceFunc(waiting.Done)
				defer isShown()
				for failures := 0; failures < 2; { // twice: the kernel can report the end before the last text
					n, err := terminal.Read(buffer)
					text.Write(buffer[:n])
					if strings.Contains(text.String(), want) {
						isShown()
					}
					if err != nil { // the other end is closed
						failures++
					}
				}
				shown <- text.String()
			}()
			var stdout strings.Builder
			a := &app{in: strings.NewReader("secret"), out: &stdout, err: tty, hostRoot: t.TempDir()}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			code := a.run(ctx, strings.Fields(strings.ReplaceAll(line, "$FILE", file)))
			_ = tty.Close()
			_, after, found := strings.Cut(<-shown, want)
			if !found || code == 0 || !strings.Contains(after, "\r\x1b[Kpodstead: ") ||
				strings.Contains(after[strings.Index(after, "podstead: "):], want) {
				t.Errorf("podstead %s: exit code %d, the terminal shows %q after %q (%v)", line, code, after, want, found)
			}
		})
	}
	waiting.Wait()
	release()
	running.Wait()
}
