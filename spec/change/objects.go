package change

import (
	"reflect"
	"strconv"
)

// values compares two maps. Containers can depend on the values of a source; nil: they do not.
func (d *differ) values(s *source, field, path string, a, b reflect.Value) {
	for _, key := range keysOf(a, b) {
		if x, y := a.MapIndex(key), b.MapIndex(key); !x.IsValid() || !y.IsValid() || !same(x, y) {
			if s != nil {
				d.source = &source{kind: s.kind, name: s.name, key: key.String()}
			}
			d.entry(field, path+"."+quoteKey(key.String()), x, y)
		}
	}
	d.source = nil
}

// objects compares the inline config maps or secrets.
func (d *differ) objects(kind string, a, b reflect.Value) {
	const key = "Name"
	for i := range a.Len() {
		if name := keyAt(a, key, i); indexOf(b, key, name) < 0 {
			d.source = &source{kind: kind, name: name}
			d.add(kind+"[]", at(kind, i), strconv.Quote(name), "")
		}
	}
	for j := range b.Len() {
		s, path := source{kind: kind, name: keyAt(b, key, j)}, at(kind, j)
		i := indexOf(a, key, s.name)
		if i < 0 {
			d.source = &s
			d.add(kind+"[]", path, "", strconv.Quote(s.name))
			continue
		}
		for name, k := range fieldsOf(b.Type().Elem()) {
			x, y := a.Index(i).Field(k), b.Index(j).Field(k)
			d.source = nil
			switch name {
			case "data":
				d.values(&s, kind+"[].data", path+".data", x, y)
				continue
			case "credential", "credentialFile":
				d.source = &s
			default: // the variables of envFile are in data
			}
			d.walk(kind+"[]."+name, path+"."+name, x, y)
		}
	}
	d.source = nil
}
