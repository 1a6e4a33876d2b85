//go:build e2e

package runtime_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// With allowed host paths, a pod with a symbolic link to another directory cannot start.
func TestAllowedHostPaths(t *testing.T) {
	m := newTestHost(t)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	allowed := filepath.Join(m.dir, "srv")
	if err := errors.Join(
		os.MkdirAll(filepath.Join(allowed, "web"), 0o755), os.WriteFile(filepath.Join(allowed, "web", "page"), []byte("hello"), 0o600),
		os.Symlink("/etc", filepath.Join(allowed, "out")),
	); err != nil {
		t.Fatal(err)
	}
	m.opts.HostPaths = []string{allowed}
	m.start()
	file := func(path string) string {
		return `
[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "cat /v/page && echo more > /v/new"]
volumeMounts.v = "/v"
[[volumes]]
name = "v"
hostPath.path = "` + path + `"
`
	}
	p := newPod(m, m.parse(file(filepath.Join(allowed, "web"))))
	if got := strings.TrimSpace(p.run("c")); got != "hello" {
		t.Errorf("output %q", got)
	}
	if text, err := os.ReadFile(filepath.Join(allowed, "web", "new")); string(text) != "more\n" {
		t.Errorf("file written by the container: %q, %v", text, err)
	}

	outUID := strings.Replace(uid, "0001", "0002", 1)
	pod := m.parse(file(filepath.Join(allowed, "out")))
	_, err := m.StartSandbox(m.ctx(), outUID, pod, lifecycle.StartSandbox{Sandbox: 1, Round: 1})
	failure, is := errors.AsType[lifecycle.Failure](err)
	if !is || failure.Reason != lifecycle.ReasonFailedMount ||
		!strings.Contains(failure.Message, `leads to "/etc": must be below `+allowed) {
		t.Errorf("symbolic link to another directory: %v", err)
	}
	if err := m.RemovePod(m.ctx(), outUID, pod); err != nil {
		t.Error(err)
	}

	// The check is repeated when a container restarts after a change of the configuration.
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m.opts.HostPaths = []string{"/etc"}
	m.start()
	again := lifecycle.Ref{Container: "c", Round: 1, Attempt: 2}
	_, err = p.StartContainer(p.ctx(), uid, p.Pod, lifecycle.StartContainer{Ref: again, Sandbox: 1})
	wantFailure(t, "path that is no longer allowed", err, lifecycle.ReasonCreateConfigError, "must be below /etc")
}
