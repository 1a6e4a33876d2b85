//go:build e2e

package faults

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
)

// TestDamagedImage: a container whose image is damaged on the disk starts again when the image can be had again. Until then its message
// has the cause, and commands for images work.
func TestDamagedImage(t *testing.T) {
	f := newFixture(t)
	f.MustRun("get")
	archive := f.ownImage("imported")
	f.MustRun("image", "import", archive)
	imported, pulled := newLayoutRegistry(t, archive), newLayoutRegistry(t, f.ownImage("pulled"))
	images := map[string]string{"imported": "localhost/imported:1", "pulled": pulled.image()}
	policies := map[string]string{"imported": "Never", "pulled": "IfNotPresent"}
	for name, image := range images {
		_, err := f.Create(f.Ctx(), name,
			fmt.Sprintf("name = %q\nterminationGracePeriodSeconds = 0\nrestartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }\n"+
				"[[containers]]\nname = \"c\"\nimage = %q\nimagePullPolicy = %q\ncommand = [\"busybox\", \"sh\", \"-c\", %q]\n",
				name, image, policies[name], "trap 'exit 1' USR1; while :; do busybox sleep 0.05; done # "+name))
		f.Check(err)
	}
	for name := range images {
		f.running(name)
	}

	refuse := fault(func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	pulled.fault.Store(&refuse)
	f.damageManifest(imported)
	f.damageManifest(pulled)
	f.MustRun("system", "df")
	if out, err := f.Podstead(f.Ctx(), "image", "export", images["imported"], "-o", filepath.Join(f.Dir, "out.tar")); err == nil ||
		!strings.Contains(err.Error(), "content is damaged") {
		t.Errorf("export of a damaged image: %v\n%s", err, out)
	}
	for name, want := range map[string]string{
		"imported": `image "localhost/imported:1" must be pulled again, but its pull policy is Never: content is damaged: read ` +
			`manifest: .*`,
		"pulled": `Failed to pull image ".*/image:1": failed to resolve .*: 503 Service Unavailable (the image on this host cannot be ` +
			`used: content is damaged: read manifest: .*)`,
	} {
		f.usr1("# " + name)
		pattern := regexp.MustCompile(strings.NewReplacer("(", `\(`, ")", `\)`).Replace(want))
		f.Until(name, "without an image", func(p *api.Pod) bool {
			w := p.Status.ContainerStatuses[0].State.Waiting
			return w != nil && (pattern.MatchString(w.Message) || pattern.MatchString(f.MustRun("events", name)))
		})
	}

	pulled.fault.Store(nil)
	f.MustRun("image", "import", archive)
	for name := range images {
		f.Until(name, "restarted", func(p *api.Pod) bool {
			s := p.Status.ContainerStatuses[0]
			return s.RestartCount == 1 && s.State.Running != nil
		})
	}
	f.MustRun("delete", "--all", "--force")
	f.MustRun("image", "rm", images["imported"])
}

// damageManifest overwrites the manifest of an image.
func (f *fixture) damageManifest(r *layoutRegistry) {
	f.Helper()
	path := filepath.Join(f.StateDir(), "engine", "io.containerd.content.v1.content", "blobs",
		strings.ReplaceAll(*r.tagged.Load(), ":", "/"))
	was, err := os.Stat(path)
	f.Check(err)
	f.Check(os.WriteFile(path, make([]byte, was.Size()), 0o600))
}
