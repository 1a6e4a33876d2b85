package show

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
)

// goTemplate is a template as of package text/template, which is what kubectl executes. The imported copy of it cannot call methods, and
// the values of an [Object] have none. text/template makes the program larger (TestMethodsByName).
type goTemplate struct{ *template.Template }

// templateFunctions are the functions that kubectl adds.
var templateFunctions = template.FuncMap{"exists": exists, "base64decode": base64decode}

// ParseGoTemplate parses a Go template. Missing fields have no value, as in kubectl.
func ParseGoTemplate(text string) (Template, error) {
	t, err := template.New("output").Funcs(templateFunctions).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("template %q: %w", text, err)
	}
	return goTemplate{t}, nil
}

// Text implements [Template].
func (t goTemplate) Text(object any) (string, error) {
	var b strings.Builder
	if err := t.Execute(&b, object); err != nil {
		return "", err
	}
	return b.String(), nil
}

// exists reports whether a value has an element at a path of keys and indexes.
func exists(value any, path ...any) bool {
	v := reflect.ValueOf(value)
	for _, step := range path {
		if v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		s := reflect.ValueOf(step)
		switch {
		case v.Kind() == reflect.Map && s.IsValid() && s.Type().AssignableTo(v.Type().Key()):
			v = v.MapIndex(s)
		case v.Kind() == reflect.Slice && s.IsValid() && s.CanInt() && s.Int() >= 0 && s.Int() < int64(v.Len()):
			v = v.Index(int(s.Int()))
		default:
			return false
		}
	}
	return v.IsValid()
}

func base64decode(text string) (string, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	return string(data), err
}
