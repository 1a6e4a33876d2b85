package show

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
)

// Path is a JSONPath expression for values of an object. It is safe for concurrent use.
type Path struct{ expression string }

// ParsePath parses an expression in the forms of kubectl: metadata.name, .metadata.name, {metadata.name} or {.metadata.name}.
func ParsePath(text string) (Path, error) {
	inner := text
	if strings.HasPrefix(inner, "{") && strings.HasSuffix(inner, "}") {
		inner = inner[1 : len(inner)-1]
	}
	inner = strings.TrimPrefix(inner, ".")
	if inner == "" || strings.ContainsAny(inner, "{}") {
		return Path{}, fmt.Errorf("expression %q: must be a path such as .metadata.name", text)
	}
	p := Path{"{." + inner + "}"}
	_, err := parse(p.expression)
	return p, err
}

// String returns the complete expression.
func (p Path) String() string { return p.expression }

// Values returns the values of an object, none if a field or an element of a list is missing. The object is an [Object].
func (p Path) Values(object any) ([]any, error) {
	results, err := find(p.expression, object)
	if err != nil && strings.Contains(err.Error(), "array index out of bounds") { // the library has no type for it
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var values []any
	for _, list := range results {
		for _, v := range list {
			if v.IsValid() && v.CanInterface() {
				values = append(values, v.Interface())
			}
		}
	}
	return values, nil
}

// Object returns a value as an expression sees it: its JSON encoding as maps, lists, strings, numbers and booleans.
func Object(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var object any
	err = utiljson.Unmarshal(text, &object) // numbers without a fraction are integers
	return object, err
}

// parse parses a template. The result can be evaluated once: the library changes it.
func parse(template string) (j *jsonpath.JSONPath, err error) {
	defer recovered(template, &err)
	j = jsonpath.New("out").AllowMissingKeys(true)
	if err := j.Parse(template); err != nil {
		return nil, fmt.Errorf("expression %q: %w", template, err)
	}
	return j, nil
}

func find(template string, object any) (results [][]reflect.Value, err error) {
	defer recovered(template, &err)
	j, err := parse(template)
	if err != nil {
		return nil, err
	}
	if results, err = j.FindResults(object); err != nil {
		return nil, fmt.Errorf("expression %q: %w", template, err)
	}
	return results, nil
}

// recovered turns a panic of the library, which some invalid expressions cause, into an error.
func recovered(template string, err *error) {
	if recover() != nil {
		*err = fmt.Errorf("expression %q: %w", template, errInvalid)
	}
}

var errInvalid = errors.New("is invalid")
