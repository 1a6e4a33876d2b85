package converter

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/schema"
	"github.com/compose-spec/compose-go/v2/types"
)

// TestKeys compares the table with the types of the library: each key has a row, or is below a row for all keys below it.
func TestKeys(t *testing.T) {
	known := map[string]bool{"name": true, "version": true, "include": true} // not in the types: the library reads them
	var walk func(typ reflect.Type, key string)
	field := func(typ reflect.Type, key string) {
		known[key] = true
		k, found := find(key)
		switch {
		case !found:
			t.Errorf("%s has no row", key)
		case k.Verdict == Taken && !k.Whole:
			walk(typ, key)
		}
	}
	walk = func(typ reflect.Type, key string) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Map || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		for f := range typ.Fields() {
			name, inline := yamlName(&f)
			switch {
			case inline && key == "services.pre_start": // the keys of services
			case inline:
				walk(f.Type, key)
			case name != "" && (name != "name" || key != "services"):
				field(f.Type, key+"."+name)
			}
		}
	}
	p := reflect.TypeFor[types.Project]()
	for f := range p.Fields() {
		if name, _ := yamlName(&f); name != "" && name != "name" {
			field(f.Type, name)
		}
	}
	for _, k := range Keys {
		if !known[k.Path] {
			t.Errorf("%s is not a key of the library", k.Path)
		}
		if k.Note == "" || strings.HasSuffix(k.Note, ".") {
			t.Errorf("%s: note %q", k.Path, k.Note)
		}
	}
}

// TestSchema compares the table with the JSON schema of the library, for the keys at the top and those of services.
func TestSchema(t *testing.T) {
	type object struct {
		Properties map[string]any `json:"properties"`
	}
	var s struct {
		Properties  map[string]any             `json:"properties"`
		Definitions map[string]json.RawMessage `json:"definitions"`
		Defs        map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(schema.Schema), &s); err != nil {
		t.Fatal(err)
	}
	check := func(prefix string, properties map[string]any) {
		for _, name := range sortedKeys(properties) {
			if k, found := find(prefix + name); !found {
				t.Errorf("%s%s of the schema has no row", prefix, name)
			} else if !slices.Contains([]Verdict{Taken, Dropped, Lost, Refused}, k.Verdict) {
				t.Errorf("%s%s: verdict %q", prefix, name, k.Verdict)
			}
		}
	}
	check("", s.Properties)
	found := 0
	for _, definitions := range []map[string]json.RawMessage{s.Definitions, s.Defs} {
		for _, name := range []string{"service", "container_spec", "workload_spec"} {
			var o object
			if definitions[name] == nil || json.Unmarshal(definitions[name], &o) != nil {
				continue
			}
			found += len(o.Properties)
			check("services.", o.Properties)
		}
	}
	if found < 60 {
		t.Errorf("the schema has %d keys of services: its form has changed", found)
	}
}
