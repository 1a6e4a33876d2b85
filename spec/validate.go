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

// validator checks a pod after decoding and defaulting. Checks refer to a field
// by its address, from which the decoder has the position.
//
// Messages are those of Kubernetes' validation (k8s.io/kubernetes/pkg/apis/core/validation
// and field.Error) where it has the same rule.
type validator struct {
	*decoder
	pod  *Pod
	root *node

	sources map[string]*Volume // by name
	// The keys of inline config maps and secrets, by name. An object is left out
	// if its env file has not been read.
	configMaps, secrets map[string][]string
	hasEnvFiles         bool // env files have been read
}

func (v *validator) run() {
	v.collect()
	v.metadata()
	v.podFields()
	v.hostAndDNS()
	v.podSecurity(v.pod.SecurityContext)
	v.podResources()
	v.inlineObjects()
	v.volumes()
	v.containers()
}

// bad reports a problem of the value of a field. It reports at most one problem
// per value, and none for a field that the file does not set.
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
		n.failed = false // a table or an array can have several problems
	}
}

func (v *validator) warn(field any, format string, args ...any) {
	v.warnHint(field, "", format, args...)
}

func (v *validator) warnHint(field any, hint, format string, args ...any) {
	n := v.at[field]
	if n == nil || n.failed {
		return
	}
	v.problems = append(v.problems, Problem{
		Line: n.at.line, Column: n.at.column, Path: n.path(), Message: fmt.Sprintf(format, args...), Hint: hint, Warning: true,
	})
}

// required reports a key that a table does not have, or that is empty.
func (v *validator) required(table any, key string, empty bool) {
	n := v.at[table]
	if !empty || n == nil || n.kind != kindTable || slices.Contains(n.meant, key) {
		return
	}
	if c := n.child(key); c != nil {
		switch {
		case c.failed:
		case c.kind == kindInteger:
			v.fail(c, c.at, "must be greater than 0", "")
		default:
			v.fail(c, c.at, "must not be empty", "")
		}
		return
	}
	path := strings.TrimPrefix(n.path()+"."+key, ".")
	v.problems = append(v.problems, Problem{Line: n.keyAt.line, Column: n.keyAt.column, Path: path, Message: "Required value"})
}

// oneOf checks the value of an enumeration. It accepts the empty value.
func oneOf[T ~string](v *validator, field *T, allowed ...T) {
	if *field == "" || slices.Contains(allowed, *field) {
		return
	}
	v.unsupportedValue(field, string(*field), names(allowed))
}

// chosen checks the value of an enumeration that the file must not leave empty: the field is a pointer in the Pod API.
func chosen[T ~string](v *validator, field *T, allowed ...T) {
	if n := v.at[field]; *field != "" || n == nil {
		oneOf(v, field, allowed...)
	} else if n.kind == kindString {
		v.badHint(field, "remove it for the default", "Unsupported value: \"\": supported values: %s", quotedList(names(allowed)))
	}
}

func names[T ~string](values []T) []string {
	names := make([]string, len(values))
	for i, value := range values {
		names[i] = string(value)
	}
	return names
}

// invalid reports a value with the reason why it is invalid.
func (v *validator) invalid(field any, value, reason string) {
	v.bad(field, "Invalid value: %s: %s", quote(value), reason)
}

// duplicate reports a value that an earlier element of a list has too.
func (v *validator) duplicate(field any, value string) {
	v.bad(field, "Duplicate value: %s", quote(value))
}

func (v *validator) unsupportedValue(field any, value string, supported []string) {
	v.badHint(field, didYouMean(value, supported), "Unsupported value: %s: supported values: %s", quote(value), quotedList(supported))
}

// tooMany reports a list with more than limit items.
func (v *validator) tooMany(list any, length, limit int) {
	if length > limit {
		v.bad(list, "Too many: %d: must have at most %d items", length, limit)
	}
}

// exactlyOne checks a union by the keys that its table has.
func (v *validator) exactlyOne(table any, keys ...string) {
	if n := v.atMostOne(table, keys...); n == 0 {
		v.bad(table, "Required value: must specify one of %s", quotedList(keys))
	}
}

// atMostOne checks a union that has a default. It returns the number of its keys
// that the table has, -1 if another key of the table is reported already.
func (v *validator) atMostOne(table any, keys ...string) int {
	n := v.at[table]
	if n == nil || n.kind != kindTable {
		return -1
	}
	var set []string
	for _, c := range n.items {
		switch {
		case slices.Contains(keys, c.key):
			set = append(set, c.key)
		case c.failed:
			return -1 // an unknown or unsupported field
		}
	}
	if len(set) > 1 {
		v.bad(table, "Forbidden: may not specify more than one of %s", quotedList(set))
	}
	return len(set)
}

// name checks a field with a rule of k8s.io/apimachinery/pkg/util/validation. It
// accepts the empty value.
func (v *validator) name(field *string, rule func(string) []string) {
	if *field == "" {
		return
	}
	if reasons := rule(*field); len(reasons) > 0 {
		v.invalid(field, *field, withoutExample(reasons[0]))
	}
}

// requiredName reports that a table has no name in a field, or one that a rule does not allow.
func (v *validator) requiredName(table any, key string, field *string, rule func(string) []string) {
	v.required(table, key, *field == "")
	v.name(field, rule)
}

// withoutExample removes the example and the regular expression from a message
// of the library.
func withoutExample(message string) string {
	message, _, _ = strings.Cut(message, " (e.g.")
	message, _, _ = strings.Cut(message, " (regex")
	return message
}

func dnsLabel(s string) []string     { return validation.IsDNS1123Label(s) }
func dnsSubdomain(s string) []string { return validation.IsDNS1123Subdomain(s) }

// unique finds duplicates in a list.
type unique map[string]bool

func (u unique) seen(key string) bool {
	before := u[key]
	u[key] = true
	return before
}

func (v *validator) ip(field *string) {
	addr, err := netip.ParseAddr(*field)
	switch {
	case err != nil || addr.Zone() != "":
		v.invalid(field, *field, "must be a valid IP address")
	case addr.Is4In6():
		v.invalid(field, *field, "must not be an IPv4-mapped IPv6 address")
	}
}

// image checks the syntax of an image reference. The kubelet checks it when it
// pulls the image (InvalidImageName).
func (v *validator) image(field *string) {
	if *field == "" {
		return
	}
	if _, err := reference.ParseNormalizedNamed(*field); err != nil {
		v.invalid(field, *field, "must be an image reference: "+printable(err.Error()))
	}
}

// relativePath checks a path that must not leave its base directory.
func (v *validator) relativePath(field *string) {
	switch {
	case *field == "":
	case path.IsAbs(*field):
		v.invalid(field, *field, "must be a relative path")
	case slices.Contains(strings.Split(*field, "/"), ".."):
		v.invalid(field, *field, noBackstep)
	}
}

const noBackstep = "must not contain '..'"

// absolutePath accepts the empty value.
func (v *validator) absolutePath(field *string) {
	if *field != "" && !path.IsAbs(*field) {
		v.invalid(field, *field, "must be an absolute path")
	}
}

// notFound reports a reference to an object of a kind that does not exist.
func (v *validator) notFound(field any, kind, name string, known []string) {
	v.badHint(field, didYouMean(name, known), "Not found: %s %s", kind, quote(name))
}
