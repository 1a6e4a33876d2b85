// Package bundle creates and applies bundles: one file with pod files, their images and, on request, their config maps and secrets, for
// hosts without a network. It trusts nothing in a bundle. Only a [Transaction] changes the host: it asks the daemon for images and pods,
// and writes config maps, secrets and the record for an undo itself.
//
// A bundle is a tar archive. Its first file is the manifest, which lists all others with their digests, in their order.
package bundle

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/internal/order"
)

const (
	// Version is that of the format.
	Version = 1
	// ManifestName is the name of the first file.
	ManifestName = "podstead-bundle.json"

	maxManifest = 4 << 20
	maxFiles    = 10_000
	maxPod      = 1 << 20   // bytes of a pod file
	maxValue    = 1 << 20   // bytes of a value of a config map or secret
	maxText     = 256 << 20 // bytes of all pod files and values
	maxImages   = 1 << 50   // bytes of an image archive
)

// The directories of a bundle.
const (
	podsDir       = "pods"
	configMapsDir = "configmaps"
	secretsDir    = "secrets"
	imagesDir     = "images"
)

// Manifest describes a bundle.
type Manifest struct {
	Version  int       `json:"version"`
	Created  time.Time `json:"created"`
	Podstead string    `json:"podstead"` // the version that has written the bundle
	Platform string    `json:"platform"` // of the images, such as linux/arm64
	Pods     []Pod     `json:"pods"`
	Images   []Image   `json:"images"`
	// Signatures are the documents that were in files beside an image archive, by its path in the bundle.
	Signatures map[string][]string `json:"signatures,omitempty"`
	// UnpackedSize is how many bytes the images have when they are unpacked.
	UnpackedSize int64  `json:"unpackedSize"`
	Files        []File `json:"files"`
}

// Pod is a pod of a bundle.
type Pod struct {
	Name string `json:"name"`
	File string `json:"file"` // path in the bundle
}

// Image is an image of a bundle.
type Image struct {
	Name    string `json:"name"`             // full
	Digest  string `json:"digest,omitempty"` // empty: that of the Docker layout is not known
	Archive string `json:"archive"`          // path in the bundle
}

// File is a file of a bundle.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // in hexadecimal
}

// maxName is the maximum length of a name in a path, without the extension.
const maxName = 253

// The lengths of names are not part of the expressions: each repetition would be a part of the compiled expression, in every program.
var (
	// objectName is that of a config map or secret, a DNS subdomain.
	objectName = lazyregexp.New(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	keyName    = lazyregexp.New(`^[-._a-zA-Z0-9]+$`)
	podFile    = lazyregexp.New(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?\.(toml|yaml|yml|json)$`)
	imageFile  = lazyregexp.New(`^[0-9]{1,4}\.tar$`)
)

// isName reports whether a name without its extension is not too long and matches.
func isName(name, extension string, pattern *lazyregexp.Regexp) bool {
	return len(name)-len(extension) <= maxName && pattern.MatchString(name)
}

// limit returns the maximum size of a file with a path, and an error for a path that a bundle cannot have.
func limit(name string) (int64, error) {
	dir, rest, _ := strings.Cut(name, "/")
	object, key, nested := strings.Cut(rest, "/")
	switch dir {
	case podsDir:
		if isName(rest, path.Ext(rest), podFile) {
			return maxPod, nil
		}
	case imagesDir:
		if imageFile.MatchString(rest) {
			return maxImages, nil
		}
	case configMapsDir, secretsDir:
		if nested && isName(object, "", objectName) && !strings.Contains(object, "..") && isName(key, "", keyName) &&
			!strings.HasPrefix(key, "..") && key != "." {
			return maxValue, nil
		}
	}
	return 0, fmt.Errorf("manifest: file %q is not allowed", name)
}

// check checks that the manifest is consistent.
func (m *Manifest) check() error {
	if m.Version != Version {
		return fmt.Errorf("manifest: version %d is not supported, this podstead reads version %d", m.Version, Version)
	}
	if len(m.Files) > maxFiles {
		return fmt.Errorf("manifest: more than %d files", maxFiles)
	}
	if m.UnpackedSize < 0 {
		return errors.New("manifest: unpackedSize is negative")
	}
	seen := map[string]bool{}
	var text int64
	for _, f := range m.Files {
		most, err := limit(f.Path)
		if err != nil {
			return err
		}
		switch sum, err := hex.DecodeString(f.SHA256); {
		case seen[f.Path]:
			return fmt.Errorf("manifest: file %q is listed twice", f.Path)
		case f.Size < 0 || f.Size > most:
			return fmt.Errorf("manifest: file %q has %d bytes, the limit is %d", f.Path, f.Size, most)
		case err != nil || len(sum) != 32:
			return fmt.Errorf("manifest: file %q has an invalid sha256", f.Path)
		}
		seen[f.Path] = true
		if most < maxImages {
			text += f.Size
		}
	}
	if text > maxText {
		return fmt.Errorf("manifest: pod files and configuration have more than %d bytes", maxText)
	}
	return m.checkParts(seen)
}

// checkParts checks that pods and images refer to files, and that each of these files is referred to.
func (m *Manifest) checkParts(files map[string]bool) error {
	used, names := map[string]bool{}, map[string]bool{}
	for _, p := range m.Pods {
		switch {
		case !files[p.File] || path.Dir(p.File) != podsDir:
			return fmt.Errorf("manifest: file %q of pod %q is missing", p.File, p.Name)
		case names["pod "+p.Name] || used[p.File]:
			return fmt.Errorf("manifest: pod %q is listed twice", p.Name)
		}
		names["pod "+p.Name], used[p.File] = true, true
	}
	for _, i := range m.Images {
		switch {
		case !files[i.Archive] || path.Dir(i.Archive) != imagesDir:
			return fmt.Errorf("manifest: archive %q of image %q is missing", i.Archive, i.Name)
		case names["image "+i.Name]:
			return fmt.Errorf("manifest: image %q is listed twice", i.Name)
		}
		names["image "+i.Name], used[i.Archive] = true, true
	}
	for archive := range m.Signatures {
		if path.Dir(archive) != imagesDir || !used[archive] {
			return fmt.Errorf("manifest: archive %q of signatures is missing", archive)
		}
	}
	for f := range files {
		if dir := path.Dir(f); (dir == podsDir || dir == imagesDir) && !used[f] {
			return fmt.Errorf("manifest: nothing refers to file %q", f)
		}
	}
	if len(m.Pods) == 0 {
		return errors.New("manifest: the bundle has no pods")
	}
	return nil
}

// Object is a config map or a secret of a bundle.
type Object struct {
	Kind string // configmap or secret
	Name string
	Keys []string // sorted
}

// Objects returns the config maps and then the secrets, sorted by name.
func (m *Manifest) Objects() []Object {
	var list []Object
	for _, f := range m.Files {
		parts := strings.Split(f.Path, "/")
		if len(parts) != 3 {
			continue
		}
		kind := strings.TrimSuffix(parts[0], "s")
		i := slices.IndexFunc(list, func(o Object) bool { return o.Kind == kind && o.Name == parts[1] })
		if i < 0 {
			i, list = len(list), append(list, Object{Kind: kind, Name: parts[1]})
		}
		list[i].Keys = append(list[i].Keys, parts[2])
	}
	for i := range list {
		slices.Sort(list[i].Keys)
	}
	order.Sort(list, func(a, b Object) int { return strings.Compare(a.Kind+"/"+a.Name, b.Kind+"/"+b.Name) })
	return list
}

// ImageSize returns the size of the image archives.
func (m *Manifest) ImageSize() (size int64) {
	for _, f := range m.Files {
		if path.Dir(f.Path) == imagesDir {
			size += min(f.Size, maxImages)
		}
	}
	return size
}
