package change

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"

	"github.com/podstead/podstead/spec"
)

// walk compares two values. The field is the path without indexes, of the table of rows.
func (d *differ) walk(field, path string, a, b reflect.Value) {
	switch {
	case same(a, b):
	case a.Type() == reflect.TypeFor[spec.Resources]():
		d.resources(field, path, a, b)
	case isTable(a.Type()):
		for name, i := range fieldsOf(a.Type()) {
			d.walk(field+"."+name, path+"."+name, a.Field(i), b.Field(i))
		}
	case a.Kind() == reflect.Pointer && isTable(a.Type().Elem()) && !a.IsNil() && !b.IsNil():
		d.walk(field, path, a.Elem(), b.Elem())
	case a.Kind() == reflect.Map:
		for _, key := range keysOf(a, b) {
			d.entry(field, path+"."+quoteKey(key.String()), a.MapIndex(key), b.MapIndex(key))
		}
	case a.Kind() == reflect.Slice && isTable(a.Type().Elem()):
		d.elements(field, path, a, b)
	default:
		d.diff = lineDiff(a, b)
		d.add(field, path, format(a), format(b))
		d.diff = ""
	}
}

// entry compares two values of a map or elements of a list. At most one of them does not exist, and is the zero Value.
func (d *differ) entry(field, path string, a, b reflect.Value) {
	switch {
	case a.IsValid() && b.IsValid():
		d.walk(field, path, a, b)
	case a.IsValid():
		d.add(field, path, element(field, a), "")
	default:
		d.add(field, path, "", element(field, b))
	}
}

// element returns the value of an element that only one definition has.
func element(field string, v reflect.Value) string {
	if field == "volumes[]" {
		v = v.FieldByName("Name")
	}
	return cmp.Or(format(v), `""`)
}

// resources compares requests and limits. A request that has the value of its limit follows the limit.
func (d *differ) resources(field, path string, a, b reflect.Value) {
	from, _ := reflect.TypeAssert[spec.Resources](a)
	to, _ := reflect.TypeAssert[spec.Resources](b)
	follows := func(r spec.Resources, name string) bool {
		limit, limited := r.Limits[name]
		request, set := r.Requests[name]
		return limited == set && limit.Cmp(request) == 0
	}
	for name, i := range fieldsOf(a.Type()) {
		x, y := a.Field(i), b.Field(i)
		for _, key := range keysOf(x, y) {
			resource := key.String()
			if name == "requests" && follows(from, resource) && follows(to, resource) {
				continue
			}
			if d.new != nil {
				d.resized = resource
			}
			d.entry(field+"."+name, path+"."+name+"."+quoteKey(resource), x.MapIndex(key), y.MapIndex(key))
			d.resized = ""
		}
	}
}

// keyed are the lists whose elements have a key, by their fields. Elements of other lists are compared by their indexes.
var keyed = map[string]struct {
	key     string
	ordered bool // the order has an effect
}{
	"volumes":                   {key: "Name"},
	"hostAliases":               {key: "IP", ordered: true},
	"dnsConfig.options":         {key: "Name"},
	"securityContext.sysctls":   {key: "Name"},
	"readinessGates":            {key: "ConditionType"},
	"imagePullSecrets":          {key: "Name"},
	"containers[].env":          {key: "Name", ordered: true},
	"containers[].volumeMounts": {key: "MountPath", ordered: true},
}

// elements compares two lists of tables.
func (d *differ) elements(field, path string, a, b reflect.Value) {
	by := keyed[field]
	if !isUnique(a, by.key) || !isUnique(b, by.key) {
		by.key, by.ordered = "", false
	}
	var common []int // positions in the new list, in the order of the old one
	for i := range a.Len() {
		j := indexOf(b, by.key, keyAt(a, by.key, i))
		if j < 0 {
			d.entry(field+"[]", at(path, i), a.Index(i), reflect.Value{})
			continue
		}
		common = append(common, j)
		d.entry(field+"[]", at(path, j), a.Index(i), b.Index(j))
	}
	for j := range b.Len() {
		if indexOf(a, by.key, keyAt(b, by.key, j)) < 0 {
			d.entry(field+"[]", at(path, j), reflect.Value{}, b.Index(j))
		}
	}
	if by.ordered && !slices.IsSorted(common) {
		d.add(field, path, names(a, by.key), names(b, by.key))
	}
}

func at(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// keyAt returns the key of an element. Without a key, that is its index.
func keyAt(list reflect.Value, key string, i int) string {
	if key == "" {
		return strconv.Itoa(i)
	}
	return list.Index(i).FieldByName(key).String()
}

// indexOf returns the index of the element with a key, or -1.
func indexOf(list reflect.Value, key, value string) int {
	for i := range list.Len() {
		if keyAt(list, key, i) == value {
			return i
		}
	}
	return -1
}

// isUnique reports whether no two elements of a list have the same key.
func isUnique(list reflect.Value, key string) bool {
	seen := map[string]bool{}
	for i := range list.Len() {
		seen[keyAt(list, key, i)] = true
	}
	return len(seen) == list.Len()
}

// names returns the keys of a list in their order, as a value.
func names(list reflect.Value, key string) string {
	all := make([]string, list.Len())
	for i := range all {
		all[i] = keyAt(list, key, i)
	}
	return format(reflect.ValueOf(all))
}
