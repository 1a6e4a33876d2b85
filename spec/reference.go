package spec

import (
	"fmt"
	"strings"
)

// MaxProcessBytes is the maximum size of the environment and the arguments of a
// container in sum, after the expansion of references. Linux accepts up to
// 2 MiB with its default stack limit.
const MaxProcessBytes = 1 << 20

// Expand replaces each $(NAME) by the value of the variable, and $$ by a single
// $, as Kubernetes does in commands, arguments and values. A reference to an
// undefined variable, an unclosed reference and any other $ are kept. ok is
// false if the result would be longer than limit bytes. At most that much memory
// is used.
func Expand(s string, vars map[string]string, limit int) (expanded string, ok bool) {
	var b strings.Builder
	add := func(part string) bool {
		if len(part) > limit-b.Len() {
			return false
		}
		b.WriteString(part)
		return true
	}
	for {
		before, after, found := strings.Cut(s, "$")
		if !add(before) {
			return "", false
		}
		if !found {
			return b.String(), true
		}
		part := "$"
		s = after
		if strings.HasPrefix(after, "$") {
			s = after[1:]
		} else if reference, is := strings.CutPrefix(after, "("); is {
			if name, rest, closed := strings.Cut(reference, ")"); closed {
				s = rest
				if value, defined := vars[name]; defined {
					part = value
				} else {
					part = "$(" + name + ")"
				}
			}
		}
		if !add(part) {
			return "", false
		}
	}
}

// ProcessSize adds up the environment and the arguments of a container.
type ProcessSize struct{ bytes int }

// Left returns how many bytes may be added.
func (p *ProcessSize) Left() int { return MaxProcessBytes - p.bytes }

// Add adds strings, each with its terminating zero. A negative result of Left
// means that they are too large.
func (p *ProcessSize) Add(parts ...string) {
	for _, s := range parts {
		p.bytes += len(s) + 1
	}
}

// Remove removes strings that were added.
func (p *ProcessSize) Remove(parts ...string) {
	for _, s := range parts {
		p.bytes -= len(s) + 1
	}
}

// TooLargeError reports that the environment and the arguments of a container
// are larger than [MaxProcessBytes].
type TooLargeError struct {
	// Field is the first field that does not fit, such as "env[3]".
	Field string
}

func (e *TooLargeError) Error() string { return e.Field + ": " + processTooLarge }

var processTooLarge = fmt.Sprintf("Too long: environment and arguments of a container may not be more than %d bytes in total, with "+
	"references expanded",
	MaxProcessBytes)
