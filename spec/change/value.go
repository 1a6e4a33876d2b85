package change

import (
	"cmp"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/spec"
)

// fieldsOf yields the fields of a table that a file can set, with their indexes.
func fieldsOf(t reflect.Type) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "" && f.Tag.Get("podfile") != "-" && !yield(name, i) {
				return
			}
		}
	}
}

// isTable reports whether values of a type are tables in a pod file.
func isTable(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[spec.Quantity]() && t != reflect.TypeFor[spec.Port]()
}

// same reports whether two values are equal. Quantities are equal if their amounts are, and an empty list or table is equal to a missing
// one, as after a JSON round trip.
func same(a, b reflect.Value) bool {
	if x, ok := reflect.TypeAssert[spec.Quantity](a); ok {
		y, _ := reflect.TypeAssert[spec.Quantity](b)
		return x.Cmp(y) == 0
	}
	switch a.Kind() {
	case reflect.Pointer:
		return a.IsNil() == b.IsNil() && (a.IsNil() || same(a.Elem(), b.Elem()))
	case reflect.Struct:
		for i := range a.NumField() {
			if a.Type().Field(i).Tag.Get("podfile") != "-" && !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		for i := range min(a.Len(), b.Len()) {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return a.Len() == b.Len()
	case reflect.Map:
		return !slices.ContainsFunc(keysOf(a, b), func(key reflect.Value) bool {
			x, y := a.MapIndex(key), b.MapIndex(key)
			return !x.IsValid() || !y.IsValid() || !same(x, y)
		})
	default:
		return a.Equal(b)
	}
}

// keysOf returns the keys of two maps, sorted.
func keysOf(a, b reflect.Value) []reflect.Value {
	keys := a.MapKeys()
	for _, key := range b.MapKeys() {
		if !a.MapIndex(key).IsValid() {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(x, y reflect.Value) int { return cmp.Compare(x.String(), y.String()) })
	return keys
}

var bareKey = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

// quoteKey returns a key as in a path of a pod file.
func quoteKey(key string) string {
	if bareKey.MatchString(key) {
		return key
	}
	return strconv.Quote(key)
}

// maxValue is the maximum length of a value that is shown, in bytes.
const maxValue = 160

// format returns a value as in a pod file, shortened. A field that is not set is empty.
func format(v reflect.Value) string {
	if v.Kind() == reflect.Pointer && v.IsNil() || v.Kind() == reflect.Slice && v.Len() == 0 || v.Kind() == reflect.String && v.Len() == 0 {
		return ""
	}
	return clip(write(v))
}

// write returns a value as in a pod file. Values of secrets are replaced.
func write(v reflect.Value) string {
	if q, ok := reflect.TypeAssert[spec.Quantity](v); ok {
		return strconv.Quote(q.String())
	}
	if p, ok := reflect.TypeAssert[spec.Port](v); ok {
		if p.Name != "" {
			return strconv.Quote(p.Name)
		}
		return p.String()
	}
	if v.Type() == reflect.TypeFor[spec.Sensitive]() {
		return changedSecret
	}
	switch v.Kind() {
	case reflect.Pointer:
		return write(v.Elem())
	case reflect.String:
		return strconv.Quote(v.String())
	case reflect.Slice:
		items := make([]string, v.Len())
		for i := range items {
			items[i] = write(v.Index(i))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case reflect.Map:
		var items []string
		for _, key := range keysOf(v, v) {
			items = append(items, quoteKey(key.String())+" = "+write(v.MapIndex(key)))
		}
		return table(items)
	case reflect.Struct:
		var items []string
		for name, i := range fieldsOf(v.Type()) {
			if f := v.Field(i); !f.IsZero() {
				items = append(items, name+" = "+write(f))
			}
		}
		return table(items)
	default:
		return fmt.Sprint(v.Interface())
	}
}

func table(items []string) string {
	if len(items) == 0 {
		return "{}"
	}
	return "{ " + strings.Join(items, ", ") + " }"
}
