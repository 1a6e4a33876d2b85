package image_test

import (
	"io/fs"
	"testing"

	"github.com/containerd/containerd/v2/core/snapshots"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/test/ocitar"
)

const (
	elf64 = "\x7fELF\x02\x01\x01\x00 a program"
	elf32 = "\x7fELF\x01\x01\x01\x00 a library"
)

func file(path, data string) ocitar.Layer {
	return ocitar.Layer{{Path: path, Mode: 0o644, Data: []byte(data)}}
}

func TestOnly64(t *testing.T) {
	t.Parallel()
	link := ocitar.Layer{{Path: "link", Mode: fs.ModeSymlink | 0o777, Link: "/lib32"}}
	for name, test := range map[string]struct {
		layers []ocitar.Layer
		want   bool
	}{
		"64-bit programs": {[]ocitar.Layer{file("a", elf64), file("b", elf64)}, true},
		"no programs": {
			[]ocitar.Layer{file("a", "#!/bin/sh\n"), file("b", ""), file("c", "\x7fELF"), file("d", "abcd\x01"), link}, true,
		},
		"no layers":                   {nil, true},
		"32-bit program":              {[]ocitar.Layer{file("a", elf32)}, false},
		"in the lowest layer":         {[]ocitar.Layer{file("a", elf32), file("b", elf64), file("c", elf64)}, false},
		"only the header":             {[]ocitar.Layer{file("a", elf32[:5])}, false},
		"behind others in its layer":  {[]ocitar.Layer{append(append(file("a", elf64), link...), file("b", elf32)...)}, false},
		"hidden by a later layer":     {[]ocitar.Layer{file("a", elf32), file("a", elf64)}, false},
		"neither 32-bit nor 64-bit":   {[]ocitar.Layer{file("a", "\x7fELF\x07")}, false},
		"32-bit program, same layers": {[]ocitar.Layer{file("a", elf32), file("a", elf32)}, false},
	} {
		for _, gzip := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				ctx, w := newEnv(t, image.Options{})
				if _, err := w.load(ctx, save(t, ocitar.Image{Name: "shop:1", Gzip: gzip, Layers: test.layers})); err != nil {
					t.Fatal(err)
				}
				img, err := w.scope.Ensure(ctx, "shop:1", "", nil)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := w.store.Only64(ctx, img); got != test.want || err != nil {
					t.Errorf("only 64-bit: %v, %v, want %v", got, err, test.want)
				}
			})
		}
	}
}

// The layers of an image that was pulled are known, those of an older version are not.
func TestOnly64OfPulledImages(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	reg := newRegistry(t)
	reg.push(t, ocitar.Image{Name: "shop:1", Layers: []ocitar.Layer{file("a", elf64), file("b", elf64)}})
	reg.push(t, ocitar.Image{Name: "shop:2", Layers: []ocitar.Layer{file("a", elf64), file("b", elf64), file("c", elf32)}})
	known := map[string]image.Image{}
	for tag, want := range map[string]bool{"/shop:1": true, "/shop:2": false} {
		img, err := w.store.In().Ensure(ctx, reg.host+tag, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := w.store.Only64(ctx, img); got != want || err != nil {
			t.Errorf("%s: only 64-bit: %v, %v, want %v", tag, got, err, want)
		}
		known[tag] = img
	}
	sn := w.client.SnapshotService("native")
	info, err := sn.Stat(ctx, known["/shop:1"].Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sn.Update(ctx, snapshots.Info{Name: info.Parent}, "labels"); err != nil {
		t.Fatal(err)
	}
	if got, err := w.store.Only64(ctx, known["/shop:1"]); got || err != nil {
		t.Errorf("layer of an older version: only 64-bit: %v, %v, want false", got, err)
	}
	if _, err := w.store.Only64(ctx, image.Image{Snapshot: "sha256:missing"}); err == nil {
		t.Error("no error for a missing layer")
	}
}
