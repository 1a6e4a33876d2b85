package spec

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
)

// Relocate returns the text of a pod file with every path that is relative to
// the directory of the file (imageArchives, envFile, credentialFile, hostPath) replaced by the
// absolute path, so that the text defines the same pod in another directory.
// metadata.generateName is replaced by metadata.name with a generated name, so
// that the text defines the same pod each time. Everything else is unchanged,
// comments included. A text without such a value is returned as it is.
//
// The name of the pod may still depend on the base name of the file, see
// [Pod.Name]. The error is of type [Problems]: those of a text that [Parse] does
// not accept, or a value that cannot be replaced in its place, such as a YAML
// anchor that is used for another field too.
func Relocate(file string, data []byte) ([]byte, error) {
	a, problems, err := acceptRelocated(file, data, nil)
	switch {
	case err != nil:
		return nil, err
	case a.Pod == nil:
		return nil, problems
	}
	return a.Text, nil
}

// Accepted is a pod file that was read, converted and validated, and refers to
// no file by a relative path: it can be moved.
type Accepted struct {
	Path string
	Text []byte
	// Pod is the definition; nil: the file is invalid.
	Pod *Pod
	// Problems are the errors and warnings of the text.
	Problems Problems

	named bool // the text has the name of the pod, which is otherwise that of the file
}

// AcceptRelocated is [Accept] for a file that is about to be moved: text and
// definition are those of [Relocate]. Problems are those of the text as it is
// given. The error is that of [Relocate] for a valid text; the definition is that
// of the text as it is given then.
func AcceptRelocated(file string, data []byte) (a Accepted, problems Problems, err error) {
	return acceptRelocated(file, data, readEnvFile)
}

func acceptRelocated(file string, data []byte, read reader) (a Accepted, problems Problems, err error) {
	var edits []edit
	a = Accepted{Path: file, Text: data}
	a.Pod, problems = parse(file, data, Options{read: read, edits: &edits, named: &a.named})
	a.Problems = problems
	if a.Pod != nil && len(edits) > 0 {
		err = a.relocate(edits, read)
	}
	return a, problems, err
}

// relocate carries out the edits of a valid file.
func (a *Accepted) relocate(edits []edit, read reader) error {
	isTOML := formatOf(a.Path, a.Text) == formatTOML
	for i := range edits {
		locate := edits[i].inYAML
		if isTOML {
			locate = edits[i].inTOML
		}
		if !locate(a.Text) {
			return edits[i].problem().in(a.Path)
		}
	}
	moved := Accepted{Path: filepath.Join("/", filepath.Base(a.Path)), Text: apply(a.Text, edits)}
	moved.Pod, moved.Problems = parse(moved.Path, moved.Text, Options{read: read, named: &moved.named})
	if moved.Pod == nil || !a.Pod.isSame(moved.Pod) {
		return edits[0].problem().in(a.Path)
	}
	*a, _ = moved.At(a.Path)
	return nil
}

// At returns the file at another absolute path with an extension of the same
// format, and false if the text does not define the same pod there, because its
// name is that of the file.
func (a *Accepted) At(path string) (Accepted, bool) {
	fileName := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if a.Pod == nil || !a.named && a.Pod.Name != fileName {
		return Accepted{}, false
	}
	pod := *a.Pod
	pod.Dir = filepath.Dir(path)
	moved := Accepted{Path: path, Text: a.Text, Pod: &pod, Problems: slices.Clone(a.Problems), named: a.named}
	for i := range moved.Problems {
		if moved.Problems[i].File == a.Path {
			moved.Problems[i].File = path
		}
	}
	return moved, true
}

// apply carries out the replacements. A value that several aliases refer to has
// several equal ones.
func apply(data []byte, edits []edit) []byte {
	var all []replacement
	for _, e := range edits {
		all = append(all, e.replaced...)
	}
	slices.SortFunc(all, func(a, b replacement) int { return a.begin - b.begin })
	var text []byte
	done := 0
	for _, r := range all {
		if r.begin < done {
			continue
		}
		text = append(append(text, data[done:r.begin]...), r.text...)
		done = r.end
	}
	return append(text, data[done:]...)
}

// isSame reports whether two definitions from different directories are equal.
func (p *Pod) isSame(q *Pod) bool {
	a, b := *p, *q
	a.Dir, b.Dir = "", ""
	x, errX := json.Marshal(&a)
	y, errY := json.Marshal(&b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
