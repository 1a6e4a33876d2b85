package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// TOML returns the scenario as a file that [Parse] reads.
func (s *Scenario) TOML() []byte {
	var b bytes.Buffer
	writeTable(&b, "", reflect.ValueOf(s).Elem())
	return b.Bytes()
}

// writeTable writes the fields of a struct that are set: values first, then lists of tables, below the path of the struct.
func writeTable(b *bytes.Buffer, path string, v reflect.Value) {
	var tables []int
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch field := v.Field(i); {
		case !f.IsExported() || field.IsZero():
		case field.Kind() == reflect.Slice:
			tables = append(tables, i)
		default:
			fmt.Fprintf(b, "%s = %s\n", keyOf(f), valueOf(reflect.Indirect(field)))
		}
	}
	for _, i := range tables {
		below := strings.TrimPrefix(path+"."+keyOf(v.Type().Field(i)), ".")
		for n := range v.Field(i).Len() {
			fmt.Fprintf(b, "\n[[%s]]\n", below)
			writeTable(b, below, v.Field(i).Index(n))
		}
	}
}

func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return key
}

// valueOf writes a string, an integer or a boolean.
func valueOf(v reflect.Value) string {
	if v.Kind() != reflect.String {
		return fmt.Sprint(v.Interface())
	}
	text, _ := json.Marshal(v.String())                       // the escapes of a string in JSON are escapes in TOML
	return strings.ReplaceAll(string(text), "\x7f", `\u007f`) // which JSON does not escape
}
