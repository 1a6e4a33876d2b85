package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/test/ocitar"
)

const podText = "[[containers]]\nname = \"a\"\nimage = \"localhost/shop:1\"\n"

// archive returns an image archive.
func archive(t testing.TB, names ...string) []byte {
	t.Helper()
	var images []ocitar.Image
	for _, name := range names {
		images = append(images,
			ocitar.Image{Name: name, Gzip: true, Layers: []ocitar.Layer{{{Path: "a", Mode: 0o644, Data: bytes.Repeat([]byte("a"), 5000)}}}})
	}
	var buf bytes.Buffer
	if err := ocitar.WriteOCI(&buf, images...); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// sample returns a bundle.
func sample(t testing.TB) []byte {
	t.Helper()
	w, err := NewWriter(t.TempDir(), "1.2.3", image.HostPlatform(), time.Unix(1_000_000_000, 5))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.AddPod("web", ".toml", []byte(podText))
	w.AddValue("configmap", "shop", "mode", []byte("one"))
	w.AddValue("secret", "shop", ".key", []byte("two"))
	data := archive(t, "localhost/shop:1")
	found, err := w.AddImages(func(w io.Writer) error { _, err := w.Write(data); return err }, "a signature")
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	var buf bytes.Buffer
	if n, err := w.WriteTo(&buf); err != nil || n != int64(buf.Len()) {
		t.Fatal(n, err)
	}
	return buf.Bytes()
}

func TestReadWhatWasWritten(t *testing.T) {
	data := sample(t)
	b, err := Read(t.Context(), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if b.Version != 1 || b.Podstead != "1.2.3" || b.Platform != image.HostPlatform() || b.Created != time.Unix(1_000_000_000, 0).UTC() {
		t.Errorf("manifest %+v", b.Manifest)
	}
	if b.UnpackedSize < 5000 || b.ImageSize() <= 0 || b.ImageSize() >= int64(len(data)) {
		t.Errorf("sizes %d and %d", b.UnpackedSize, b.ImageSize())
	}
	if got := string(b.Text["pods/web.toml"]); got != podText {
		t.Errorf("pod file %q", got)
	}
	objects := b.Objects()
	if len(objects) != 2 || objects[0].Kind != "configmap" || string(b.Value(objects[0], "mode")) != "one" ||
		string(b.Value(objects[1], ".key")) != "two" {
		t.Errorf("objects %+v", objects)
	}
	if m := b.Manifest; len(m.Images) != 1 || m.Images[0].Name != "localhost/shop:1" {
		t.Errorf("manifest %+v", m)
	}
	if got := b.Signatures["images/0.tar"]; len(got) != 1 || got[0] != "a signature" || b.Signed["images/0.tar"] {
		t.Errorf("signatures %v, in the index %v", b.Signatures, b.Signed)
	}
	var size int64
	err = Archives(bytes.NewReader(data), &b.Manifest, func(f File, r io.Reader) error {
		read, err := io.Copy(io.Discard, r)
		size = read
		if read != f.Size {
			t.Errorf("archive of %d bytes, want %d", read, f.Size)
		}
		return err
	})
	if err != nil || size != b.ImageSize() {
		t.Errorf("archives: %d bytes, %v", size, err)
	}
}

// entry is a file of a bundle that a test changes.
type entry struct {
	tar.Header
	data []byte
}

func entries(t testing.TB, data []byte) (m Manifest, list []entry) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, entry{*h, text})
	}
	if err := json.Unmarshal(list[0].data, &m); err != nil {
		t.Fatal(err)
	}
	return m, list[1:]
}

// pack writes a bundle, whatever is wrong with it.
func pack(t testing.TB, manifest any, list []entry) []byte {
	t.Helper()
	text, ok := manifest.([]byte)
	if !ok {
		var err error
		if text, err = json.Marshal(manifest); err != nil {
			t.Fatal(err)
		}
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range append([]entry{{tar.Header{Name: ManifestName, Typeflag: tar.TypeReg, Mode: 0o600}, text}}, list...) {
		if e.Typeflag == tar.TypeReg {
			e.Size = int64(len(e.data))
		}
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if e.Typeflag == tar.TypeReg {
			if _, err := w.Write(e.data); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func fileOf(path string, data []byte) File {
	return File{path, int64(len(data)), fmt.Sprintf("%x", sha256.Sum256(data))}
}

// TestHostileBundles changes a valid bundle. The files are pod, config map, secret and images, in this order.
func TestHostileBundles(t *testing.T) {
	for name, test := range map[string]struct {
		change func(m *Manifest, list []entry) (any, []entry)
		want   string
	}{
		"no manifest":   {func(m *Manifest, l []entry) (any, []entry) { return []byte("{"), l }, "manifest: unexpected EOF"},
		"newer version": {func(m *Manifest, l []entry) (any, []entry) { m.Version = 2; return m, l }, "version 2 is not supported"},
		"large manifest": {
			func(m *Manifest, l []entry) (any, []entry) { return bytes.Repeat([]byte(" "), maxManifest+1), l }, "manifest: larger than",
		},
		"no pods": {
			func(m *Manifest, l []entry) (any, []entry) { m.Pods, m.Files = nil, m.Files[1:]; return m, l[1:] }, "the bundle has no pods",
		},
		"missing part": {func(m *Manifest, l []entry) (any, []entry) { return m, l[:3] }, `file "images/0.tar" is missing`},
		"missing in the middle": {
			func(m *Manifest, l []entry) (any, []entry) { return m, append(l[:1:1], l[2:]...) },
			`found file "secrets/shop/.key", the manifest has "configmaps/shop/mode"`,
		},
		"another part": {
			func(m *Manifest, l []entry) (any, []entry) { return m, append(l, l[0]) }, `file "pods/web.toml" is not in the manifest`,
		},
		"wrong order": {func(m *Manifest, l []entry) (any, []entry) { l[0], l[1] = l[1], l[0]; return m, l }, "found file"},
		"duplicate file": {func(m *Manifest, l []entry) (any, []entry) {
			m.Files = append(m.Files, m.Files[0])
			return m, append(l, l[0])
		}, "is listed twice"},
		"duplicate pod": {
			func(m *Manifest, l []entry) (any, []entry) { m.Pods = append(m.Pods, m.Pods[0]); return m, l }, `pod "web" is listed twice`,
		},
		"duplicate image": {
			func(m *Manifest, l []entry) (any, []entry) { m.Images = append(m.Images, m.Images[0]); return m, l },
			`image "localhost/shop:1" is listed twice`,
		},
		"changed text": {
			func(m *Manifest, l []entry) (any, []entry) { l[0].data = []byte(strings.ToUpper(podText)); return m, l },
			`file "pods/web.toml": sha256 differs`,
		},
		"changed image": {
			func(m *Manifest, l []entry) (any, []entry) { l[3].data[len(l[3].data)-1]++; return m, l },
			`file "images/0.tar": sha256 differs`,
		},
		"changed size":  {func(m *Manifest, l []entry) (any, []entry) { m.Files[0].Size++; return m, l }, "the manifest has"},
		"negative size": {func(m *Manifest, l []entry) (any, []entry) { m.Files[0].Size = -1; return m, l }, "has -1 bytes"},
		"huge pod file": {
			func(m *Manifest, l []entry) (any, []entry) { m.Files[0].Size = 1 << 40; return m, l }, "the limit is 1048576",
		},
		"huge images": {
			func(m *Manifest, l []entry) (any, []entry) { m.Files[3].Size = 1<<63 - 1; return m, l }, "the limit is",
		},
		"negative unpacked size": {
			func(m *Manifest, l []entry) (any, []entry) { m.UnpackedSize = -1; return m, l }, "unpackedSize is negative",
		},
		"invalid digest": {
			func(m *Manifest, l []entry) (any, []entry) { m.Files[0].SHA256 = "abc"; return m, l }, "invalid sha256",
		},
		"many files": {
			func(m *Manifest, l []entry) (any, []entry) { m.Files = make([]File, maxFiles+1); return m, l }, "more than 10000 files",
		},
		"pod without a file": {
			func(m *Manifest, l []entry) (any, []entry) { m.Pods[0].File = "pods/none.toml"; return m, l }, "is missing",
		},
		"pod in another directory": {
			func(m *Manifest, l []entry) (any, []entry) { m.Pods[0].File = "secrets/shop/.key"; return m, l }, "is missing",
		},
		"file without a pod": {func(m *Manifest, l []entry) (any, []entry) {
			m.Files = append(m.Files, fileOf("pods/other.toml", nil))
			return m, append(l, entry{tar.Header{Name: "pods/other.toml", Typeflag: tar.TypeReg}, nil})
		}, "nothing refers to file"},
		"signatures of no archive": {func(m *Manifest, l []entry) (any, []entry) {
			m.Signatures = map[string][]string{"pods/web.toml": {"a"}}
			return m, l
		}, `archive "pods/web.toml" of signatures is missing`},
		"image that is not there": {
			func(m *Manifest, l []entry) (any, []entry) { m.Images[0].Name = "localhost/other:1"; return m, l },
			`image "localhost/other:1" is missing`,
		},
		"image with another digest": {func(m *Manifest, l []entry) (any, []entry) { m.Images[0].Digest = ""; return m, l }, "is missing"},
		"image that is not listed": {func(m *Manifest, l []entry) (any, []entry) {
			l[3].data = archive(t, "localhost/shop:1", "docker.io/library/busybox:1")
			m.Files[3] = fileOf("images/0.tar", l[3].data)
			return m, l
		}, `image "docker.io/library/busybox:1" is not in the manifest`},
		"images for another platform": {
			func(m *Manifest, l []entry) (any, []entry) { m.Platform = "linux/s390x"; return m, l }, "is not for platform linux/s390x",
		},
		"platform that is none": {
			func(m *Manifest, l []entry) (any, []entry) { m.Platform = "a/b/c/d"; return m, l }, "is not for platform",
		},
		"images that are none": {func(m *Manifest, l []entry) (any, []entry) {
			l[3].data = []byte("nonsense")
			m.Files[3] = fileOf("images/0.tar", l[3].data)
			return m, l
		}, "not an image archive"},
		"symbolic link": {func(m *Manifest, l []entry) (any, []entry) {
			l[0].Typeflag, l[0].Linkname, l[0].Size = tar.TypeSymlink, "/etc/shadow", 0
			return m, l
		}, "is not a regular file"},
		"hard link": {func(m *Manifest, l []entry) (any, []entry) {
			l[1].Typeflag, l[1].Linkname, l[1].Size = tar.TypeLink, "pods/web.toml", 0
			return m, l
		}, "is not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			m, list := entries(t, sample(t))
			manifest, changed := test.change(&m, list)
			_, err := Read(t.Context(), bytes.NewReader(pack(t, manifest, changed)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// TestPaths checks which files a bundle can have.
func TestPaths(t *testing.T) {
	longest := strings.Repeat("a", maxName)
	for _, path := range []string{
		"pods/a.toml", "pods/a.b-c.yaml", "configmaps/a/b", "secrets/a/.dockerconfigjson", "images/12.tar",
		"pods/" + longest + ".toml", "pods/" + longest + ".json", "configmaps/" + longest + "/" + longest,
	} {
		if _, err := limit(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{
		"", "/etc/passwd", "../a", "pods/../a.toml", "pods/a/b.toml", "pods/.a.toml", "pods/a.sh", "pods/", "configmaps/a",
		"configmaps/../b", "configmaps/../../etc/b",
		"configmaps/a/..", "configmaps/a/.", "configmaps/a/../b", "configmaps/a/b/c", "configmaps/a..b/c", "secrets//b", "secrets/a/",
		"secrets/a/..data", "secrets/A/b",
		"secrets/a/b\n", "secrets/a\x00/b", "images/a.tar", "images/0.tar.gz", "images/../0.tar", "other/a", "podstead-bundle.json",
		"./pods/a.toml", "pods//a.toml",
		"pods/a" + longest + ".toml", "pods/a" + longest + ".yml", "pods/" + longest + ".b.json", "secrets/a" + longest + "/b",
		"secrets/b/a" + longest,
	} {
		if _, err := limit(path); err == nil {
			t.Errorf("%q is allowed", path)
		}
	}
}

// TestTruncated cuts a bundle at many places. Only the padding at its end may be missing.
func TestTruncated(t *testing.T) {
	data := sample(t)
	_, list := entries(t, data)
	end := len(data) - 1024 - (512-len(list[3].data)%512)%512
	for n := 0; n < end; n += 97 {
		if _, err := Read(t.Context(), bytes.NewReader(data[:n])); err == nil {
			t.Errorf("%d of %d bytes: no error", n, len(data))
		}
	}
}

// TestChangedSinceItWasRead checks that an archive is not passed on completely if the file has changed after the first reading.
func TestChangedSinceItWasRead(t *testing.T) {
	data := sample(t)
	b, err := Read(t.Context(), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	m, list := entries(t, data)
	list[3].data[len(list[3].data)-1]++
	same := pack(t, m, list)
	m.Files[3] = fileOf("images/0.tar", list[3].data)
	for name, changed := range map[string][]byte{"same manifest": same, "other manifest": pack(t, m, list)} {
		err := Archives(bytes.NewReader(changed), &b.Manifest, func(_ File, r io.Reader) error {
			if _, err := io.ReadAll(r); err == nil {
				t.Errorf("%s: the archive was read without an error", name)
			}
			return nil
		})
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestReadEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, bytes.NewReader(sample(t))); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// FuzzRead checks that no bundle makes the reader fail or accept a file outside of its directories.
func FuzzRead(f *testing.F) {
	small := entry{tar.Header{Name: "pods/a.toml", Typeflag: tar.TypeReg}, []byte("a")}
	m := Manifest{Version: 1, Platform: "linux/amd64", Pods: []Pod{{"a", "pods/a.toml"}}, Files: []File{fileOf("pods/a.toml", small.data)}}
	f.Add(pack(f, m, []entry{small}))
	m.Files[0].Path = "pods/../a.toml"
	f.Add(pack(f, m, []entry{small}))
	f.Add([]byte("nonsense"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := Read(t.Context(), bytes.NewReader(data))
		if err != nil {
			return
		}
		for path := range b.Text {
			if _, err := limit(path); err != nil {
				t.Error(err)
			}
		}
		if len(b.Text) == 0 || len(b.Pods) == 0 {
			t.Errorf("accepted %+v", b.Manifest)
		}
	})
}
