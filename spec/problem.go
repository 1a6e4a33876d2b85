package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is an error or a warning about a pod file. It contains no control
// characters and no values of secrets.
type Problem struct {
	File         string
	Line, Column int // from 1
	// Path is the field as written in the file; empty means the whole file.
	Path    string
	Message string
	// Hint tells how to fix it, in the imperative; it may be empty.
	Hint    string
	Warning bool
	// Code identifies what a warning is about, see [Codes]; empty: it has none.
	Code string
}

// String returns "file:line:col: path: message", without the hint.
func (p Problem) String() string {
	if p.Path == "" {
		return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", p.File, p.Line, p.Column, p.Path, p.Message)
}

// Problems are all problems of a file, sorted by line.
type Problems []Problem

// Error returns one line per problem, including warnings.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Errors returns the problems that make the file invalid.
func (ps Problems) Errors() Problems { return ps.filter(false) }

// Warnings returns the problems that do not prevent the pod from running.
func (ps Problems) Warnings() Problems { return ps.filter(true) }

// in sets the file of the problems that have none, and sorts them by position.
// Problems of other files come last.
func (ps Problems) in(file string) Problems {
	own := printable(file)
	for i := range ps {
		ps[i].File = cmp.Or(ps[i].File, own)
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		others := strings.Compare(a.File, b.File)
		if a.File == own || b.File == own {
			others = cmp.Compare(btoi(a.File != own), btoi(b.File != own))
		}
		return cmp.Or(others, cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return ps
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (ps Problems) filter(warning bool) Problems {
	var out Problems
	for _, p := range ps {
		if p.Warning == warning {
			out = append(out, p)
		}
	}
	return out
}
