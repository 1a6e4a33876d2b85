// Package expand replaces the references to variables that Kubernetes allows in commands, arguments and values:
// $(NAME). It owns the syntax, and does not know where variables come from.
package expand

import "strings"

// Expand replaces each $(NAME) by the variable of that name, and $$ by a single $. A reference to what is not defined,
// an unclosed one, and any other $ stay as they are.
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
