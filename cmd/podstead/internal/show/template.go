package show

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
)

// Template is a template of an output format.
type Template interface {
	// Text returns the text for an object. The object is an [Object].
	Text(object any) (string, error)
}

// pathTemplate is a JSONPath template: text with expressions in braces.
type pathTemplate struct {
	text   string
	asJSON bool // the values of each expression are printed as a JSON list
}

// ParseTemplate parses a JSONPath template.
func ParseTemplate(text string) (Template, error) { return parseTemplate(text, false) }

// ParseJSONTemplate parses a JSONPath template whose values are printed as JSON.
func ParseJSONTemplate(text string) (Template, error) { return parseTemplate(text, true) }

func parseTemplate(text string, asJSON bool) (Template, error) {
	if !strings.Contains(text, "{") {
		return nil, fmt.Errorf("expression %q: must have braces, such as {.metadata.name}", text)
	}
	_, err := parse(text)
	return pathTemplate{text, asJSON}, err
}

// Text implements [Template].
func (t pathTemplate) Text(object any) (text string, err error) {
	defer recovered(t.text, &err)
	j, err := parse(t.text)
	if err != nil {
		return "", err
	}
	j.EnableJSONOutput(t.asJSON)
	var b bytes.Buffer
	if err := j.Execute(&b, object); err != nil {
		return "", fmt.Errorf("expression %q: %w", t.text, err)
	}
	return b.String(), nil
}

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
