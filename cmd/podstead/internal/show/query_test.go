package show

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
)

// object is an object as the JSON of a pod.
type object map[string]any

func web() any {
	return object{
		"metadata": object{"name": "web", "labels": object{"app.kubernetes.io/name": "shop"}, "deletionTimestamp": nil},
		"spec": object{
			"containers": []object{{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:2"}}, "priority": int64(12345678901),
		},
		"status": object{"phase": "Running", "ready": true, "load": 0.5, "list": []any{}},
	}
}

func decoded(t *testing.T, v any) any {
	t.Helper()
	o, err := Object(v)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestPath checks the forms of expressions, and which values they have.
func TestPath(t *testing.T) {
	for expression, want := range map[string]string{
		"metadata.name":                                  "[web]",
		".metadata.name":                                 "[web]",
		"{metadata.name}":                                "[web]",
		"{.metadata.name}":                               "[web]",
		".spec.containers[*].image":                      "[x:1 y:2]",
		".spec.containers[-1:].name":                     "[b]",
		`.spec.containers[?(@.name=="b")].image`:         "[y:2]",
		`.metadata.labels.app\.kubernetes\.io/name`:      "[shop]",
		".metadata.labels['app\\.kubernetes\\.io/name']": "[shop]",
		".spec.priority":                                 "[12345678901]",
		".status.load":                                   "[0.5]",
		".status.ready":                                  "[true]",
		".metadata.deletionTimestamp":                    "[<nil>]",
		".metadata.none.none":                            "[]",
		".spec.containers[7].name":                       "[]",
		".status.list[0]":                                "[]",
	} {
		path, err := ParsePath(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		values, err := path.Values(decoded(t, web()))
		if got := fmt.Sprint(values); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", expression, got, err, want)
		}
	}
}

func TestInvalidPath(t *testing.T) {
	for expression, want := range map[string]string{
		"":                         `expression "": must be a path such as .metadata.name`,
		"{}":                       `expression "{}": must be a path such as .metadata.name`,
		"{.metadata}{.spec}":       `expression "{.metadata}{.spec}": must be a path such as .metadata.name`,
		".spec.containers[":        `expression "{.spec.containers[}": unterminated array`,
		".spec.containers[?(@.a=b": `unterminated`,
	} {
		if _, err := ParsePath(expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", expression, err, want)
		}
	}
}

// TestTemplate checks templates, each twice: the library changes the template that it evaluates.
func TestTemplate(t *testing.T) {
	list := object{"items": []any{web(), web()}}
	for _, c := range []struct {
		template string
		object   any
		want     string
	}{
		{"{.metadata.name}", web(), "web"},
		{"name={.metadata.name}\n", web(), "name=web\n"},
		{`{.items[*].metadata.name}`, list, "web web"},
		{`{range .items[*]}{.metadata.name}{"\t"}{range .spec.containers[*]}{.name}{","}{end}{"\n"}{end}`, list, "web\ta,b,\nweb\ta,b,\n"},
		{`{range .none[*]}{.metadata.name}{"\n"}{end}`, list, ""},
		{`{.spec.containers[0]}`, web(), `{"image":"x:1","name":"a"}`},
		{`{.metadata.none}`, web(), ""},
	} {
		template, err := ParseTemplate(c.template)
		if err != nil {
			t.Errorf("%s: %v", c.template, err)
			continue
		}
		for range 2 {
			if got, err := template.Text(decoded(t, c.object)); err != nil || got != c.want {
				t.Errorf("%s: %q, %v; want %q", c.template, got, err, c.want)
			}
		}
	}
	for template, want := range map[string]string{
		"":               `expression "": must have braces, such as {.metadata.name}`,
		".metadata.name": `expression ".metadata.name": must have braces, such as {.metadata.name}`,
		"{.metadata":     `expression "{.metadata": unclosed action`,
	} {
		if _, err := ParseTemplate(template); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", template, err, want)
		}
	}
}

func TestColumns(t *testing.T) {
	columns, err := ParseColumns(`NAME:.metadata.name,IMAGES:spec.containers[*].image,NONE:.metadata.none,` +
		`SECOND:.spec.containers[?(@.image!="x:1")].name`)
	if err != nil {
		t.Fatal(err)
	}
	row, err := columns.Row(decoded(t, web()))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"NAME", "IMAGES", "NONE", "SECOND"}, {"web", "x:1,y:2", "<none>", "b"}}
	if diff := cmp.Diff(want, [][]string{columns.Header, row}); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{
		"":             "no columns are given",
		"NAME":         `column "NAME": must have the form NAME:PATH, such as NAME:.metadata.name`,
		"NAME:":        `column "NAME": expression "": must be a path`,
		"A:.x,B:{.y}}": `column "B": expression "{.y}}"`,
	} {
		if _, err := ParseColumns(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestSort checks the order of texts, numbers and quantities, and that missing values come first.
func TestSort(t *testing.T) {
	item := func(name string, key any) object { return object{"name": name, "key": key} }
	missing := object{"name": "missing"}
	for name, c := range map[string]struct {
		items []object
		want  string
	}{
		"texts":      {[]object{item("b", "b"), item("a", "a")}, "a b"},
		"numbers":    {[]object{item("ten", 10), item("half", 0.5), item("nine", 9)}, "half nine ten"},
		"quantities": {[]object{item("1Gi", "1Gi"), item("500Mi", "500Mi"), item("2k", "2k")}, "2k 500Mi 1Gi"},
		"missing":    {[]object{item("a", "a"), missing, item("b", "b")}, "missing a b"},
		"stable":     {[]object{item("c", 1), item("b", 1), item("a", 0)}, "a c b"},
		"empty":      {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := ParsePath("key")
			if err != nil {
				t.Fatal(err)
			}
			if err := Sort(c.items, path); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, o := range c.items {
				names = append(names, fmt.Sprint(o["name"]))
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	for _, c := range []struct {
		items    []object
		by, want string
	}{
		{[]object{missing}, "none", "no pod has the field {.none}"},
		{[]object{item("a", "a"), item("b", 1)}, "key", "sort by {.key}: values must be either strings or numbers"},
		{[]object{item("a", object{}), item("b", object{})}, "key", "sort by {.key}: values must be either strings or numbers"},
	} {
		path, err := ParsePath(c.by)
		if err != nil {
			t.Fatal(err)
		}
		if err := Sort(c.items, path); err == nil || err.Error() != c.want {
			t.Errorf("sort %v by %s: %v, want %q", c.items, c.by, err, c.want)
		}
	}
}

// FuzzExpression checks that no expression causes a panic.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"{.a}", `{range .items[*]}{.x}{"\n"}{end}`, `{..}`, `{.a[?(@.b=="c")]}`, `{.a[1:2:3]}`, `{['a','b']}`, "{end}", "{.a[-1]}", `{@}`,
		`{$}`, `{.a[0,1]}`,
	} {
		f.Add(seed)
	}
	o, err := Object(web())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		if template, err := ParseTemplate(text); err == nil {
			_, _ = template.Text(o)
		}
		if path, err := ParsePath(text); err == nil {
			_, _ = path.Values(o)
		}
	})
}

// TestGoTemplate checks templates with the functions of kubectl, and values that do not exist.
func TestGoTemplate(t *testing.T) {
	object, err := Object(map[string]any{"metadata": map[string]any{"name": "web"}, "items": []any{1, map[string]any{"a": "eA=="}}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"{{.metadata.name}}": "web", "{{.metadata.uid}}": "<no value>", "{{range .items}}<{{.}}>{{end}}": "<1><map[a:eA==]>",
		"{{(index .items 1).a | base64decode}}":                                                          "x",
		`{{exists . "items" 1 "a"}} {{exists . "items" 2}} {{exists . "items" "x"}} {{exists . "none"}}`: "true false false false",
	} {
		template, err := ParseGoTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := template.Text(object); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	if _, err := ParseGoTemplate("{{.a"); err == nil || !strings.Contains(err.Error(), `template "{{.a"`) {
		t.Error(err)
	}
	template, err := ParseGoTemplate("{{base64decode .metadata.name}}")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := template.Text(object); err == nil {
		t.Errorf("%q: text that is not base64 is no error", text)
	}
}

// TestGoTemplateAsGo compares texts and errors with those of package text/template.
func TestGoTemplateAsGo(t *testing.T) {
	object, err := Object(web())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`{{with $m := .metadata}}{{$m.name}} {{len $m}} {{printf "%-6s|%v|%q" $m.name $m $m.name}}{{else}}none{{end}}`,
		`{{range $key, $value := .}}{{$key}}={{$value}};{{break}}{{end}}{{range .none}}x{{else}}nothing{{end}}`,
		`{{if and (eq .status.phase "Running") (not .none) (or .metadata .status.phase)}}{{html "<a>"}}{{js "'"}}{{urlquery "a b"}}{{end}}`,
		`{{define "t"}}[{{.}}]{{end}}{{template "t" .status.phase}}{{block "b" .status.load}}({{.}}){{end}}`,
		`a {{- /* comment */ -}} b{{slice .status.phase 1 2}}`,
		`{{lt 1 2}} {{ge 1.5 1.0}} {{ne "a" "b"}} {{print 1 nil "a"}}{{println .none}}`,
		`{{.metadata.name.more}}`, `{{.status.phase.Method}}`, `{{index .metadata 1}}`, `{{len 3}}`, `{{call .status.phase}}`,
		`{{.status.phase 1}}`, `{{nil}}`, `{{end}}`, `{{none 1}}`,
	} {
		run := func(t interface{ Execute(io.Writer, any) error }, err error) (string, error) {
			var b strings.Builder
			if err == nil {
				err = t.Execute(&b, object)
			}
			return b.String(), err
		}
		want, wantErr := run(template.New("output").Parse(text))
		got, err := "", error(nil)
		parsed, err := ParseGoTemplate(text)
		if err == nil {
			got, err = parsed.Text(object)
		}
		if (err == nil) != (wantErr == nil) || err != nil && !strings.HasSuffix(err.Error(), wantErr.Error()) || err == nil && got != want {
			t.Errorf("%s: %q, %v; want %q, %v", text, got, err, want, wantErr)
		}
	}
}

// TestColumnsFile checks the two lines of a file with columns.
func TestColumnsFile(t *testing.T) {
	c, err := ParseColumnsFile("NAME   UID\n\nmetadata.name  .metadata.uid\n")
	if err != nil {
		t.Fatal(err)
	}
	row, err := c.Row(map[string]any{"metadata": map[string]any{"name": "web"}})
	if err != nil || strings.Join(c.Header, " ") != "NAME UID" || strings.Join(row, " ") != "web <none>" {
		t.Errorf("%q, %q, %v", c.Header, row, err)
	}
	for _, text := range []string{"", "NAME\n", "NAME\n.a .b\n", "NAME\n.a\n.b\n", "NAME\n{.a\n"} {
		if _, err := ParseColumnsFile(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
