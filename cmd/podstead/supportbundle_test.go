package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// newLeaky returns a host with a pod whose container prints a secret, a pod without secrets, and a file with a password that is refused.
func newLeaky(t *testing.T) *testHost {
	t.Helper()
	h := newTestHost(t, api.Version{})
	h.setDirs(t)
	h.closeServer()
	h.options.Secrets = configsource.Source{}
	h.serve(t)
	h.write(t, "leaky.toml", `restartPolicy = "Never"
terminationGracePeriodSeconds = 1
[[secrets]]
name = "login"
data.password = "planted-value"
[[configMaps]]
name = "settings"
data.mode = "confidential-map"
`+script("", "echo password planted-value; echo "+base64.StdEncoding.EncodeToString([]byte("planted-value"))+"; sleep 1000")+
		`env.PASSWORD.secretKeyRef = { name = "login", key = "password" }
env.MODE = "confidential-env"
`)
	h.write(t, "plain.toml", script("", "echo hello; exit 0"))
	h.want(t, "apply $DIR/leaky.toml $DIR/plain.toml", "pod/leaky created\npod/plain created\n")
	h.await(t, "get leaky", `1/1 +Running`)
	h.await(t, "logs leaky", "password")
	pod, _ := h.pods.Pod("leaky")
	h.engine.Crash(pod.Facts.UID, "app", lifecycle.Exit{Code: 3, Message: "login with planted-value failed"})
	h.await(t, "get leaky", `Error`)
	h.await(t, "logs plain", "hello")
	_, found := spec.Parse("/etc/podstead/pods.d/refused.toml", []byte(script("", "exit 0")+"env.PASSWORD = 918273645\n"))
	if len(found.Errors()) != 1 {
		t.Fatalf("problems: %v", found)
	}
	h.files.Refuse(podfiles.File{Path: "/etc/podstead/pods.d/refused.toml", Pod: "refused", Reason: api.ReasonInvalidFile, Problems: found})
	return h
}

// setDirs sets the directories that support-bundle reads.
func (h *testHost) setDirs(t *testing.T) {
	t.Helper()
	for variable, dir := range map[string]string{
		"PODSTEAD_STATE_DIR": "state", "PODSTEAD_RUN_DIR": "run", "PODSTEAD_LOG_DIR": "logs", "PODSTEAD_CONFIG_DIR": "etc",
	} {
		t.Setenv(variable, filepath.Join(h.dir, dir))
	}
}

// bundleFiles returns the files of an archive by their names without the directory.
func bundleFiles(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(compressed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(path.Clean(h.Name), "/")
		files[name] = string(text)
	}
}

// TestSupportBundle: the archive has all parts, and no secrets.
func TestSupportBundle(t *testing.T) {
	h := newLeaky(t)
	got := h.run(t, "support-bundle -o $DIR/b.tar.gz --tail 1")
	if got.code != 0 || !strings.HasPrefix(got.stdout, "$DIR/b.tar.gz (") ||
		!strings.Contains(got.stderr, "check the archive before you send it") {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	file := filepath.Join(h.dir, "b.tar.gz")
	archive, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	files := bundleFiles(t, archive)
	encoded := base64.RawStdEncoding.EncodeToString([]byte("planted-value"))
	for name, text := range files {
		for _, secret := range []string{"planted", encoded, "confidential-map", "confidential-env", "918273645"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %s:\n%s", name, secret, text)
			}
		}
	}
	for name, want := range map[string]string{
		"versions.json": `"version": "devel"`, "config.json": `"logDir"`, "doctor.json": `"check": "kernel"`,
		"files.txt": "/state/leaky.json", "manifest.json": `"events.jsonl"`,
		"events.jsonl": `login with [redacted] failed`, "stats.json": `"pods"`,
		"pods/leaky/pod.yaml": "message: login with [redacted] failed", "pods/leaky/why.txt": "exited with code 3",
		"pods/leaky/logs/app.log": "[redacted]", "pods/plain/logs/app.log": "stdout hello\n", "pods/plain/why.txt": "plain",
		"pods/plain/pod.yaml":  "name: plain",
		"pods/refused/why.txt": "env.PASSWORD: must be a string, found integer.",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s: no %s in\n%s", name, want, files[name])
		}
	}
	if n := strings.Count(files["pods/leaky/logs/app.log"], "\n"); n != 1 {
		t.Errorf("--tail 1: %d lines\n%s", n, files["pods/leaky/logs/app.log"])
	}
}

// TestSupportBundleFlags checks the output, flags and errors.
func TestSupportBundleFlags(t *testing.T) {
	h := newLeaky(t)
	var out bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &out, err: io.Discard}
	if code := a.run(t.Context(), []string{"support-bundle", "-o", "-", "--no-logs"}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	files := bundleFiles(t, out.Bytes())
	for name, text := range files {
		if strings.Contains(name, "logs/") || strings.HasSuffix(name, "why.txt") && strings.Contains(text, "password [redacted]") {
			t.Errorf("--no-logs: %s\n%s", name, text)
		}
	}
	if files["pods/leaky/why.txt"] == "" {
		t.Error("--no-logs: the explanation is missing")
	}
	t.Chdir(t.TempDir())
	if got := h.run(t, "support-bundle"); got.code != 0 {
		t.Errorf("exit code %d\n%s", got.code, got.stderr)
	} else if list, err := filepath.Glob("podstead-support-*.tar.gz"); err != nil || len(list) != 1 ||
		!strings.HasPrefix(got.stdout, list[0]+" (") {
		t.Errorf("files %q, %v, stdout %q", list, err, got.stdout)
	}
	for line, want := range map[string]string{
		"support-bundle --tail 0":           "--tail 0: must be at least 1",
		"support-bundle --no-logs --tail 5": "--no-logs and --tail cannot be combined",
		"support-bundle web":                `support-bundle accepts no arguments, got "web"`,
	} {
		h.fails(t, line, statusUsage, want)
	}
	h.fails(t, "support-bundle -o $DIR", statusFailed, "not a regular file")
	if err := os.Symlink(h.write(t, "target", "kept"), filepath.Join(h.dir, "link")); err != nil {
		t.Fatal(err)
	}
	h.fails(t, "support-bundle -o $DIR/link", statusFailed, "hint: write to standard output with -o -")
	h.fails(t, "support-bundle -o $DIR/none/b.tar.gz", statusFailed, "no such file or directory")
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	a.out = full
	if code := a.run(t.Context(), []string{"support-bundle", "-o", "-"}); code != statusFailed {
		t.Errorf("full output: exit code %d", code)
	}
}

// unreadable is a source of secrets that cannot be read.
type unreadable struct{}

func (unreadable) Secret(*spec.Pod, string) (map[string][]byte, error) {
	return nil, errors.New("the disk fails")
}

// TestSupportBundleWithoutValues: what may contain a secret is left out if the secret cannot be read, or if there is no daemon.
func TestSupportBundleWithoutValues(t *testing.T) {
	h := newLeaky(t)
	h.closeServer()
	h.options.Secrets = unreadable{}
	h.serve(t)
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; <-retry.C {
		err := os.RemoveAll(filepath.Join(h.dir, "state")) // with the inline secrets
		if err == nil {
			break
		}
		if time.Now().After(deadline) { // until then, the supervisor may be saving a state
			t.Fatal(err)
		}
	}
	read := func() (map[string]string, string) {
		t.Helper()
		got := h.run(t, "support-bundle -o $DIR/b.tar.gz")
		archive, err := os.ReadFile(filepath.Join(h.dir, "b.tar.gz"))
		if err != nil || got.code != 0 {
			t.Fatal(err, got)
		}
		files := bundleFiles(t, archive)
		for name, text := range files {
			if strings.HasSuffix(name, "/pod.yaml") { // the arguments have the text that the container prints
				_, text, _ = strings.Cut(text, "\nstatus:")
			}
			if strings.Contains(text, "planted") {
				t.Errorf("%s has a secret:\n%s", name, text)
			}
		}
		return files, got.stderr
	}
	files, stderr := read()
	if files["pods/leaky/logs/app.log"] != "" || !strings.Contains(files["pods/leaky/pod.yaml"], "[withheld: ") ||
		!strings.Contains(stderr, "pod leaky: its logs and messages are withheld") {
		t.Errorf("the secrets cannot be read: %s\n%s", stderr, files["pods/leaky/pod.yaml"])
	}
	if files["pods/plain/logs/app.log"] == "" {
		t.Error("the log of the other pod is missing")
	}
	h.closeServer()
	files, stderr = read()
	if files["versions.json"] == "" || files["events.jsonl"] != "" || !strings.Contains(stderr, "the daemon is not running") {
		t.Errorf("without a daemon: %s\n%v", stderr, files)
	}
}
