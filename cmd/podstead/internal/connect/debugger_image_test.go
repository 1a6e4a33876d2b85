package connect

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/api"
)

// imageLists are the results of requests for images, one after the other.
type imageLists struct{ lists [][]api.Image }

func (l *imageLists) Images(context.Context) (api.ImageList, error) {
	items := l.lists[0]
	if len(l.lists) > 1 {
		l.lists = l.lists[1:]
	}
	return api.ImageList{Items: items}, nil
}

func TestFindDebuggerImage(t *testing.T) {
	const local, other = "localhost/podstead/busybox:1", "docker.io/library/busybox:1.36"
	held := api.Image{Name: local, File: "/var/lib/podstead/images/busybox.tar"}
	for name, test := range map[string]struct {
		images []api.Image
		want   string
	}{
		"no image":           {nil, DebuggerImage},
		"other images":       {[]api.Image{{Name: "localhost/shop:1"}, {Name: "localhost/busybox-extras:1"}}, DebuggerImage},
		"present":            {[]api.Image{{Name: other}}, other},
		"default present":    {[]api.Image{{Name: other}, {Name: DebuggerImage}}, DebuggerImage},
		"in an archive":      {[]api.Image{{Name: DebuggerImage}, {Name: other}, held}, local},
		"for another host":   {[]api.Image{{Name: other, Foreign: true}}, DebuggerImage},
		"archive of a pod":   {[]api.Image{{Name: other, Archive: true}}, DebuggerImage},
		"content is missing": {[]api.Image{{Name: other, Damaged: true}}, DebuggerImage},
		"by digest":          {[]api.Image{{Name: "docker.io/library/busybox@sha256:1"}}, "docker.io/library/busybox@sha256:1"},
	} {
		got, err := FindDebuggerImage(t.Context(), &imageLists{[][]api.Image{test.images}}, t.TempDir())
		if err != nil || got != test.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
	}
}

func TestFindImageWaitsForArchive(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "busybox.tar"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	held := api.Image{Name: "localhost/busybox:1", File: filepath.Join(dir, "busybox.tar")}
	got, err := FindDebuggerImage(t.Context(), &imageLists{[][]api.Image{nil, {{Name: DebuggerImage}}, {held}}}, dir)
	if err != nil || got != held.Name {
		t.Errorf("%q, %v; want %q", got, err, held.Name)
	}
}
