package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/fakeimages"
)

// newImageHost returns a host with two images.
func newImageHost(t *testing.T) (*testHost, *fakeimages.Images) {
	t.Helper()
	h := newTestHost(t, api.Version{})
	t.Setenv("PODSTEAD_STATE_DIR", h.dir)
	images := &fakeimages.Images{}
	created := time.Now().Add(-2 * time.Hour)
	images.Add(api.Image{
		Name: "docker.io/library/nginx:1", Digest: "sha256:0123456789abcdef0123", ID: "sha256:abc", Platform: "linux/amd64", Size: 70 << 20,
		CreatedAt: created, Pods: []string{"shop", "web"}, Generations: []string{"old", "web"}, Requested: api.ImagePulled,
	})
	images.Add(api.Image{Name: "localhost/spare:1", Digest: "sha256:fedcba9876543210", Size: 3 << 20, CreatedAt: created, Damaged: true})
	h.closeServer()
	h.options.Images = images
	h.serve(t)
	return h, images
}

func TestImageList(t *testing.T) {
	h, _ := newImageHost(t)
	const header = "NAME                        DIGEST         PLATFORM      SIZE        AGE    USED BY    KEPT\n"
	const rows = "docker.io/library/nginx:1   0123456789ab   linux/amd64   70Mi        120m   shop,web   in use, for rollback of old, " +
		"pulled by hand\n" +
		"localhost/spare:1           fedcba987654   <unknown>     <unknown>   120m   <none>     <none>\n"
	h.want(t, "image ls", header+rows)
	h.want(t, "image list --no-headers", rows)
	h.want(t, "images", header+rows)
	h.want(t, "image ls -q", "docker.io/library/nginx:1\nlocalhost/spare:1\n")
	h.want(t, "images -o name", "docker.io/library/nginx:1\nlocalhost/spare:1\n")
	for line, want := range map[string]string{
		"image ls -o json": `"requested": "pulled"`, "image ls -o yaml": "requested: pulled",
		"image ls -o wide": "sha256:0123456789abcdef0123   sha256:abc",
	} {
		if got := h.run(t, line); got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("%s: %+v, want %q", line, got, want)
		}
	}
	h.fails(t, "image ls -o xml", statusUsage, "is not supported")
	h.fails(t, "image ls nginx", statusUsage, "accepts no arguments")
	h.fails(t, "image make", statusUsage, `unknown command "make"`)
}

func TestImageRemoveAndPrune(t *testing.T) {
	h, images := newImageHost(t)
	h.fails(t, "image rm docker.io/library/nginx:1", statusFailed, `in use by pod "shop"`)
	h.fails(t, "image rm", statusUsage, "image rm requires an image")
	got := h.fails(t, "image rm none localhost/spare:1", statusNotFound, `no such image "none"`)
	if want := "image/localhost/spare:1 removed\n3Mi freed\n"; got.stdout != want {
		t.Errorf("stdout %q, want %q", got.stdout, want)
	}
	h.want(t, "image rm -f docker.io/library/nginx:1", "image/docker.io/library/nginx:1 removed\n70Mi freed\n")
	h.want(t, "image prune", "")
	images.Add(api.Image{Name: "a:1", Size: 10})
	images.Add(api.Image{Name: "b:1", Platform: "linux/arm64", Foreign: true, Requested: api.ImagePulled})
	h.want(t, "image prune --dry-run", "image/a:1 removed (dry run)\n")
	h.want(t, "image prune", "image/a:1 removed\n10B freed\n")
	images.Add(api.Image{Name: "c:1", Size: 10})
	images.OnPrune = func(context.Context) error { return errors.New("the disk fails") }
	if got := h.fails(t, "image prune", statusFailed, "the disk fails"); got.stdout != "image/c:1 removed\n10B freed\n" {
		t.Errorf("stdout %q", got.stdout)
	}
	images.OnPrune = nil
	h.want(t, "image prune -a", "image/b:1 (linux/arm64) removed\n0B freed\n")
	if got := h.want(t, "image ls", ""); got.stderr != "podstead: no images\n" {
		t.Errorf("stderr %q", got.stderr)
	}
}

func TestImageInspect(t *testing.T) {
	h, _ := newImageHost(t)
	got := h.fails(t, "image inspect docker.io/library/nginx:1 none", statusNotFound, `no such image "none"`)
	if !strings.HasPrefix(got.stdout, "[\n") || !strings.Contains(got.stdout, `"size": 1048576`) {
		t.Errorf("stdout %s", got.stdout)
	}
	if got := h.fails(t, "image inspect none", statusNotFound, `no such image "none"`); got.stdout != "" {
		t.Errorf("stdout %s", got.stdout)
	}
	h.want(t, "image history docker.io/library/nginx:1",
		"CREATED BY     AGE         SIZE   COMMENT\nCMD sh         <unknown>   0B     buildkit\nADD rootfs /   <unknown>   1Mi    \n")
	h.fails(t, "image history a b", statusUsage, "requires one image, got 2")
}

func TestImagePull(t *testing.T) {
	h, images := newImageHost(t)
	images.OnPull = func(_ context.Context, _ api.PullRequest, progress func(api.PullProgress)) error {
		for _, p := range []api.PullProgress{
			{},
			{Total: 4 << 20, TotalLayers: 2},
			{Done: 1 << 20, Total: 4 << 20, TotalLayers: 2},
			{Done: 2 << 20, Total: 4 << 20, Layers: 1, TotalLayers: 2},
			{Total: 3 << 20, Layers: 2, TotalLayers: 2, Unpacking: true},
			{Done: 1 << 20, Total: 3 << 20, Layers: 2, TotalLayers: 2, Unpacking: true},
		} {
			progress(p)
		}
		return nil
	}
	got := h.want(t, "image pull host:1/a:1", "image/host:1/a:1 pulled (sha256:0123456789abcdef)\n")
	want := "podstead: Pulling image \"host:1/a:1\": 0 of 2 layers, 0B of 4Mi\npodstead: Pulling image \"host:1/a:1\": 1 of 2 layers, " +
		"2Mi of 4Mi\npodstead: Unpacking image \"host:1/a:1\": 2 layers, 3Mi\n"
	if got.stderr != want {
		t.Errorf("stderr %q, want %q", got.stderr, want)
	}
	h.want(t, "pull host:1/a:1 --policy IfNotPresent", "image/host:1/a:1 present (sha256:0123456789abcdef)\n")
	h.want(t, "pull host:1/a:1 --platform linux/arm64", "image/host:1/a:1 pulled for linux/arm64 (sha256:0123456789abcdef)\n")
	h.fails(t, "image pull", statusUsage, "requires one image, got 0")
	h.fails(t, "pull a --policy Never", statusUsage, "must be Always or IfNotPresent")
	for status, code := range map[int]int{
		http.StatusBadRequest: statusUsage, http.StatusNotFound: statusNotFound, http.StatusBadGateway: statusFailed,
		http.StatusServiceUnavailable: statusUnavailable,
	} {
		images.OnPull = func(context.Context, api.PullRequest, func(api.PullProgress)) error {
			return &api.Error{Status: status, Message: "it failed", Hint: "do something"}
		}
		h.fails(t, "pull host:1/a:1", code, "podstead: it failed\nhint: do something\n")
	}
}

func TestImageImportAndExport(t *testing.T) {
	h, images := newImageHost(t)
	h.write(t, "a.tar", "a:1")
	h.write(t, "long.tar", strings.Repeat("x", 1000))
	const imported = " imported (sha256:0123456789abcdef)\n"
	h.want(t, "image import $DIR/a.tar", "image/a:1"+imported)
	h.want(t, "load -i $DIR/a.tar", "image/a:1"+imported)
	h.stdin = "b:1"
	h.want(t, "image import -", "image/b:1"+imported)
	h.want(t, "load", "image/b:1"+imported)
	h.fails(t, "image import $DIR/long.tar", statusFailed, `podstead: import images from "$DIR/long.tar": not an image archive`)
	h.fails(t, "image import $DIR/none.tar", statusUsage, `import images from "$DIR/none.tar": no such file or directory`)
	h.fails(t, "image import", statusUsage, "requires one file, directory or -")

	h.want(t, "image export a:1 b:1 -o -", "a:1b:1")
	h.want(t, "image export a:1 -o $DIR/out.tar", "")
	h.want(t, "image import $DIR/out.tar", "image/a:1"+imported)
	h.fails(t, "image export a:1", statusUsage, "requires --output FILE")
	h.fails(t, "image export", statusUsage, "image export requires an image")
	h.fails(t, "image export none -o $DIR/none.tar", statusNotFound, `no such image "none"`)
	images.SetOnExport(func() error { return &api.Error{Status: http.StatusInternalServerError, Message: "content is missing"} })
	h.fails(t, "image export a:1 -o $DIR/out.tar", statusUnavailable, "unavailable")
	images.SetOnExport(nil)
	h.want(t, "image import $DIR/out.tar", "image/a:1"+imported) // the file of before
	h.fails(t, "image import $DIR/none.tar", statusUsage, "no such file")
}

func TestImageCompletion(t *testing.T) {
	h, _ := newImageHost(t)
	const names, files = ":4\n", ":8\n"
	for line, want := range map[string]string{
		"__complete debug web --image l":                        "localhost/spare:1\n" + names,
		"__complete image rm d":                                 "docker.io/library/nginx:1\n" + names,
		"__complete image rm localhost/spare:1 l":               names,
		"__complete image inspect l":                            "localhost/spare:1\n" + names,
		"__complete image history l":                            "localhost/spare:1\n" + names,
		"__complete image export l":                             "localhost/spare:1\n" + names,
		"__complete pull l":                                     "localhost/spare:1\n" + names,
		"__complete pull docker.io/library/nginx:1 --policy If": "IfNotPresent\n" + names,
		"__complete image pull docker.io/x --platform linux/r":  "linux/riscv64\n" + names,
		"__complete image import a":                             "tar\ngz\ntgz\nzst\noci\n" + files,
		"__complete image ls -o j":                              "json\n" + names,
	} {
		t.Run(line, func(t *testing.T) { h.want(t, line, want) })
	}
}
