package server_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"hash/fnv"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/spec"
)

var update = flag.Bool("update", false, "update the golden files")

// wireTypes returns a value of every type that requests and responses consist of, in the order of their first use.
func wireTypes() []any {
	types := []any{api.Error{}, api.Positions{}}
	for _, e := range server.Endpoints() {
		for _, v := range []any{e.Request, e.Response, e.Stream} {
			known := v == nil
			for _, other := range types {
				known = known || reflect.TypeOf(v) == reflect.TypeOf(other)
			}
			if !known {
				types = append(types, v)
			}
		}
	}
	return types
}

// filler sets every exported field to a value that depends on the path of the field only, so that a new field changes no other value.
type filler struct{ within []reflect.Type }

func (f *filler) fill(v reflect.Value, path string) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(1_700_000_000+number(path), 0).UTC()))
		return
	}
	if v.Type() == reflect.TypeFor[spec.Pod]() { // the pod file has its own reference
		v.Set(reflect.ValueOf(spec.Pod{
			RestartPolicy: spec.RestartAlways, Containers: []spec.Container{{Name: "web", Image: "nginx:1.27"}},
		}))
		return
	}
	if v.Type() == reflect.TypeFor[api.Effect]() { // one of a few words
		v.SetString(string(api.EffectInPlace))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(path)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(number(path))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(number(path)) & 0x7f)
	case reflect.Pointer:
		if f.descend(v.Type().Elem()) {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), path)
			f.within = f.within[:len(f.within)-1]
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.fill(v.Index(0), path+"[]")
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		f.fill(value, path+"{}")
		v.SetMapIndex(reflect.ValueOf(path).Convert(v.Type().Key()), value)
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			switch {
			case !field.IsExported():
			case field.Anonymous:
				f.fill(v.Field(i), path)
			default:
				f.fill(v.Field(i), path+"."+field.Name)
			}
		}
	}
}

// descend reports whether a type is not being filled already.
func (f *filler) descend(t reflect.Type) bool {
	for _, outer := range f.within {
		if outer == t && t.Kind() == reflect.Struct {
			return false
		}
	}
	f.within = append(f.within, t)
	return true
}

// number is a value that depends on the path of a field.
func number(path string) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(path))
	return int64(h.Sum32() % 1_000_000)
}

// TestWireTypes requires that all types of requests and responses are declared where an internal change does not reach them.
func TestWireTypes(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type, string)
	visit = func(typ reflect.Type, path string) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		for _, internal := range []string{"/supervisor", "/runtime", "/internal", "/probes"} {
			if strings.HasPrefix(typ.PkgPath(), "github.com/podstead/podstead"+internal) {
				t.Errorf("%s is a %v of package %s: declare a type of package api, and convert it", path, typ, typ.PkgPath())
			}
		}
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			visit(typ.Elem(), path)
		case reflect.Map:
			visit(typ.Key(), path)
			visit(typ.Elem(), path)
		case reflect.Struct:
			for field := range typ.Fields() {
				visit(field.Type, path+"."+field.Name)
			}
		}
	}
	for _, value := range wireTypes() {
		visit(reflect.TypeOf(value), reflect.TypeOf(value).Name())
	}
	if !seen[reflect.TypeFor[api.ContainerStatus]()] || !seen[reflect.TypeFor[api.Evidence]()] {
		t.Error("the search has not reached all types")
	}
}

// TestWireFormat compares the JSON of all types with a golden file. A change of the file is a change of the API.
func TestWireFormat(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	for _, value := range wireTypes() {
		v := reflect.New(reflect.TypeOf(value)).Elem()
		(&filler{}).fill(v, v.Type().Name())
		text, err := json.MarshalIndent(v.Interface(), "", "  ")
		if err != nil {
			t.Fatalf("%T: %v", value, err)
		}
		got.WriteString("-- " + v.Type().Name() + " --\n" + string(text) + "\n")
	}
	const golden = "testdata/wire.txt"
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the JSON of the API differs from %s. If it is compatible, run go test ./internal/server -run TestWireFormat -update.\n%s",
			golden, firstDifference(got.String(), string(want)))
	}
}

// firstDifference returns the first line that differs.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return "got  " + g[i] + "\nwant " + w[i]
		}
	}
	return "one is longer"
}
