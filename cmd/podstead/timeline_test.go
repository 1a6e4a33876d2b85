package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
)

// TestPictureOfDocs compares the picture in the documentation with that of the files of the page.
func TestPictureOfDocs(t *testing.T) {
	const page, picture = "../../docs/howto/test-your-pod-files.md", "../../docs/howto/night.svg"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	h := newTestHost(t, api.Version{})
	paths := map[string]string{}
	for _, match := range regexp.MustCompile("(?s)```toml\n# (\\S+)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		paths[match[1]] = h.write(t, match[1], match[2])
	}
	got := h.run(t, "simulate "+paths["fixed.toml"]+" --scenario "+paths["night.toml"]+" -o svg")
	if got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if *update {
		if err := os.WriteFile(picture, []byte(got.stdout), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.stdout); diff != "" {
		t.Errorf("%s: run go test ./cmd/podstead -run TestPictureOfDocs -update, and look at it (-want +got):\n%s", picture, diff)
	}
}

// TestSimulateFrom checks the exit codes of simulate --from.
func TestSimulateFrom(t *testing.T) {
	h := newTestHost(t, api.Version{})
	file := h.write(t, "web.toml", "name = \"web\"\n[[containers]]\nname = \"app\"\nimage = \"localhost/app:1\"\n")
	h.fails(t, "simulate "+file+" --from none", statusNotFound, `no such pod "none"`)
	h.closeServer()
	t.Setenv("PODSTEAD_SOCKET", h.write(t, "no-socket", "")+"/s")
	h.fails(t, "simulate "+file+" --from none", statusUnavailable, "")
	if got := h.run(t, "simulate "+file); got.code != 0 {
		t.Errorf("without a daemon: %+v", got)
	}
}
