//go:build e2e

package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podstead/podstead/test/ocitar"
)

// startRegistry is the command `registry`: it starts Debian's docker-registry, and sets $REGISTRY to its address.
func startRegistry(ts *testscript.TestScript, _ bool, _ []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	host := l.Addr().String()
	ts.Check(l.Close())
	dir := ts.MkAbs("registry")
	ts.Check(os.MkdirAll(dir, 0o755))
	config := filepath.Join(dir, "config.yml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\n", dir, host)
	ts.Check(os.WriteFile(config, []byte(text), 0o600))
	cmd := exec.Command(registryProgram(ts), "serve", config)
	if err := cmd.Start(); err != nil {
		ts.Fatalf("start docker-registry: %v (run .ci/deps test)", err)
	}
	ts.Defer(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; {
		r, err := http.Get("http://" + host + "/v2/")
		if err == nil {
			ts.Check(r.Body.Close())
			break
		}
		if time.Now().After(deadline) {
			ts.Fatalf("docker-registry does not respond: %v", err)
		}
	}
	ts.Setenv("REGISTRY", host)
}

// pushImage is the command `push REPOSITORY:TAG VERSION [ARCHITECTURE]`: it pushes an image with a file that contains the version.
func pushImage(ts *testscript.TestScript, _ bool, args []string) {
	img := ocitar.Image{
		Name: args[0], Gzip: true, Config: ocispec.ImageConfig{Cmd: []string{"/bin/app"}, Labels: map[string]string{"version": args[1]}},
		Layers: []ocitar.Layer{{{Path: "version", Mode: 0o644, Data: []byte(args[1])}}},
	}
	if len(args) > 2 {
		img.Architecture = args[2]
	}
	var buf bytes.Buffer
	ts.Check(ocitar.WriteOCI(&buf, img))
	pushTar(ts, &buf, args[0])
}

// pushTar pushes the first image of an archive in the OCI layout.
func pushTar(ts *testscript.TestScript, archive io.Reader, name string) {
	blobs := map[string][]byte{}
	var index ocispec.Index
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		ts.Check(err)
		data, err := io.ReadAll(r)
		ts.Check(err)
		if h.Name == "index.json" {
			ts.Check(json.Unmarshal(data, &index))
		}
		if strings.HasPrefix(h.Name, "blobs/sha256/") {
			blobs["sha256:"+path.Base(h.Name)] = data
		}
	}
	repo, tag, _ := strings.Cut(name, ":")
	base := "http://" + ts.Getenv("REGISTRY") + "/v2/" + repo
	manifest := index.Manifests[0]
	for digest, data := range blobs {
		if digest != manifest.Digest.String() {
			upload := send(ts, http.MethodPost, base+"/blobs/uploads/", "", nil)
			send(ts, http.MethodPut, upload+"&digest="+digest, "application/octet-stream", data)
		}
	}
	send(ts, http.MethodPut, base+"/manifests/"+tag, manifest.MediaType, blobs[manifest.Digest.String()])
}

// send sends a request, and returns the location in the response.
func send(ts *testscript.TestScript, method, url, mediaType string, body []byte) (location string) {
	q, err := http.NewRequest(method, url, bytes.NewReader(body))
	ts.Check(err)
	q.Header.Set("Content-Type", mediaType)
	r, err := http.DefaultClient.Do(q)
	ts.Check(err)
	ts.Check(r.Body.Close())
	if r.StatusCode >= 300 {
		ts.Fatalf("%s %s: %s", method, url, r.Status)
	}
	return r.Header.Get("Location")
}

// imageCommands are the commands of scripts that use a registry.
var imageCommands = map[string]func(*testscript.TestScript, bool, []string){
	"registry": startRegistry, "another": anotherRegistry, "unregistry": stopRegistry,
	"push": pushImage, "push-archive": pushArchive, "push-index": pushIndex, "keygen": newSigningKey, "sign": signImage,
	"answers": startAnswers, "mount-tmpfs": mountTmpfs,
}
