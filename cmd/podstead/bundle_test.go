package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/bundle"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/test/ocitar"
	"github.com/podstead/podstead/test/signing"
)

// writeBundle writes a bundle with these pod files and the image localhost/shop:1. It returns its path as a test host prints it.
func writeBundle(t *testing.T, h *testHost, platform string, pods map[string]string, signatures ...string) string {
	t.Helper()
	architecture := platform[strings.Index(platform, "/")+1:]
	w, err := bundle.NewWriter(t.TempDir(), "1", platform, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for name, text := range pods {
		w.AddPod(name, ".toml", []byte(text))
	}
	w.AddValue("configmap", "shop", "mode", []byte("one"))
	_, err = w.AddImages(func(w io.Writer) error {
		return ocitar.WriteOCI(w,
			ocitar.Image{Name: "localhost/shop:1", Architecture: architecture, Layers: []ocitar.Layer{{{Path: "a", Mode: 0o644}}}})
	}, signatures...)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if _, err := w.WriteTo(&buf); err != nil {
		t.Fatal(err)
	}
	h.write(t, "shop.bundle", buf.String())
	return "$DIR/shop.bundle"
}

const shopPod = "[[containers]]\nname = \"a\"\nimage = \"localhost/shop:1\"\n"

// TestBundleChangesNothing checks what is found before anything is changed, and that a failed import leaves no config map and no pod.
func TestBundleChangesNothing(t *testing.T) {
	host := image.HostPlatform()
	for name, test := range map[string]struct {
		platform string
		pod      string
		flags    string
		status   int
		want     string
	}{
		"another platform": {
			platform: "linux/s390x", status: statusFailed, want: "the bundle is for platform linux/s390x, this host is " + host,
		},
		"invalid pod":  {pod: "restartPolici = 1\n" + shopPod, status: statusUsage, want: "restartPolici"},
		"not admitted": {flags: "--policy restricted", status: statusUsage, want: "runAsNonRoot"},
		"another name": {
			pod: "name = \"other\"\n" + shopPod, status: statusUsage, want: `defines pod "other", the manifest has "web"`,
		},
		"archive of the host": {pod: "imageArchives = [\"/a.tar\"]\n" + shopPod, status: statusUsage, want: "imageArchives is not allowed"},
		"image is missing": {
			pod: strings.Replace(shopPod, "shop:1", "other:1", 1), status: statusUsage,
			want: `image "localhost/other:1" is not in the bundle`,
		},
		"import fails": {status: statusFailed, want: "import images: not an image archive"},
	} {
		t.Run(name, func(t *testing.T) {
			h, images := newImageHost(t)
			config := t.TempDir()
			t.Setenv("PODSTEAD_CONFIG_DIR", config)
			if test.platform == "" {
				test.platform = host
			}
			if test.pod == "" {
				test.pod = shopPod
			}
			path := writeBundle(t, h, test.platform, map[string]string{"web": test.pod, "db": shopPod})
			h.fails(t, fmt.Sprintf("bundle apply %s %s", path, test.flags), test.status, test.want)
			if files := h.files.Files(); len(files) > 0 {
				t.Errorf("files %v were applied", files)
			}
			if entries, err := os.ReadDir(config); err != nil || len(entries) > 0 {
				t.Errorf("configuration %v, %v", entries, err)
			}
			if list, err := images.List(t.Context()); err != nil || len(list) != 2 {
				t.Errorf("images %v, %v", list, err)
			}
		})
	}
}

func TestBundleArguments(t *testing.T) {
	h, _ := newImageHost(t)
	path := writeBundle(t, h, image.HostPlatform(), map[string]string{"web": shopPod})
	h.write(t, "web.toml", shopPod)
	h.write(t, "generated.yaml",
		"apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\nspec: {containers: [{name: a, image: 'localhost/shop:1'}]}\n")
	h.write(t, "relative.toml", shopPod+"[[volumes]]\nname = \"v\"\nhostPath.path = \"data\"\n")
	h.want(t, "bundle apply "+path+" --dry-run", "pod/web created (dry run)\n")
	got := h.run(t, "bundle inspect "+path)
	for _, want := range []string{
		"Platform: " + image.HostPlatform() + "\n", "pod/web\n", "image/localhost/shop:1 (sha256:", "configmap/shop (mode)\n",
	} {
		if got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("inspect: %+v, want %q", got, want)
		}
	}
	h.fails(t, "bundle make", statusUsage, `unknown command "make"`)
	h.fails(t, "bundle apply", statusUsage, "bundle apply requires one bundle or -, got 0 arguments")
	h.fails(t, "bundle apply "+path+" --timeout 1s", statusUsage, "--timeout requires --wait")
	h.fails(t, "bundle ls $DIR/none", statusUsage, "no such file or directory")
	h.fails(t, "bundle ls $DIR/web.toml", statusFailed, "not a bundle")
	h.fails(t, "bundle create $DIR/web.toml", statusUsage, "bundle create requires --output FILE")
	h.fails(t, "bundle create", statusUsage, "bundle create requires a pod file")
	h.fails(t, "bundle create $DIR/web.toml -o $DIR/a --pull Always", statusUsage, `--pull "Always": must be IfNotPresent or Never`)
	h.fails(t, "bundle create $DIR/web.toml -o $DIR/a --pull Never", statusFailed, `image "localhost/shop:1" is not present for platform`)
	h.fails(t, "bundle create $DIR/generated.yaml -o $DIR/a", statusUsage, "a bundle cannot carry generateName")
	h.write(t, "sealed.toml", shopPod+"[[secrets]]\nname = \"s\"\ncredentialFile = \"s.cred\"\n")
	h.write(t, "s.cred", "sealed")
	for _, file := range []string{"relative", "sealed"} {
		h.fails(t, "bundle create $DIR/"+file+".toml -o $DIR/a", statusUsage,
			"paths that are relative to the file (hostPath, envFile, credentialFile)")
	}
}

// TestBundleRefusesDataLink: what is written beside the link would not be read.
func TestBundleRefusesDataLink(t *testing.T) {
	h, _ := newImageHost(t)
	t.Setenv("PODSTEAD_CONFIG_DIR", h.dir)
	h.write(t, "configmaps/shop/..1/mode", "zero")
	if err := os.Symlink("..1", filepath.Join(h.dir, "configmaps/shop/..data")); err != nil {
		t.Fatal(err)
	}
	path := writeBundle(t, h, image.HostPlatform(), map[string]string{"web": shopPod})
	for _, flags := range []string{"", " --dry-run"} {
		h.fails(t, "bundle apply "+path+flags, statusFailed, `configmap "shop": $DIR/configmaps/shop/..data exists`)
	}
}

// TestBundleSignatures checks that a bundle is refused before anything is changed if images.verify requires signatures that it has not.
func TestBundleSignatures(t *testing.T) {
	h, images := newImageHost(t)
	path := writeBundle(t, h, image.HostPlatform(), map[string]string{"web": shopPod})
	key := h.write(t, "shop.pub", string(signing.NewKey("ecdsa").Public))
	verify := func(rule string) {
		h.write(t, "podstead.toml", "[[images.verify]]\nprefix = \"localhost/shop\"\n"+rule)
	}
	verify("type = \"reject\"\n")
	h.fails(t, "bundle apply "+path+" --dry-run", statusFailed,
		`image "localhost/shop:1": images.verify prefix "localhost/shop" rejects the image`)
	verify(fmt.Sprintf("keys = [%q]\n", key))
	const unsigned = `images.verify prefix "localhost/shop" requires a signature by $DIR/shop.pub: the bundle has no signature of it`
	for _, flags := range []string{"", " --dry-run"} {
		h.fails(t, "bundle apply "+path+flags, statusFailed, unsigned)
	}

	signed := writeBundle(t, h, image.HostPlatform(), map[string]string{"web": shopPod}, "a signature")
	h.want(t, "bundle apply "+signed+" --dry-run", "pod/web created (dry run)\n")

	path = writeBundle(t, h, image.HostPlatform(), map[string]string{"web": shopPod})
	f, err := os.Open(filepath.Join(h.dir, "shop.bundle"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := bundle.Read(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	shop := b.Images[0]
	images.Add(api.Image{Name: shop.Name, Digest: shop.Digest, Verification: api.ImageUnverified})
	h.fails(t, "bundle apply "+path+" --dry-run", statusFailed, unsigned)
	images.Add(api.Image{Name: shop.Name, Digest: shop.Digest, Verification: api.ImageVerified})
	h.want(t, "bundle apply "+path+" --dry-run", "pod/web created (dry run)\n")
}
