package repo_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"maps"
	"math"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/spec"
)

// object is an object of a JSON schema or of an OpenAPI document.
type object map[string]any

// apiSchema builds the schemas of the types that the table of endpoints reaches, with the comments of package api.
type apiSchema struct {
	t       *testing.T
	source  *typePage
	schemas map[string]object
	order   []string
}

func newAPISchema(t *testing.T) *apiSchema {
	t.Helper()
	p := &typePage{types: map[string]*ast.TypeSpec{}, docs: map[string]string{}, values: map[string][]string{}}
	for _, s := range goFiles(t) {
		if !s.isTest && s.dir == "api" {
			p.collect(s.file)
		}
	}
	s := &apiSchema{t: t, source: p, schemas: map[string]object{}}
	for _, e := range server.Endpoints() {
		for _, v := range []any{e.Request, e.Response, e.Stream} {
			if v != nil {
				s.of(reflect.TypeOf(v))
			}
		}
	}
	s.of(reflect.TypeFor[api.Positions]())
	s.of(reflect.TypeFor[api.Error]())
	return s
}

// of returns the schema of a type, or a reference to it.
func (s *apiSchema) of(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[spec.ResourceList]():
		return object{"type": "object", "additionalProperties": object{"type": "string"}}
	case t.Name() != "" && t.PkgPath() != "" && t.Kind() != reflect.Slice && t.Kind() != reflect.Map:
		if _, known := s.schemas[t.Name()]; !known {
			s.schemas[t.Name()] = object{} // before its fields: a type can contain itself
			s.order = append(s.order, t.Name())
			s.schemas[t.Name()] = s.named(t)
		}
		return object{"$ref": "#/components/schemas/" + t.Name()}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Uint32:
		return object{"type": "integer", "format": "int64", "minimum": 0, "maximum": int64(math.MaxUint32)}
	case reflect.Float64:
		return object{"type": "number", "format": "double"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return object{"type": "integer", "format": "int64"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "contentEncoding": "base64"}
		}
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	}
	s.t.Errorf("type %v has no schema", t)
	return nil
}

// named returns the schema of a type with a name.
func (s *apiSchema) named(t reflect.Type) object {
	doc := s.sentence(s.source.docs[t.Name()])
	switch {
	case t == reflect.TypeFor[api.PodSpec]():
		return object{
			"type": "object", "description": doc, "externalDocs": object{"url": "pod-file.md", "description": "The fields of a pod file"},
		}
	case t.Kind() == reflect.String && t == reflect.TypeFor[spec.QOSClass]():
		return object{
			"type": "string", "enum": []string{"Guaranteed", "Burstable", "BestEffort"}, "description": "The v1.PodQOSClass of a pod.",
		}
	case t.Kind() == reflect.String:
		out := object{"type": "string", "description": doc}
		if values := s.source.values[t.Name()]; len(values) > 0 {
			out["examples"] = values
		}
		return out
	}
	properties, required := object{}, []string{}
	s.fields(t, func(name string, field reflect.StructField) {
		property := s.of(field.Type)
		if text := s.comment(t, field); text != "" {
			property = maps.Clone(property)
			property["description"] = text
		}
		properties[name] = property
		if tag := field.Tag.Get("json"); !strings.Contains(tag, ",omit") {
			required = append(required, name)
		}
	})
	out := object{"type": "object", "description": doc, "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	if doc == "" {
		s.t.Errorf("api: type %s has no comment", t.Name())
	}
	return out
}

// fields calls f for each field in the JSON of a struct.
func (s *apiSchema) fields(t reflect.Type, f func(string, reflect.StructField)) {
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "-" && name != "" && field.IsExported() {
			f(name, field)
		}
	}
}

// comment returns the comment of a field, which is above it or beside it.
func (s *apiSchema) comment(t reflect.Type, field reflect.StructField) string {
	for _, name := range []string{t.Name(), "Line"} { // Line is embedded
		spec := s.source.types[name]
		if spec == nil {
			continue
		}
		structure, ok := spec.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, f := range structure.Fields.List {
			if slices.ContainsFunc(f.Names, func(id *ast.Ident) bool { return id.Name == field.Name }) {
				return s.sentence(f.Doc.Text() + " " + f.Comment.Text())
			}
		}
	}
	return ""
}

var link = regexp.MustCompile(`\[\*?([A-Za-z.]+)\]`)

// sentence joins the lines of a comment, without the brackets of Go names.
func (s *apiSchema) sentence(text string) string {
	text, _, _ = strings.Cut(text, "\n\n")
	return link.ReplaceAllString(strings.Join(strings.Fields(text), " "), "$1")
}

var wildcard = regexp.MustCompile(`\{(\w+)(\.\.\.)?\}`)

// openAPI returns docs/reference/openapi.json.
func openAPI(t *testing.T) string {
	t.Helper()
	s := newAPISchema(t)
	paths := object{}
	for _, e := range server.Endpoints() {
		path := wildcard.ReplaceAllString(e.Path, "{$1}")
		if paths[path] == nil {
			paths[path] = object{}
		}
		if item, ok := paths[path].(object); ok {
			item[strings.ToLower(e.Method)] = s.operation(&e)
		}
	}
	document := object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Podstead", "version": "v1", "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "HTTP over the unix socket of the daemon, /run/podstead/podstead.sock. This document is generated, see api.md.",
		},
		"servers": []object{{"url": "http://podstead", "description": "The host name is ignored."}},
		"paths":   paths, "components": object{"schemas": s.schemas},
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// operationID returns the name of an endpoint, such as postPodsNameRestart.
func operationID(e *server.Endpoint) string {
	id := strings.ToLower(e.Method)
	for part := range strings.FieldsFuncSeq(strings.TrimPrefix(e.Path, "/v1"),
		func(r rune) bool { return strings.ContainsRune("/{}.", r) }) {
		id += strings.ToUpper(part[:1]) + part[1:]
	}
	return id
}

func (s *apiSchema) operation(e *server.Endpoint) object {
	parameters := []object{}
	for _, match := range wildcard.FindAllStringSubmatch(e.Path, -1) {
		parameters = append(parameters, object{"name": match[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range e.Query {
		schema := object{"type": "string"}
		switch p.Type {
		case server.Boolean, server.Integer:
			schema["type"] = p.Type
		case server.Timestamp:
			schema["format"] = p.Type
		case server.Text, server.Duration, server.JSON:
		}
		if p.Repeated {
			schema = object{"type": "array", "items": schema}
		}
		parameters = append(parameters, object{"name": p.Name, "in": "query", "description": p.Description, "schema": schema})
	}
	success := object{"description": "Success"}
	content := object{}
	if e.Response != nil {
		content["application/json"] = object{"schema": s.of(reflect.TypeOf(e.Response))}
	}
	if e.Stream != nil {
		content["application/x-ndjson"] = object{"schema": s.of(reflect.TypeOf(e.Stream))}
	}
	binary := object{"schema": object{"type": "string", "format": "binary"}}
	if e.Content != "" {
		content[e.Content] = binary
	}
	if len(content) > 0 {
		success["content"] = content
	}
	status := "200"
	if e.Upgrade != "" {
		status, success = "101", object{"description": "The connection is switched to " + e.Upgrade}
	}
	problem := object{"application/json": object{"schema": s.of(reflect.TypeFor[api.Error]())}}
	reasons := make([]string, 0, 8)
	for _, r := range e.AllReasons() {
		reasons = append(reasons, string(r))
	}
	out := object{
		"operationId": operationID(e), "summary": e.Summary, "parameters": parameters, "x-read-only-socket": e.ReadOnly,
		"responses": object{
			status: success, "default": object{"description": "Error. Reasons: " + strings.Join(reasons, ", "), "content": problem},
		},
	}
	if e.Details != "" {
		out["description"] = e.Details
	}
	if e.Request != nil {
		out["requestBody"] = object{
			"required": true, "content": object{"application/json": object{"schema": s.of(reflect.TypeOf(e.Request))}},
		}
	}
	if e.Body != "" {
		out["requestBody"] = object{"required": true, "content": object{e.Body: binary}}
	}
	return out
}

// apiPage returns docs/reference/api.md. The part before the endpoints is in the page itself.
func apiPage(t *testing.T, page string) string {
	t.Helper()
	const marker = "<!-- generated from api.Endpoints -->\n"
	head, _, found := strings.Cut(page, marker)
	if !found {
		t.Fatalf("docs/reference/api.md has no line %s", marker)
	}
	s, b := newAPISchema(t), &strings.Builder{}
	b.WriteString(head + marker + "\n## Endpoints\n\n| Request | Purpose | Read-only socket |\n| --- | --- | --- |\n")
	for _, e := range server.Endpoints() {
		access := "no"
		if e.ReadOnly {
			access = "yes"
		}
		fmt.Fprintf(b, "| [`%s`](#%s) | %s | %s |\n", e.Pattern(), strings.ToLower(operationID(&e)), e.Summary, access)
	}
	for _, e := range server.Endpoints() {
		s.endpoint(b, &e)
	}
	b.WriteString("\n## Limits\n\n| Limit | Value | Beyond it |\n| --- | --- | --- |\n")
	for _, l := range server.Limits() {
		fmt.Fprintf(b, "| %s | %s | %s |\n", l.Name, l.Value, l.Effect)
	}
	b.WriteString("\n## Types\n\nClients must ignore fields and words that they do not know.\n")
	for _, name := range s.order {
		s.typeSection(b, name)
	}
	return b.String()
}

// anchor returns the anchor of a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

func (s *apiSchema) endpoint(b *strings.Builder, e *server.Endpoint) {
	fmt.Fprintf(b, "\n### %s\n\n`%s`\n\n%s.", operationID(e), e.Pattern(), e.Summary)
	if e.Details != "" {
		b.WriteString(" " + e.Details)
	}
	b.WriteString("\n")
	if len(e.Query) > 0 {
		b.WriteString("\n| Parameter | Type | Description |\n| --- | --- | --- |\n")
		for _, p := range e.Query {
			kind := string(p.Type)
			if p.Repeated {
				kind += ", repeatable"
			}
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", p.Name, kind, p.Description)
		}
	}
	b.WriteString("\n")
	line := func(label string, v any) {
		if v != nil {
			fmt.Fprintf(b, "- %s: %s\n", label, s.typeText(s.of(reflect.TypeOf(v))))
		}
	}
	line("Request", e.Request)
	if e.Body != "" {
		fmt.Fprintf(b, "- Request: `%s`\n", e.Body)
	}
	line("Response", e.Response)
	if e.Content != "" {
		fmt.Fprintf(b, "- Response: `%s`\n", e.Content)
	}
	line("Stream of", e.Stream)
	if e.Request == nil && e.Response == nil && e.Stream == nil && e.Upgrade == "" && e.Content == "" {
		b.WriteString("- Response: `{}`\n")
	}
	if e.Upgrade != "" {
		fmt.Fprintf(b, "- Protocol: %s\n", e.Upgrade)
	}
	var reasons []string
	for _, r := range e.Reasons {
		reasons = append(reasons, "`"+string(r)+"`")
	}
	if len(reasons) > 0 {
		fmt.Fprintf(b, "- Errors: %s\n", strings.Join(reasons, ", "))
	}
	fmt.Fprintf(b, "- Example: [request and response](api-requests.md#%s)\n", anchor(e.Pattern()))
}

// typeText returns a schema in one line.
func (s *apiSchema) typeText(schema object) string {
	if ref, ok := schema["$ref"].(string); ok {
		name := ref[strings.LastIndex(ref, "/")+1:]
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	}
	switch schema["type"] {
	case "array":
		if items, ok := schema["items"].(object); ok {
			return "list of " + s.typeText(items)
		}
	case "object":
		if values, ok := schema["additionalProperties"].(object); ok {
			return "object of " + s.typeText(values)
		}
	case "string":
		switch {
		case schema["format"] == "date-time":
			return "time"
		case schema["contentEncoding"] != nil:
			return "base64"
		}
	}
	return fmt.Sprint(schema["type"])
}

func (s *apiSchema) typeSection(b *strings.Builder, name string) {
	schema := s.schemas[name]
	fmt.Fprintf(b, "\n### %s\n\n%v\n", name, schema["description"])
	if words, ok := schema["examples"].([]string); ok {
		b.WriteString("\nWords: `" + strings.Join(words, "`, `") + "`\n")
	}
	properties, ok := schema["properties"].(object)
	if !ok {
		if schema["externalDocs"] != nil {
			b.WriteString("\nIts fields are those of the [pod file](pod-file.md).\n")
		}
		return
	}
	required, _ := schema["required"].([]string)
	b.WriteString("\n| Field | Type | Present | Description |\n| --- | --- | --- | --- |\n")
	for _, field := range s.ordered(name, properties) {
		property, _ := properties[field].(object)
		text, _ := property["description"].(string)
		present := "if set"
		if slices.Contains(required, field) {
			present = "always"
		}
		if text != "" {
			text = strings.ToUpper(text[:1]) + text[1:]
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", field, s.typeText(property), present, strings.ReplaceAll(text, "|", `\|`))
	}
}

// ordered returns the fields of a type in the order of the source, and those of embedded types last.
func (s *apiSchema) ordered(name string, properties object) []string {
	var out []string
	if structure, ok := s.source.types[name].Type.(*ast.StructType); ok {
		for _, f := range structure.Fields.List {
			if f.Tag == nil {
				continue
			}
			if field := jsonName(f); properties[field] != nil {
				out = append(out, field)
			}
		}
	}
	for _, field := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(out, field) {
			out = append(out, field)
		}
	}
	return out
}

// TestOpenAPI checks that every reference of the document has a target and that the operations have unique names, and that the table of
// endpoints is consistent. "make lint" validates the document against the schema of OpenAPI 3.1.
func TestOpenAPI(t *testing.T) {
	text := openAPI(t)
	var document struct {
		Paths      map[string]map[string]struct{ OperationID string }
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	for _, ref := range regexp.MustCompile(`"\$ref": "#/components/schemas/(\w+)"`).FindAllStringSubmatch(text, -1) {
		if document.Components.Schemas[ref[1]] == nil {
			t.Errorf("no schema %s", ref[1])
		}
	}
	operations, n := map[string]bool{}, 0
	for _, item := range document.Paths {
		for _, o := range item {
			operations[o.OperationID] = true
			n++
		}
	}
	if all := server.Endpoints(); n != len(all) || len(operations) != n {
		t.Errorf("%d operations with %d names, want %d", n, len(operations), len(all))
	}
	reasons := newAPISchema(t).source.values["ErrorReason"]
	for _, e := range server.Endpoints() {
		if e.ReadOnly && e.Method != http.MethodGet {
			t.Errorf("%s is read-only", e.Pattern())
		}
		if strings.HasSuffix(e.Summary, ".") || e.Summary == "" {
			t.Errorf("%s: summary %q must be a phrase without a full stop", e.Pattern(), e.Summary)
		}
		for _, p := range e.Query {
			if p.Description == "" || p.Type == "" {
				t.Errorf("%s: parameter %s needs a type and a description", e.Pattern(), strconv.Quote(p.Name))
			}
		}
		for _, r := range e.Reasons {
			if !slices.Contains(reasons, string(r)) {
				t.Errorf("%s: reason %s is not declared", e.Pattern(), r)
			}
		}
	}
}
