//go:build e2e

package systemd_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/test/internal/installed"
	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/ocitar"
	"github.com/podstead/podstead/test/systemd"
)

// registryAddress is that of the registry of a machine.
const registryAddress = "127.0.0.1:5000"

// registryUnit starts before the service, which then never waits for a back-off.
const registryUnit = `[Unit]
Before=podstead.service
[Service]
ExecStart=/var/lib/registry/docker-registry serve /var/lib/registry/config.yml
ExecStartPost=bash -c 'until (: </dev/tcp/127.0.0.1/5000) 2>/dev/null; do sleep 0.05; done'
[Install]
WantedBy=multi-user.target
`

// TestPowerCutsDuringPull cuts the power at random moments, while an image is pulled from docker-registry, imported from an archive and
// unpacked.
func TestPowerCutsDuringPull(t *testing.T) {
	m := machine(t)
	h := install(t, m)
	write := writer(t, m)
	installRegistry(t, write)
	write("/etc/podstead/podstead.toml", []byte("[images]\nmaxBandwidth = \"16Mi\"\n"), 0o644) // a pull of an image takes a second

	r := rig.Seeded(t)
	var images []installed.PullImage
	for version := range 2 {
		img, archive := summed(t, r, version+1)
		img.Archive = fmt.Sprintf("/var/lib/images/data-%d.tar", version+1)
		write(img.Archive, archive, 0o644)
		img.Publish = publish(t, archive, write)
		images = append(images, img)
	}
	h.Sh("sync; systemctl daemon-reload; systemctl enable --now registry 2>&1; systemctl restart podstead; sync")
	h.Pull(r, rig.Times(t), images[0], images[1])
}

// writer returns a function that writes a file of a machine, without a sync.
func writer(t *testing.T, m *systemd.Machine) func(name string, data []byte, mode fs.FileMode) {
	return func(name string, data []byte, mode fs.FileMode) {
		t.Helper()
		file := filepath.Join(m.Root(), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, data, mode)); err != nil {
			t.Fatal(err)
		}
	}
}

// installRegistry writes docker-registry and its unit.
func installRegistry(t *testing.T, write func(name string, data []byte, mode fs.FileMode)) {
	t.Helper()
	write("/var/lib/registry/docker-registry", registryProgram(t), 0o755)
	write("/var/lib/registry/config.yml",
		fmt.Appendf(nil,
			"version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: /var/lib/registry}}\nhttp: {addr: %q}\n",
			registryAddress),
		0o644)
	write("/etc/systemd/system/registry.service", []byte(registryUnit), 0o644)
}

// registryProgram returns Debian's docker-registry.
func registryProgram(t *testing.T) []byte {
	t.Helper()
	repository, err := rig.Repository()
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		program = filepath.Join(repository, ".cache/debian/usr/bin/docker-registry")
	}
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatalf("find docker-registry: %v (run .ci/deps test)", err)
	}
	return data
}

// summed returns an image with random files, and its archive. Versions share their first layer, which contains busybox.
func summed(t *testing.T, r *rand.Rand, version int) (img installed.PullImage, archive []byte) {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatalf("find busybox: %v (run .ci/deps test)", err)
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	base := ocitar.Layer{
		{Path: "bin", Mode: fs.ModeDir | 0o755}, {Path: "tmp", Mode: fs.ModeDir | 0o777}, {Path: "bin/busybox", Mode: 0o755, Data: program},
	}
	for _, name := range []string{"sh", "sha256sum", "sleep", "test", "touch"} {
		base = append(base, ocitar.File{Path: "bin/" + name, Link: "busybox"})
	}
	sums := fmt.Sprintf("%x  bin/busybox\n", sha256.Sum256(program))
	layers := []ocitar.Layer{base}
	for i := range 4 {
		dir := fmt.Sprintf("data%d", i)
		layer := ocitar.Layer{{Path: dir, Mode: fs.ModeDir | 0o755}}
		for file := range 151 {
			data := make([]byte, 16<<10)
			if file == 0 {
				data = make([]byte, 2<<20)
			}
			for j := range data {
				data[j] = byte(r.Uint32())
			}
			name := fmt.Sprintf("%s/%d", dir, file)
			layer = append(layer, ocitar.File{Path: name, Mode: 0o644, Data: data})
			sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name)
		}
		layers = append(layers, layer)
	}
	layers = append(layers, ocitar.Layer{{Path: "sums", Mode: 0o644, Data: []byte(sums)}})
	var buf bytes.Buffer
	name := registryAddress + "/data:1"
	err = ocitar.WriteOCI(&buf, ocitar.Image{
		Name: name, Gzip: true, Layers: layers,
		Config: ocispec.ImageConfig{
			Env: []string{"PATH=/bin"}, Cmd: []string{"sh"}, Labels: map[string]string{"version": fmt.Sprint(version)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return installed.PullImage{
		Name: name, Sums: fmt.Sprintf("%x", sha256.Sum256([]byte(sums))), Files: strings.Count(sums, "\n"),
	}, buf.Bytes()
}

// publish writes the image of an archive into the directory of docker-registry, and returns a script that moves the tag to the image.
func publish(t *testing.T, archive []byte, write func(string, []byte, fs.FileMode)) string {
	t.Helper()
	const v2 = "/var/lib/registry/docker/registry/v2/"
	var index ocispec.Index
	var blobs []string
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		data, readErr := io.ReadAll(r)
		if err = errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		if header.Name == "index.json" {
			if err := json.Unmarshal(data, &index); err != nil {
				t.Fatal(err)
			}
		}
		if path.Dir(header.Name) == "blobs/sha256" {
			hex := path.Base(header.Name)
			write(v2+"blobs/sha256/"+hex[:2]+"/"+hex+"/data", data, 0o644)
			blobs = append(blobs, hex)
		}
	}
	manifest := index.Manifests[0].Digest
	for _, hex := range blobs {
		write(v2+"repositories/data/_layers/sha256/"+hex+"/link", []byte("sha256:"+hex), 0o644)
	}
	link := []byte(manifest.String())
	write(v2+"repositories/data/_manifests/revisions/sha256/"+manifest.Encoded()+"/link", link, 0o644)
	tag := v2 + "repositories/data/_manifests/tags/1/"
	write(tag+"index/sha256/"+manifest.Encoded()+"/link", link, 0o644)
	return fmt.Sprintf("mkdir -p %[1]scurrent; printf %%s %s > %[1]scurrent/link; sync", tag, manifest)
}
