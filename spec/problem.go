package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a pod file, or, as a Warning, worth
// telling. Nothing in it holds a control character or a secret's value.
type Problem struct {
	File         string
	Line, Column int // from 1
	// Path is the field as the file wrote it, empty for the file as a whole.
	Path    string
	Message string
	// Hint is what to do about it; it may be empty.
	Hint    string
	Warning bool
}

// String is "file:line:col: path: message", without the hint.
func (p Problem) String() string {
	if p.Path == "" {
		return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", p.File, p.Line, p.Column, p.Path, p.Message)
}

// Problems are all problems of a file, sorted by line.
type Problems []Problem

// Error is one line a problem, warnings included.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Errors are the problems that make the file unusable.
func (ps Problems) Errors() Problems { return ps.filter(false) }

// Warnings are the problems beside which the pod runs.
func (ps Problems) Warnings() Problems { return ps.filter(true) }

// in names the file of the problems that are in no other, and sorts them, those
// of other files last.
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
