package podfiles

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/generation"
)

// content is what a file was found to contain.
type content struct {
	path     string
	digest   [sha256.Size]byte // of the text
	pod      *spec.Pod         // nil: the file is invalid
	problems spec.Problems
	err      error // the file cannot be read

	// instead is set for the definition of an earlier generation, which runs in place of the file.
	instead *generation.Instead
}

// accept validates the text of a pod file. A generated name depends on the path only, so that it stays the same.
func accept(path string, text []byte) *content {
	sum := sha256.Sum256([]byte(path))
	pod, problems := spec.Options{Suffix: hex.EncodeToString(sum[:])[:5]}.Accept(path, text)
	return &content{path: path, digest: sha256.Sum256(text), pod: pod, problems: problems}
}

// unreadable is the content of a file that cannot be read.
func unreadable(path string, err error) *content {
	return &content{path: path, err: err}
}

// nameOf is the name of the pod that a file defines. Without a definition, it is that of the pod that follows the file or, if there is
// none, that of the file.
func (w *world) nameOf(c *content) string {
	if c.pod != nil {
		return c.pod.Name
	}
	return cmp.Or(w.follower(c.path), baseName(c.path))
}

// follower returns the name of the pod that follows a file, preferably of one that is not being deleted; empty: there is none.
func (w *world) follower(path string) string {
	deleted := ""
	for _, name := range sortedNames(w.pods) {
		switch p := w.pods[name]; {
		case p.file != path:
		case p.deleting:
			deleted = name
		default:
			return name
		}
	}
	return deleted
}

// heldBy returns the name of another pod that runs from a file, and would be deleted with it; empty: there is none. A file that defines the
// pod and is accepted is held by no other.
func (w *world) heldBy(path, pod string, desired map[string]*content) string {
	other := w.follower(path)
	if other == "" || other == pod || w.pods[other].deleting {
		return ""
	}
	if c := w.contents[path]; c != nil && desired[pod] == c {
		return ""
	}
	return other
}

// baseName is the name of a file without its extension.
func baseName(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}
