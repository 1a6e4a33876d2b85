//go:build e2e

package runtime_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const secretsFile = `
secrets = [{ name = "inline", data = { password = "Oz7-inline-value", pin = "q%7" } }]
volumes = [
	{ name = "v", secret = { secretName = "files" } },
	{ name = "d", emptyDir = { medium = "Memory" } },
]

[[containers]]
name = "runs"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c",
	'test "$1" = "$A-x" && test -n "$FILE" && cat /v/key > /dev/null && echo started && while :; do sleep 1; done',
	"sh", "$(A)-x"]
env.A.secretKeyRef = { name = "inline", key = "password" }
env.PIN.secretKeyRef = { name = "inline", key = "pin" }
env.FILE.fileKeyRef = { volumeName = "d", path = "app.env", key = "TOKEN" }
envFrom = [{ prefix = "F_", secretRef = { name = "files" } }]
volumeMounts = [{ name = "v", mountPath = "/v" }]

[[containers]]
name = "missing"
image = "localhost/podstead/busybox:1"
command = ["$(A)/$(F_key)"]
env.A.secretKeyRef = { name = "inline", key = "password" }
envFrom = [{ prefix = "F_", secretRef = { name = "files" } }]

[[containers]]
name = "missing-of-file"
image = "localhost/podstead/busybox:1"
command = ["/$(FILE)"]
env.FILE.fileKeyRef = { volumeName = "d", path = "app.env", key = "TOKEN" }

[[containers]]
name = "short"
image = "localhost/podstead/busybox:1"
command = ["$(PIN)"]
env.PIN.secretKeyRef = { name = "inline", key = "pin" }

[[containers]]
name = "wrong-path"
image = "localhost/podstead/busybox:1"
command = ["true"]
env.A.secretKeyRef = { name = "inline", key = "password" }
volumeMounts = [{ name = "d", mountPath = "/d", subPathExpr = "$(UP)/$(A)" }]
env.UP = ".."

[[containers]]
name = "links"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", 'ln -s "/dev/$A" /d/link']
env.A.secretKeyRef = { name = "inline", key = "password" }
volumeMounts = [{ name = "d", mountPath = "/d" }]

[[containers]]
name = "writes"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo TOKEN=\\'Oz7-value$NONE-of-volume\\' > /d/app.env"]
volumeMounts = [{ name = "d", mountPath = "/d" }]

[[containers]]
name = "nested"
image = "localhost/podstead/busybox:1"
command = ["true"]
env.A.secretKeyRef = { name = "inline", key = "password" }
volumeMounts = [{ name = "d", mountPath = "/d" }, { name = "v", mountPath = "/d/link/x" }]
`

// buffer is a log for concurrent use.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// TestSecretsAreHidden searches all files of the host for the values of secrets, while a pod is running and after it was removed, and all
// errors and the log. They must only be in volumes on tmpfs, and in the bundle of a running container.
func TestSecretsAreHidden(t *testing.T) {
	m := newTestHost(t)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	log := &buffer{}
	m.opts.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	m.start()
	secrets := []string{"Oz7-inline-value", "Oz7-file-value", "q%7", "Oz7-value-of-volume"}
	m.write("etc/secrets/files/key", secrets[1], 0o600)
	p := newPod(m, m.parse(secretsFile))
	linked, err := p.begin("links")
	if err != nil {
		t.Fatal(err)
	}
	p.wait(linked)
	written, err := p.begin("writes")
	if err != nil {
		t.Fatal(err)
	}
	p.wait(written)
	text := &bytes.Buffer{}
	for _, c := range []struct {
		name   string
		reason lifecycle.Reason
	}{
		{"missing", lifecycle.ReasonStartError},
		{"missing-of-file", lifecycle.ReasonStartError},
		{"short", lifecycle.ReasonStartError},
		{"wrong-path", lifecycle.ReasonCreateConfigError},
		{"nested", lifecycle.ReasonCreateConfigError},
	} {
		_, err := p.begin(c.name)
		f, is := errors.AsType[lifecycle.Failure](err)
		if !is || f.Reason != c.reason {
			t.Errorf("%s: error %v, want the reason %s", c.name, err, c.reason)
			continue
		}
		if !strings.Contains(f.Message, "[hidden]") {
			t.Errorf("%s: the value of the secret is not in the error: %s", c.name, f.Message)
		}
		text.WriteString(f.Message + "\n")
	}
	ref, err := p.begin("runs")
	if err != nil {
		t.Fatal(err)
	}
	m.eventually("the start of the container", func() (string, bool) { out := p.log(ref); return out, out == "started\n" })
	found, err := m.Inventory(m.ctx())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(text).Encode(found); err != nil {
		t.Fatal(err)
	}
	bundles := filepath.Join("run", "engine", "io.containerd.runtime.v2.task")
	monitored := filepath.Join("run", "engine", "bundles")
	m.searchFiles(secrets, filepath.Join("run", "volumes"), bundles, monitored)
	if err := p.KillContainer(m.ctx(), uid, ref); err != nil {
		t.Fatal(err)
	}
	p.wait(ref)
	m.eventually("the deletion of the bundle, which the engine renames first", func() (string, bool) {
		left, err := filepath.Glob(filepath.Join(m.dir, bundles, "podstead", "*"+record.ContainerID(uid, ref)))
		others, othersErr := filepath.Glob(filepath.Join(m.dir, monitored, record.ContainerID(uid, ref)))
		return fmt.Sprint(left, others, err, othersErr), err == nil && othersErr == nil && len(left)+len(others) == 0
	})
	m.searchFiles(secrets, filepath.Join("run", "volumes"))
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Fatal(err)
	}
	m.searchFiles(secrets)
	log.mu.Lock()
	defer log.mu.Unlock()
	text.Write(log.text.Bytes())
	for _, s := range secrets {
		if strings.Contains(text.String(), s) {
			t.Errorf("%q is in an error, the inventory or the log:\n%s", s, text)
		}
	}
}

// searchFiles searches all files of the host for texts, except its configuration and the given directories.
func (m *testHost) searchFiles(texts []string, except ...string) {
	m.Helper()
	skip := map[string]bool{"etc": true}
	for _, dir := range except {
		skip[dir] = true
	}
	err := filepath.WalkDir(m.dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(m.dir, path)
		switch {
		case err != nil:
			return err
		case skip[relative], relative == filepath.Join("run", "ns"), strings.HasSuffix(path,
			"snapshotter.v1.overlayfs"), strings.HasSuffix(path, "content.v1.content"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, text := range texts {
			if bytes.Contains(content, []byte(text)) {
				m.Errorf("%s contains %q", relative, text)
			}
		}
		return nil
	})
	if err != nil {
		m.Error(err)
	}
}
