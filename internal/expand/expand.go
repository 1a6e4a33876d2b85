// Package expand replaces references to variables, $(NAME), in commands, arguments and values as Kubernetes does. It owns the
// syntax, not the variables.
package expand

import "strings"

// Expand replaces each $(NAME) by the value of the variable, and $$ by a single $. A reference to an undefined variable, an
// unclosed reference and any other $ are kept.
func Expand(s string, vars map[string]string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		s = after
		if strings.HasPrefix(after, "$") {
			b.WriteByte('$')
			s = after[1:]
			continue
		}
		if reference, ok := strings.CutPrefix(after, "("); ok {
			if name, rest, closed := strings.Cut(reference, ")"); closed {
				if value, defined := vars[name]; defined {
					b.WriteString(value)
				} else {
					b.WriteString("$(" + name + ")")
				}
				s = rest
				continue
			}
		}
		b.WriteByte('$')
	}
}
