package podstead_test

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/supervisor/event"
)

func eventsPage() string {
	var b strings.Builder
	b.WriteString("# Events\n\nMade from the table in `supervisor/event/event.go`. Reasons are the kubelet's where it has one; `{field}` stands for a value that the event\n" +
		"also carries by name. Every event tells its pod, and the event that caused it.\n\n" +
		"| kind | type | reason | message |\n| --- | --- | --- | --- |\n")
	for _, e := range event.Entries() {
		b.WriteString("| `" + string(e.Kind) + "` | " + string(e.Level) + " | `" + e.Reason + "` | " + e.Sentence + " |\n")
	}
	return b.String()
}

// podFilePage lists the fields of a pod file from the types of package spec and their comments.
func podFilePage(t *testing.T) string {
	t.Helper()
	p := specTypes(t)
	var b strings.Builder
	b.WriteString("# The pod file\n\nMade from the types of package `spec`. Names and meanings are those of the Kubernetes Pod API (`v1`), with `metadata` and `spec` flattened\n" +
		"into the top level. Fields that are not supported yet are refused, unless they say\n" +
		"what leaving them out means.\n")
	refused := p.refused(t)
	for _, name := range p.order() {
		p.section(&b, name, refused)
	}
	return b.String()
}

// specTypes are the types of package spec.
func specTypes(t *testing.T) *typePage {
	t.Helper()
	p := &typePage{types: map[string]*ast.TypeSpec{}, docs: map[string]string{}, values: map[string][]string{}}
	for _, s := range goFiles(t) {
		if s.dir == "spec" && !s.isTest {
			p.collect(s.file)
		}
	}
	if p.types["Pod"] == nil {
		t.Fatal("package spec has no type Pod")
	}
	return p
}

// typePage collects the declarations that the page is made from.
type typePage struct {
	types       map[string]*ast.TypeSpec
	docs        map[string]string   // by type
	values      map[string][]string // of string types with named constants
	unsupported []string
}

func (p *typePage) collect(file *ast.File) {
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range gen.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				doc := s.Doc
				if doc == nil {
					doc = gen.Doc
				}
				p.types[s.Name.Name], p.docs[s.Name.Name] = s, doc.Text()
			case *ast.ValueSpec:
				p.value(s)
			}
		}
	}
}

func (p *typePage) value(s *ast.ValueSpec) {
	for i, value := range s.Values {
		switch value := value.(type) {
		case *ast.BasicLit:
			if id, ok := s.Type.(*ast.Ident); ok && s.Names[i].IsExported() {
				p.values[id.Name] = append(p.values[id.Name], strings.Trim(value.Value, `"`))
			}
		case *ast.CompositeLit:
			if s.Names[i].Name != "notSupportedYet" {
				continue
			}
			for _, element := range value.Elts {
				if lit, ok := element.(*ast.BasicLit); ok {
					p.unsupported = append(p.unsupported, strings.Trim(lit.Value, "`\""))
				}
			}
		}
	}
}

// order is Pod and every struct that it reaches, in the order of their first use.
func (p *typePage) order() []string {
	ordered := []string{"Pod"}
	for i := 0; i < len(ordered); i++ {
		for _, field := range p.fields(ordered[i]) {
			if name := elementName(field.Type); p.isStruct(name) && !slices.Contains(ordered, name) {
				ordered = append(ordered, name)
			}
		}
	}
	return ordered
}

func (p *typePage) isStruct(name string) bool {
	s, ok := p.types[name]
	if !ok {
		return false
	}
	fields, ok := s.Type.(*ast.StructType)
	return ok && len(fields.Fields.List) > 0 && fields.Fields.List[0].Tag != nil
}

// fields are those that a file can set.
func (p *typePage) fields(name string) []*ast.Field {
	var out []*ast.Field
	s, ok := p.types[name].Type.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, field := range s.Fields.List {
		if field.Tag != nil && jsonName(field) != "-" && !strings.Contains(field.Tag.Value, `podfile:"-"`) {
			out = append(out, field)
		}
	}
	return out
}

// refused is the list of what is not supported yet, as "Type.field".
func (p *typePage) refused(t *testing.T) map[string]bool {
	t.Helper()
	refused := map[string]bool{}
	for _, line := range p.unsupported {
		at, name := "", "Pod"
		fieldPath, _, _ := strings.Cut(line, "=")
		for step := range strings.SplitSeq(strings.ReplaceAll(fieldPath, "[]", ""), ".") {
			i := slices.IndexFunc(p.fields(name), func(f *ast.Field) bool { return jsonName(f) == step })
			if i < 0 {
				t.Fatalf("spec/unsupported.go: %s: %s has no field %s", line, name, step)
			}
			at, name = name+"."+step, elementName(p.fields(name)[i].Type)
		}
		refused[at] = true
	}
	return refused
}

func (p *typePage) section(b *strings.Builder, name string, refused map[string]bool) {
	fields := p.fields(name)
	b.WriteString("\n## " + name + "\n\n" + forUsers(p.docs[name], fields) + "\n\n| field | value | |\n| --- | --- | --- |\n")
	for _, field := range fields {
		doc := forUsers(field.Doc.Text(), fields)
		if refused[name+"."+jsonName(field)] {
			doc = strings.TrimSpace("*Not supported yet.* " + doc)
		}
		b.WriteString("| `" + jsonName(field) + "` | " + p.valueOf(field.Type) + " | " + strings.ReplaceAll(doc, "|", `\|`) + " |\n")
	}
}

var goName = regexp.MustCompile(`\[[A-Z][A-Za-z.]*\]`)

// forUsers makes a Go comment read as one about the file: fields by their names there, and no sentence that points into the code.
func forUsers(doc string, fields []*ast.Field) string {
	var kept []string
	for sentence := range strings.SplitAfterSeq(strings.Join(strings.Fields(doc), " "), ". ") {
		if !goName.MatchString(sentence) {
			kept = append(kept, strings.TrimSpace(sentence))
		}
	}
	doc = strings.ReplaceAll(strings.Join(kept, " "), " is nil for ", " left out means ")
	for _, field := range fields {
		name := regexp.MustCompile(`\b` + field.Names[0].Name + `\b`)
		doc = name.ReplaceAllString(doc, "`"+jsonName(field)+"`")
	}
	return doc
}

func jsonName(field *ast.Field) string {
	_, tag, _ := strings.Cut(field.Tag.Value, `json:"`)
	tag, _, _ = strings.Cut(tag, `"`)
	name, _, _ := strings.Cut(tag, ",")
	return name
}

func elementName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return elementName(e.X)
	case *ast.ArrayType:
		return elementName(e.Elt)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func (p *typePage) valueOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return p.valueOf(e.X)
	case *ast.ArrayType:
		return "list of " + p.valueOf(e.Elt)
	case *ast.MapType:
		return "table of " + p.valueOf(e.Value)
	case *ast.Ident:
		return p.named(e.Name)
	}
	return ""
}

func (p *typePage) named(name string) string {
	switch {
	case len(p.values[name]) > 0:
		return "`" + strings.Join(p.values[name], "`, `") + "`"
	case p.isStruct(name):
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	case name == "Sensitive":
		return "string"
	case name == "bool":
		return "true or false"
	case strings.HasPrefix(name, "int"), name == "float64":
		return "number"
	case p.types[name] != nil:
		switch underlying := p.types[name].Type.(type) {
		case *ast.MapType:
			return p.valueOf(underlying)
		case *ast.StructType:
			return strings.ToLower(name)
		}
		return strings.ToLower(name)
	}
	return name
}
