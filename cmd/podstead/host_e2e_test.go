//go:build e2e

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/test/ocitar"
	"github.com/podstead/podstead/test/transcript"
)

// newPageHost returns a shell on a host on which the service runs, with a registry that serves busybox of the host under every name of
// docker.io, for two platforms. The program is also called kubectl there.
func newPageHost(t *testing.T) *transcript.Shell {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("containers need root")
	}
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(repo, "bin")
	dir, err := os.MkdirTemp("", "p") // the path of a socket in it must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	work := filepath.Join(dir, "work")
	for _, err := range []error{
		os.Chmod(dir, 0o755), os.Mkdir(work, 0o755), os.Mkdir(filepath.Join(dir, "bin"), 0o755),
		os.Symlink(filepath.Join(bin, "podstead"), filepath.Join(dir, "bin/kubectl")),
		os.Mkdir(filepath.Join(dir, "etc"), 0o755), os.WriteFile(filepath.Join(dir, "etc/podstead.toml"), nil, 0o644),
		os.WriteFile(filepath.Join(dir, "bin/systemctl"), []byte(pageSystemctl), 0o755),
		os.Symlink(filepath.Join(repo, "examples"), filepath.Join(work, "examples")),
		os.Symlink(filepath.Join(repo, "examples/images"), filepath.Join(work, "images")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	env := append(os.Environ(),
		"PATH="+filepath.Join(dir, "bin")+":"+bin+":"+os.Getenv("PATH"), "NO_COLOR=1", "TESTDIR="+dir,
		"PODSTEAD_STATE_DIR="+dir+"/lib", "PODSTEAD_RUN_DIR="+dir+"/r", "PODSTEAD_LOG_DIR="+dir+"/log", "PODSTEAD_CONFIG_DIR="+dir+"/etc",
		"SYSTEMD_CREDENTIAL_SECRET="+dir+"/credential.secret", // in place of the key of the host
		"PODSTEAD_CONFIG="+dir+"/etc/podstead.toml", "PODSTEAD_ENGINE_IDLE_TIMEOUT=1m", "PODSTEAD_IMAGES_CERTS_DIR="+dir+"/etc/certs.d")
	shell := &transcript.Shell{
		Dir: work, Env: env, Timeout: 2 * time.Minute,
		Replace: strings.NewReplacer(work, "", dir+"/etc", "/etc/podstead", dir+"/lib", "/var/lib/podstead", dir+"/r/", "/run/podstead/",
			dir+"/log", "/var/log/podstead"),
		Actual: strings.NewReplacer("/etc/podstead", dir+"/etc", "/var/lib/podstead", dir+"/lib", "/var/log/podstead", dir+"/log"),
	}
	t.Cleanup(func() { // before the directory is removed
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		stop := exec.CommandContext(ctx, "podstead", "daemon", "stop", "--pods")
		stop.Path, stop.Env = filepath.Join(bin, "podstead"), env
		if out, err := stop.CombinedOutput(); err != nil {
			t.Logf("stop the daemon: %v: %s", err, out)
		}
	})
	pageRegistry(t, filepath.Join(dir, "etc/certs.d"))
	startService(t, filepath.Join(bin, "podstead"), dir, env)
	return shell
}

// pageSystemctl does what systemctl does for podstead.service: systemctl restart|reload podstead.
const pageSystemctl = `#!/bin/sh
set -e
case "$*" in
"restart podstead")
	podstead daemon stop
	setsid podstead daemon </dev/null >>"$TESTDIR/daemon.out" 2>&1 &
	echo $! >"$TESTDIR/daemon.pid"
	for try in $(seq 600); do
		[ -e "$PODSTEAD_RUN_DIR/podstead.sock" ] && exit 0
		sleep 0.1
	done
	exit 1 ;;
"reload podstead")
	kill -HUP "$(cat "$TESTDIR/daemon.pid")" ;;
*)
	exit 2 ;;
esac
`

// startService starts the daemon as a service does, and waits until it is ready.
func startService(t *testing.T, program, dir string, env []string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, "daemon.out"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "daemon")
	cmd.Env, cmd.Stdout, cmd.Stderr = env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "daemon.pid"), fmt.Append(nil, cmd.Process.Pid), 0o644); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("end of the log of the daemon:\n%s", text[max(0, len(text)-4000):])
		}
		_ = log.Close()
	})
	tick, deadline := time.NewTicker(50*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		if _, err := os.Stat(filepath.Join(dir, "r/podstead.sock")); err == nil {
			return
		}
		select {
		case <-tick.C:
		case err := <-exited:
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("the daemon exited: %v\n%s", err, text)
		case <-deadline:
			t.Fatal("the daemon is not ready after a minute")
		}
	}
}

// addImages adds the content of an image for several platforms, and returns the digest of its index.
func addImages(t *testing.T, blobs map[digest.Digest][]byte, images ...ocitar.Image) digest.Digest {
	t.Helper()
	var archive bytes.Buffer
	if err := ocitar.WriteOCI(&archive, images...); err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(&archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			t.Fatal("the archive has no index")
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		id := digest.FromBytes(data)
		blobs[id] = data
		if h.Name == ocispec.ImageIndexFile {
			return id
		}
	}
}

// pageRegistry serves busybox of the host under every name, and is the mirror of docker.io.
func pageRegistry(t *testing.T, certs string) {
	t.Helper()
	program, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	list, err := exec.Command(program, "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	layer := ocitar.Layer{
		{Path: "bin", Mode: os.ModeDir | 0o755},
		{Path: "etc", Mode: os.ModeDir | 0o755},
		{Path: "tmp", Mode: os.ModeDir | 0o777},
		{Path: "bin/busybox", Mode: 0o755, Data: data},
	}
	for applet := range strings.FieldsSeq(string(list)) {
		if applet != "busybox" {
			layer = append(layer, ocitar.File{Path: "bin/" + applet, Link: "busybox"})
		}
	}
	tags, blobs := map[string]digest.Digest{}, map[digest.Digest][]byte{}
	for _, name := range []string{"busybox", "nginx"} { // the second one is an image that no pod uses
		image := ocitar.Image{Layers: []ocitar.Layer{layer}}
		image.Config.Env, image.Config.Cmd = []string{"PATH=/bin", "NAME=" + name}, []string{"sh"}
		foreign := image
		if foreign.Architecture = "arm64"; runtime.GOARCH == "arm64" {
			foreign.Architecture = "amd64"
		}
		tags[name] = addImages(t, blobs, image, foreign)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last := digest.Digest(path.Base(r.URL.Path))
		if strings.Contains(r.URL.Path, "/manifests/") && !strings.Contains(string(last), ":") { // a tag
			last = tags["busybox"]
			if strings.Contains(r.URL.Path, "/nginx/") {
				last = tags["nginx"]
			}
		}
		data, found := blobs[last]
		if !found && r.URL.Path != "/v2/" {
			http.NotFound(w, r)
			return
		}
		var typed struct{ MediaType string }
		if strings.Contains(r.URL.Path, "/manifests/") && json.Unmarshal(data, &typed) == nil {
			w.Header().Set("Content-Type", typed.MediaType)
		}
		w.Header().Set("Docker-Content-Digest", string(last))
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		if r.Method != http.MethodHead {
			_, _ = w.Write(data)
		}
	}))
	t.Cleanup(server.Close)
	hosts := fmt.Sprintf("server = %q\n[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\n", server.URL, server.URL)
	for _, name := range []string{"docker.io", "registry.example.com"} {
		dir := filepath.Join(certs, name)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "hosts.toml"), []byte(hosts), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// mustRun executes a line that must succeed and returns its standard output.
func mustRun(t *testing.T, shell *transcript.Shell, line string) string {
	t.Helper()
	r, err := shell.Exec(t.Context(), line, func(string) bool { return false })
	if err != nil || r.Code != 0 {
		t.Fatalf("%s: exit code %d, %v\nstdout:\n%s\nstderr:\n%s", line, r.Code, err, r.Stdout, r.Stderr)
	}
	return r.Stdout
}
