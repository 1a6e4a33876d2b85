package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/fakefiles"
)

// newEdited returns a host with a pod of the pods directory, whose file exists, and an editor that runs a script on the file $1.
func newEdited(t *testing.T) (h *testHost, file string) {
	t.Helper()
	h = newTestHost(t, api.Version{})
	h.closeServer()
	h.files = fakefiles.New(filepath.Join(h.dir, "pods.d"), h.pods)
	h.options.Files = h.files
	h.serve(t)
	file = h.write(t, "pods.d/web.toml", script("labels.tier = \"one\"", runs))
	h.want(t, "apply $DIR/pods.d/web.toml", "pod/web created\n")
	h.await(t, "get", "web +1/1 +Running")
	t.Setenv("TMPDIR", h.dir)
	return h, file
}

func (h *testHost) setEditor(t *testing.T, script string) {
	t.Helper()
	t.Setenv("VISUAL", "sh "+h.write(t, "editor", script))
}

func TestEdit(t *testing.T) {
	h, file := newEdited(t)
	h.setEditor(t, `sed -i s/one/two/ "$1"`)
	if got := h.want(t, "edit web --wait", "pod/web configured\n"); got.stderr != "" &&
		!strings.Contains(got.stderr, "pod/web: 1/1 Running") {
		t.Errorf("stderr %q", got.stderr)
	}
	h.want(t, "get web -o jsonpath={.metadata.labels.tier}", "two")

	h.setEditor(t, "true")
	if got := h.want(t, "edit pod/web", ""); got.stderr != "podstead: the file was not changed, nothing was applied\n" {
		t.Errorf("stderr %q", got.stderr)
	}
	h.setEditor(t, `sed -i s/image/imaje/ "$1"`)
	h.fails(t, "edit web", statusUsage, `podstead: edit pod "web": the file is invalid and was not changed again: $DIR/pods.d/web.toml:`)

	h.setEditor(t, `grep -q '"db"' "$1" || sed -i '1i name = "db"' "$1"`)
	h.fails(t, "edit web", statusUsage, `must remain "web"`)

	h.setEditor(t, `sed -i s/one/three/ "$1"; echo >> `+file)
	h.fails(t, "edit web", statusFailed, "web.toml has been changed since; the edited copy is ")
	h.want(t, "get web -o jsonpath={.metadata.labels.tier}", "two")
}

func TestEditErrors(t *testing.T) {
	h, file := newEdited(t)
	h.setEditor(t, "exit 3")
	h.fails(t, "edit", statusUsage, "edit requires a pod")
	h.fails(t, "edit pod", statusUsage, "edit requires a pod")
	h.fails(t, "edit web db", statusUsage, "at most one pod")
	h.fails(t, "edit db", statusNotFound, `no such pod "db"`)
	h.fails(t, "edit web --timeout 3s", statusUsage, "--timeout requires --wait")
	h.fails(t, "edit web", statusFailed, `podstead: edit pod "web": run editor "sh $DIR/editor": exit status 3`)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	h.fails(t, "edit web", statusFailed, "no such file")
}
