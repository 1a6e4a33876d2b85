package spec

import (
	"reflect"
	"slices"
)

// Decoded is a TOML file, other than a pod file, that [Decode] has read. It
// keeps the position of every value.
type Decoded struct {
	d    *decoder
	file string
}

// Decode reads a TOML file that is not a pod file into v, a pointer to a struct
// with json tags. It is as strict as [Parse]. Fields that the file does not set
// keep their values. Fields can be strings, booleans, signed integers, float64,
// [Seconds], [Quantity], and structs, pointers, slices and maps of those.
// [Decoded.Problems] returns the problems of the file.
func Decode(file string, data []byte, v any) *Decoded {
	d := &decoder{at: map[any]*node{}, subject: "the top level"}
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

// Has reports whether the file sets a field of v. The argument is a pointer to
// the field.
func (f *Decoded) Has(field any) bool { return f.d.at[field] != nil }

// Bad adds a problem of a field, given as a pointer to it. It does nothing if
// the file does not set the field, or if the field has a problem already.
func (f *Decoded) Bad(field any, message, hint string) {
	if n := f.d.at[field]; n != nil && !n.failed {
		f.d.fail(n, n.at, message, hint)
	}
}

// ProblemOf returns a problem of a field, given as a pointer to it, without
// adding it. It has no position if the file does not set the field.
func (f *Decoded) ProblemOf(field any, message, hint string) Problem {
	p := Problem{Message: message, Hint: hint}
	if n := f.d.at[field]; n != nil {
		p = problemAt(n, message, hint)
	}
	p.File = f.file
	return p
}

// Problems returns all problems of the file, sorted by line.
func (f *Decoded) Problems() Problems {
	return slices.Clone(f.d.problems).in(f.file)
}
