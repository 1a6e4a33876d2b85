//go:build e2e

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podstead/podstead/test/ocitar"
)

func init() { imageCommands["twins"] = writeTwins }

// twins are the numbers in two images that let their digests start with the same 12 digits. They were found by a search over 2^25 images.
var twins = map[string]string{"a": "01975b2d", "b": "0044b3cd"}

// writeTwins is the command `twins FILE`: it writes an archive with these images, and sets $TWINS to the start of both digests. The
// documents are for all platforms on which tests run, and must not change by a byte.
func writeTwins(ts *testscript.TestScript, _ bool, args []string) {
	files := map[string][]byte{ocispec.ImageLayoutFile: []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	var entries []string
	for label, number := range twins {
		index := twin(files, label, number)
		entries = append(entries,
			fmt.Sprintf(twinDescriptor+`,"annotations":{"io.containerd.image.name":"localhost/twin:%s"}}`, "index.v1+json",
				digest.FromString(index), len(index), label))
		start := digest.FromString(index).Encoded()[:12]
		if known := ts.Getenv("TWINS"); known != "" && known != start {
			ts.Fatalf("the digests start with %s and %s", known, start)
		}
		ts.Setenv("TWINS", start)
	}
	files[ocispec.ImageIndexFile] = fmt.Appendf(nil, `{"schemaVersion":2,"manifests":[%s]}`, strings.Join(entries, ","))
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	defer f.Close()
	ts.Check(ocitar.WriteFiles(f, files))
}

// twinDescriptor is the start of a descriptor: its type, digest and size follow.
const twinDescriptor = `{"mediaType":"application/vnd.oci.image.%s","digest":%q,"size":%d`

// twin adds the documents of an image to files, and returns its index.
func twin(files map[string][]byte, label, number string) string {
	blob := func(text string) string {
		d := digest.FromString(text)
		files["blobs/sha256/"+d.Encoded()] = []byte(text)
		return d.String()
	}
	layer := string(make([]byte, 1024)) // an empty archive
	var manifests []string
	for _, platform := range []string{`"architecture":"amd64"`, `"architecture":"arm64"`, `"architecture":"arm","variant":"v7"`} {
		config := fmt.Sprintf(`{%s,"os":"linux","config":{"Labels":{"twin":%q}},"rootfs":{"type":"layers","diff_ids":[%q]}}`, platform,
			label, blob(layer))
		manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":`+twinDescriptor+
			`},"layers":[`+twinDescriptor+`}]}`,
			"config.v1+json", blob(config), len(config), "layer.v1.tar", blob(layer), len(layer))
		manifests = append(manifests,
			fmt.Sprintf(twinDescriptor+`,"platform":{%s,"os":"linux"}}`, "manifest.v1+json", blob(manifest), len(manifest), platform))
	}
	index := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[%s],`+
		`"annotations":{"twin":"%s"}}`,
		strings.Join(manifests, ","), number)
	blob(index)
	return index
}
