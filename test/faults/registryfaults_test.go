//go:build e2e

package faults

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/ocitar"
)

// registryFault is a registry that fails until it is repaired.
type registryFault struct {
	name  string
	fault fault
	want  string // in the message of the failed pull
}

// onLayer restricts a fault to the layer.
func onLayer(wrong fault) fault {
	return func(w http.ResponseWriter, req *http.Request, data []byte) bool {
		return req.Method == http.MethodGet && len(data) >= 1<<20 && wrong(w, req, data)
	}
}

func registryFaults() []registryFault {
	refuse := func(status int, retryAfter string) fault {
		return func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			if retryAfter != "" {
				w.Header().Set("Retry-After", retryAfter)
			}
			w.WriteHeader(status)
			return true
		}
	}
	return []registryFault{
		{"slow", onLayer(func(w http.ResponseWriter, req *http.Request, data []byte) bool {
			w.Header().Set("Content-Length", strconv.Itoa(len(data)))
			_, _ = w.Write(data[:len(data)/2])
			_ = http.NewResponseController(w).Flush()
			<-req.Context().Done()
			return true
		}), "i/o timeout"},
		{"truncated", onLayer(func(w http.ResponseWriter, _ *http.Request, data []byte) bool {
			_, _ = w.Write(data[:len(data)/2]) // a complete response
			return true
		}), "unexpected EOF"},
		{"wrong-digest", onLayer(func(w http.ResponseWriter, _ *http.Request, data []byte) bool {
			_, _ = w.Write(append([]byte("x"), data[1:]...))
			return true
		}), "unexpected commit digest"},
		{"limited", refuse(http.StatusTooManyRequests, "45"), "limits requests (429 Too Many Requests), next request possible in "},
		{"broken", refuse(http.StatusServiceUnavailable, ""), "503 Service Unavailable"},
		{"dying", func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			panic(http.ErrAbortHandler) // closes the connection
		}, "EOF"},
	}
}

// TestRegistryFaults: a pod whose registry fails has the status and the events of the kubelet, its pulls are repeated with back-off, and
// it starts when the registry is repaired, without a command.
func TestRegistryFaults(t *testing.T) {
	f := newFixture(t)
	f.Env = append(f.Env, "PODSTEAD_IMAGES_MAX_PARALLEL_PULLS=10")
	f.MustRun("get") // starts the daemon
	faults := registryFaults()
	registries := map[string]*layoutRegistry{}
	for i := range faults {
		name := faults[i].name
		r := newLayoutRegistry(t, f.ownImage(name))
		r.fault.Store(&faults[i].fault)
		registries[name] = r
		_, err := f.Create(f.Ctx(), name, fmt.Sprintf(
			"name = %q\nterminationGracePeriodSeconds = 0\n[[containers]]\nname = \"c\"\nimage = %q\ncommand = [\"sleep\", \"100000\"]\n",
			name, r.image()))
		f.Check(err)
	}
	for _, reason := range []string{"ErrImagePull", "ImagePullBackOff"} {
		for i := range faults {
			f.Until(faults[i].name, reason, func(p *api.Pod) bool { return len(p.Status.ContainerStatuses) > 0 && f.waited(p, reason) })
		}
	}
	for i := range faults {
		name, image := faults[i].name, registries[faults[i].name].image()
		events := f.MustRun("events", name)
		for _, want := range []string{
			"Pulling image \"" + image + "\"\n", "warning: Failed to pull image \"" + image + "\": ", faults[i].want,
			"warning: Error: ErrImagePull\n",
			"Back-off pulling image \"" + image + "\"", "warning: Error: ImagePullBackOff\n",
		} {
			if !strings.Contains(events, want) {
				t.Errorf("%s: no event %q:\n%s", name, want, events)
			}
		}
		const each = 20
		pulls := int32(strings.Count(events, "Pulling image"))
		if n := registries[name].count.Load(); n > each*(pulls+1) {
			t.Errorf("%s: %d requests for %d pulls", name, n, pulls)
		}
		registries[name].fault.Store(nil)
	}
	for i := range faults {
		f.Until(faults[i].name, "running", func(p *api.Pod) bool { return p.Status.Phase == api.PhaseRunning })
		f.MustRun("delete", faults[i].name)
	}
}

// waited reports whether a container waits for a reason, or has done so.
func (f *fixture) waited(p *api.Pod, reason string) bool {
	if w := p.Status.ContainerStatuses[0].State.Waiting; w != nil && string(w.Reason) == reason {
		return true
	}
	return strings.Contains(f.MustRun("events", p.Metadata.Name), "Error: "+reason+"\n")
}

// ownImage returns an archive with an image that shares no layer with others, and has busybox.
func (f *fixture) ownImage(name string) (archive string) {
	f.Helper()
	program, err := exec.LookPath("busybox")
	f.Check(err)
	data, err := os.ReadFile(program)
	f.Check(err)
	var buf bytes.Buffer
	archive = filepath.Join(f.Dir, name+".tar")
	layer := ocitar.Layer{
		{Path: "bin", Mode: fs.ModeDir | 0o755},
		{Path: "bin/busybox", Mode: 0o755, Data: data},
		{Path: "bin/sleep", Link: "busybox"},
		{Path: "name", Mode: 0o644, Data: []byte(name)},
		{Path: "zeros", Mode: 0o644, Data: make([]byte, 4<<20)}, // half of it is more than containerd's buffer
	}
	img := ocitar.Image{
		Name: "localhost/" + name + ":1", Config: ocispec.ImageConfig{Env: []string{"PATH=/bin"}}, Layers: []ocitar.Layer{layer},
	}
	f.Check(errors.Join(ocitar.WriteOCI(&buf, img), os.WriteFile(archive, buf.Bytes(), 0o600)))
	return archive
}
