package spec

import (
	"reflect"
	"slices"
)

// Decoded is a TOML file other than a pod file that [Decode] has read. It
// knows where every value came from.
type Decoded struct {
	d    *decoder
	file string
}

// Decode reads a TOML file that is no pod file into v, a pointer to a struct
// with json tags, as strictly as a pod file is read. A field that the file does
// not set is left as it is. Fields are strings, booleans, signed integers,
// float64, [Seconds], [Quantity], and structs, pointers, slices and maps of
// those. See [Decoded.Problems] for what is wrong.
func Decode(file string, data []byte, v any) *Decoded {
	d := &decoder{at: map[any]*node{}, subject: "the whole file"}
	out := &Decoded{d: d, file: file}
	if len(data) > maxFileBytes {
		d.problems = tooLarge.problems()
		return out
	}
	root, syntax := readTOML(data)
	if syntax != nil {
		d.problems = syntax.problems()
		return out
	}
	d.decode(root, reflect.ValueOf(v).Elem())
	return out
}

// Has reports whether the file sets a field of v, given as a pointer to it.
func (f *Decoded) Has(field any) bool { return f.d.at[field] != nil }

// Bad adds a problem of a field that the file sets; it changes nothing for one
// that it does not set, or that has a problem already.
func (f *Decoded) Bad(field any, message, hint string) {
	if n := f.d.at[field]; n != nil && !n.failed {
		f.d.fail(n, n.at, message, hint)
	}
}

// Problems are all problems of the file, sorted by line.
func (f *Decoded) Problems() Problems {
	return slices.Clone(f.d.problems).in(f.file)
}
