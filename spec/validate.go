package spec

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/util/validation"
)

// validator checks a pod that is decoded and defaulted. A check names the field
// that it looks at by its address; the decoder knows its place.
type validator struct {
	*decoder
	pod  *Pod
	root *node

	sources map[string]*Volume // by name
	// The keys of inline config maps and secrets, by name; those of which not all
	// keys are known are left out.
	configMaps, secrets map[string][]string
	whole               bool // env files have been read
}

func (v *validator) run() {
	v.collect()
	v.metadata()
	v.podPolicies()
	v.hostAndDNS()
	v.podSecurity(v.pod.SecurityContext)
	v.podResources()
	v.inlineObjects()
	v.volumes()
	v.containers()
}

// bad tells a problem of the value of a field. A value has one problem at most;
// a field that the file does not set has none.
func (v *validator) bad(field any, format string, args ...any) {
	v.badHint(field, "", format, args...)
}

func (v *validator) badHint(field any, hint, format string, args ...any) {
	n := v.at[field]
	if n == nil || n.failed {
		return
	}
	v.fail(n, n.at, fmt.Sprintf(format, args...), hint)
	if n.kind == kindTable || n.kind == kindArray {
		n.failed = false // several things can be wrong with what holds several
	}
}

func (v *validator) warn(field any, format string, args ...any) {
	n := v.at[field]
	if n == nil || n.failed {
		return
	}
	v.problems = append(v.problems, Problem{
		Line: n.at.line, Column: n.at.column, Path: n.path(), Message: fmt.Sprintf(format, args...), Warning: true,
	})
}

// required tells that a table lacks a key, or that its value is empty.
func (v *validator) required(table any, key string, empty bool) {
	n := v.at[table]
	if !empty || n == nil || n.kind != kindTable || slices.Contains(n.meant, key) {
		return
	}
	if c := n.child(key); c != nil {
		switch {
		case c.failed:
		case c.kind == kindInteger:
			v.fail(c, c.at, "must not be 0", "")
		default:
			v.fail(c, c.at, "must not be empty", "")
		}
		return
	}
	path := strings.TrimPrefix(n.path()+"."+key, ".")
	v.problems = append(v.problems, Problem{Line: n.keyAt.line, Column: n.keyAt.column, Path: path, Message: "is required"})
}

// oneOf checks an enumeration; empty is left to the caller.
func oneOf[T ~string](v *validator, field *T, allowed ...T) {
	if *field == "" || slices.Contains(allowed, *field) {
		return
	}
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	v.badHint(field, didYouMean(string(*field), names), "must be %s, not %s", either(names), quote(string(*field)))
}

// exactlyOne checks a union by the keys that its table has.
func (v *validator) exactlyOne(table any, keys ...string) {
	n := v.at[table]
	if n == nil || n.kind != kindTable {
		return
	}
	var set []string
	for _, c := range n.items {
		switch {
		case slices.Contains(keys, c.key):
			set = append(set, c.key)
		case c.failed:
			return // a misspelled or unsupported one was told already
		}
	}
	switch {
	case len(set) == 0:
		v.bad(table, "needs one of %s", either(keys))
	case len(set) > 1:
		v.bad(table, "has %s; only one is allowed", strings.Join(set, " and "))
	}
}

// name checks a field with one of the rules of the Kubernetes library.
func (v *validator) name(field *string, rule func(string) []string) {
	if *field == "" {
		return
	}
	if told := rule(*field); len(told) > 0 {
		v.bad(field, "%s: %s", quote(*field), sentence(told[0]))
	}
}

// sentence takes the example and the pattern away from a library's message.
func sentence(message string) string {
	message, _, _ = strings.Cut(message, " (e.g.")
	message, _, _ = strings.Cut(message, " (regex")
	return message
}

func dnsLabel(s string) []string     { return validation.IsDNS1123Label(s) }
func dnsSubdomain(s string) []string { return validation.IsDNS1123Subdomain(s) }

// unique tells a value that an earlier element of a list has too.
type unique map[string]bool

func (u unique) seen(key string) bool {
	before := u[key]
	u[key] = true
	return before
}

func (v *validator) ip(field *string) {
	if _, err := netip.ParseAddr(*field); err != nil || strings.Contains(*field, "%") {
		v.bad(field, "must be an IP address, not %s", quote(*field))
	}
}

// image checks a reference as Kubernetes does, but here, not when it is pulled:
// the file is at fault, so the file is refused.
func (v *validator) image(field *string) {
	if *field == "" {
		return
	}
	if _, err := reference.ParseNormalizedNamed(*field); err != nil {
		v.bad(field, "is not an image reference: %s: %s", quote(*field), printable(err.Error()))
	}
}

// inside checks a path that must stay inside the folder that it is seen from.
func (v *validator) inside(field *string) {
	switch {
	case *field == "":
	case path.IsAbs(*field):
		v.bad(field, "must be a relative path, not %s", quote(*field))
	case slices.Contains(strings.Split(*field, "/"), ".."):
		v.bad(field, "must not contain \"..\"")
	}
}

// unknownName tells a reference to nothing.
func (v *validator) unknownName(field any, what, name string, known []string) {
	v.badHint(field, didYouMean(name, known), "there is no %s %s", what, quote(name))
}
