package spec

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
)

// Relocate returns the text of a pod file with every path that is relative to
// the directory of the file (imageArchives, envFile, hostPath) replaced by the
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
	var edits []edit
	pod, problems := parse(file, data, unsupported, Options{edits: &edits})
	if pod == nil {
		return nil, problems
	}
	if len(edits) == 0 {
		return data, nil
	}
	isTOML := formatOf(file, data) == formatTOML
	for i := range edits {
		locate := edits[i].inYAML
		if isTOML {
			locate = edits[i].inTOML
		}
		if !locate(data) {
			return nil, edits[i].problem().in(file)
		}
	}
	text := apply(data, edits)
	again, _ := parse(filepath.Join("/", filepath.Base(file)), text, unsupported, Options{})
	if again == nil || !pod.isSame(again) {
		return nil, edits[0].problem().in(file)
	}
	return text, nil
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
