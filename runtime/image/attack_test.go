package image_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/test/ocitar"
)

// maxAllocated bounds what one attack may allocate in all, not at a time.
const maxAllocated = 240 << 20 // the race detector adds a fifth

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// wantNothing checks that nothing is left of an image that was refused.
func (w *env) wantNothing(ctx context.Context, t *testing.T) {
	t.Helper()
	w.collect(ctx, t)
	statuses, err := w.client.ContentStore().ListStatuses(ctx)
	if err != nil {
		t.Fatal(err)
	}
	list, err := w.list(ctx)
	b, s, l := w.blobs(ctx, t), w.snapshots(ctx, t), w.leases(ctx, t)
	if err != nil || len(list) > 0 || b > 0 || s > 0 || l > 0 || len(statuses) > 0 {
		t.Errorf("remaining: images %v, %d blobs, %d snapshots, %d leases, unfinished %v, %v", names(list), b, s, l, statuses, err)
	}
	err = filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.HasSuffix(path, ".db") {
			t.Errorf("file remains: %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAttacks imports and pulls images that must be refused. Nothing of them remains, and they cost little memory.
func TestAttacks(t *testing.T) {
	for _, a := range ocitar.Attacks() {
		tree := a.Make()
		refuse := func(t *testing.T, kind, want string, ensure func(context.Context, *env) error) {
			t.Run(a.Name+" "+kind, func(t *testing.T) {
				ctx, w := newEnv(t, image.Options{MaxUnpackedSize: ocitar.AttackLimit})
				var err error
				cost := allocated(func() { err = ensure(ctx, w) })
				wantError(t, err, image.ReasonPull)
				if !regexp.MustCompile(want).MatchString(err.Error()) {
					t.Errorf("error %v, want %q", err, want)
				}
				if cost > maxAllocated {
					t.Errorf("%d MiB were allocated", cost>>20)
				}
				w.wantNothing(ctx, t)
			})
		}
		refuse(t, "from an archive", a.Archive, func(ctx context.Context, w *env) error {
			var buf bytes.Buffer
			z := gzip.NewWriter(&buf) // a large file that costs nothing to send
			if err := errors.Join(tree.Write(z, "shop:1"), z.Close()); err != nil {
				t.Fatal(err)
			}
			_, err := w.load(ctx, write(t, buf.Bytes()))
			if err == nil {
				_, err = w.scope.Ensure(ctx, "shop:1", "", nil)
			}
			return err
		})
		if a.Registry == "" {
			continue
		}
		refuse(t, "from a registry", a.Registry, func(ctx context.Context, w *env) error {
			reg := newRegistry(t)
			for d, data := range tree.Blobs {
				reg.blobs[d.String()] = data
			}
			reg.tags["shop:1"] = tree.Root
			_, err := w.store.In().Ensure(ctx, reg.host+"/shop:1", "", nil)
			return err
		})
	}
}

// TestArchiveAttacks imports files that are no images at all.
func TestArchiveAttacks(t *testing.T) {
	zipped := func(files map[string][]byte) []byte {
		var buf bytes.Buffer
		z := gzip.NewWriter(&buf)
		if err := errors.Join(ocitar.WriteFiles(z, files), z.Close()); err != nil {
			t.Fatal(err)
		}
		return buf.Bytes()
	}
	version := []byte(`{"imageLayoutVersion":"1.0.0"}`)
	many := func() []byte {
		var buf bytes.Buffer
		z := gzip.NewWriter(&buf)
		tw := tar.NewWriter(z)
		for i := range 20_001 {
			if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: fmt.Sprintf("d%d/", i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(tw.Close(), z.Close()); err != nil {
			t.Fatal(err)
		}
		return buf.Bytes()
	}
	layers := []byte(`[{"Config":"c","RepoTags":["shop:1"],"Layers":[` + strings.Repeat(`"l",`, 200) + `"l"]}]`)
	tags := []byte(`[{"Config":"c","RepoTags":["shop:0"` + strings.Repeat(`,"shop:1"`, 300) + `],"Layers":[]}]`)
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"compressed zeros", zipped(map[string][]byte{"zeros": make([]byte, 100<<20)}), "unpacks to more than 67108864 bytes"},
		{"sparse file", append(ocitar.SparseHeader("blobs/sha256/x", 4<<40), make([]byte, 1024)...), "sparse file"},
		{"size of an exabyte", hugeHeader(t), "truncated"},
		{
			"large index.json", zipped(map[string][]byte{"oci-layout": version, "index.json": make([]byte, 9<<20)}),
			"more than 8388608 bytes",
		},
		{"large oci-layout", zipped(map[string][]byte{"oci-layout": make([]byte, 9<<20)}), "more than 8388608 bytes"},
		{"large manifest.json", zipped(map[string][]byte{"manifest.json": make([]byte, 9<<20)}), "more than 8388608 bytes"},
		{
			"values in manifest.json", zipped(map[string][]byte{"manifest.json": []byte("[{}" + strings.Repeat(",{}", 2<<20) + "]")}),
			"more than 131072 values",
		},
		{"files", many(), "more than 20000 files"},
		{"layers in manifest.json", zipped(map[string][]byte{"manifest.json": layers}), "201 layers, the limit is 128"},
		{"names", zipped(map[string][]byte{"manifest.json": tags, "c": []byte("{}")}), "301 image names, the limit is 256"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, w := newEnv(t, image.Options{MaxUnpackedSize: ocitar.AttackLimit})
			file := write(t, test.data)
			var err error
			cost := allocated(func() { _, err = w.store.ImportFile(ctx, file, nil) })
			wantError(t, err, image.ReasonPull, test.want)
			if cost > maxAllocated {
				t.Errorf("%d MiB were allocated", cost>>20)
			}
			w.wantNothing(ctx, t)
		})
	}
}

// hugeHeader returns an archive whose only file claims a size that it does not have.
func hugeHeader(t *testing.T) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := tar.NewWriter(&buf).WriteHeader(&tar.Header{Name: "blobs/sha256/x", Size: 1 << 60, Format: tar.FormatGNU}); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// TestNamesOfArchives checks that an archive does not change what names mean for pods that do not list it.
func TestNamesOfArchives(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	reg := newRegistry(t)
	reg.push(t, sample("nginx:1", "genuine"))
	ref := reg.host + "/nginx:1"
	if _, err := w.store.In().Ensure(ctx, ref, "", nil); err != nil {
		t.Fatal(err)
	}
	forged, other := save(t, sample(ref, "forged"), sample("till:1", "till")), save(t, sample(ref, "other"))
	for _, archive := range []string{forged, other} {
		if _, err := w.store.ImportFile(ctx, archive, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		scope image.Scope
		want  string
	}{
		{w.store.In(), "genuine"},
		{w.store.In(forged), "forged"},
		{w.store.In(other), "other"},
		{w.store.In(forged, other), "other"},
		{w.store.In(other, forged), "forged"},
	} {
		img, err := test.scope.Ensure(ctx, ref, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.read(ctx, t, img, "version"); got != test.want || img.Name != ref {
			t.Errorf("%s has version %q, want %q", img.Name, got, test.want)
		}
	}
	if here, err := w.store.In(other).Find(ctx, "till:1", ""); here || err != nil {
		t.Errorf("name of another archive: %v, %v", here, err)
	}
	if err := os.Rename(save(t, sample(ref, "next")), forged); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.ImportFile(ctx, forged, nil); err != nil {
		t.Fatal(err)
	}
	if here, err := w.store.In(forged).Find(ctx, "till:1", ""); here || err != nil {
		t.Errorf("name that the archive had before: %v, %v", here, err)
	}
}

// TestEndlessAnswers checks that documents of a registry without a descriptor are bounded.
func TestEndlessAnswers(t *testing.T) {
	endless := func(w http.ResponseWriter, _ *http.Request) bool {
		for block := bytes.Repeat([]byte(" "), 1<<20); ; {
			if _, err := w.Write(block); err != nil {
				return true
			}
		}
	}
	for name, hook := range map[string]func(*registry) func(http.ResponseWriter, *http.Request) bool{
		"manifest": func(*registry) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
				if r.Method == http.MethodHead { // no digest
					return true
				}
				return endless(w, r)
			}
		},
		"token": func(reg *registry) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasPrefix(r.URL.Path, "/token") {
					return endless(w, r)
				}
				w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q,service=\"s\"", "http://"+reg.host+"/token"))
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, w := newEnv(t, image.Options{})
			reg := newRegistry(t)
			reg.intercept(hook(reg))
			var err error
			cost := allocated(func() { _, err = w.store.In().Ensure(ctx, reg.host+"/shop:1", "", nil) })
			wantError(t, err, image.ReasonPull, "more than 8388608 bytes")
			if cost > maxAllocated {
				t.Errorf("%d MiB were allocated", cost>>20)
			}
			w.wantNothing(ctx, t)
		})
	}
}
