package repo_test

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
)

func eventsPage() string {
	var b strings.Builder
	b.WriteString("# Events\n\n" +
		"`podstead events` shows the events of all pods, and `podstead events POD` those of one pod. This page lists all kinds of " +
		"events. It is\n" +
		"generated from the table in `api/event_table.go`. If the kubelet emits the same event, the reason is that of the\n" +
		"kubelet. `{field}` is a field of the event. Every event has the name of its pod and, if known, the number of the event that\n" +
		"caused it. The exit of a container that was stopped on request is Normal, whatever its exit code is.\n\n" +
		"| Kind | Type | Reason | Message |\n| --- | --- | --- | --- |\n")
	for _, e := range api.EventEntries() {
		b.WriteString("| `" + string(e.Kind) + "` | " + string(e.Level) + " | `" + e.Reason + "` | " + e.Sentence + " |\n")
	}
	return b.String()
}

// Examples of docs/reference/pod-file.md. podFilePage parses them.
const (
	examplePod = `restartPolicy = "OnFailure"
volumes.html = "./html"

[[containers]]
name = "web"
image = "nginx:1.27"
env.TZ = "UTC"
ports = [{ containerPort = 80, hostPort = 8080 }]
volumeMounts.html = "/usr/share/nginx/html"
`
	examplePods = `[[pods]]
name = "db"
volumes.pgdata = {}

[[pods.containers]]
name = "postgres"
image = "postgres:17"
secrets.db = "db.env"
volumeMounts.pgdata = "/var/lib/postgresql/data"
readinessProbe.exec = ["pg_isready"]

[[pods]]
name = "web"
waitFor = ["pod:db:ready"]

[[pods.containers]]
name = "nginx"
image = "nginx:1.27"
ports = ["8080:80"]
`
	exampleManifest = `apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  nodeSelector: {disk: ssd}
  containers:
  - name: web
    image: nginx:1.27
`
)

// podFilePage lists the fields of a pod file, from the types of package spec and their comments.
func podFilePage(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Pod file\n\n```console\n$ podstead validate web.toml\n" + validateOutput("web.toml", examplePod) +
		"$ podstead run web.toml\n```\n\n" +
		"A pod file describes one pod, or [several](#several-pods-in-one-file). This is `web.toml`:\n\n" +
		"```toml\n" + examplePod + "```\n\n" +
		"Errors have the file, the line, the column and the field, and often a hint:\n\n" +
		"```console\n$ podstead validate web.toml\n" + validateOutput("web.toml", strings.Replace(examplePod, "hostPort", "hostport", 1)) +
		"```\n\n" +
		"Names, meanings and defaults are those of the Pod API of Kubernetes " + spec.KubernetesVersion +
		". In TOML, the fields of `metadata` and `spec` are at the top\n" +
		"level. Some fields have a [short form](#short-forms), such as `env` and `volumeMounts` in the example. A field that Podstead " +
		"does not\nsupport is an error, except those that only a cluster needs, such as `nodeSelector`: they are ignored with a " +
		"warning.\n\n" +
		"## Several pods in one file\n\nEach table `[[pods]]` has all fields of a pod, and needs a `name`. Below it, headers begin with " +
		"`pods.`. This is `shop.toml`:\n\n" +
		"```toml\n" + examplePods + "```\n\n" +
		"```console\n$ podstead apply shop.toml --wait\npod/db created\npod/web created\n```\n\n" +
		"The pods are independent of each other. An error in one of them names its pod, such as `pods.web.containers[0].ports[0]`. " +
		"`apply`,\n`edit`, `delete` and rollbacks of one pod do not touch the others.\n" +
		"When `apply`, `edit` or `delete` changes one pod of a file in the pods directory that defines several, the daemon replaces\n" +
		"the file by one file for each remaining pod, such as `db.toml`. What no pod uses, such as a ConfigMap of a manifest, is not\n" +
		"in these files: keep a copy of the file in another directory. A file with `[[pods]]` has no other fields at " +
		"the top level.\nA pod with `[systemd]` needs a file of its own.\n\n" +
		"## Manifests in YAML and JSON\n\n" +
		"A file with the extension `.yaml`, `.yml` or `.json` has Kubernetes objects, such as `web.yaml` with one Pod:\n\n" +
		"```yaml\n" + exampleManifest + "```\n\n" +
		"```console\n$ podstead validate web.yaml\n" + validateOutput("web.yaml", exampleManifest) + "```\n\n" +
		"All fields below can be set in a manifest too. `name`, `labels` and `annotations` are in `metadata`, everything else is in " +
		"`spec`.\n\n" + manifestsText(t) + shortFormsSection() +
		"## Fields\n\nThis part is generated from the types of package `spec`.\n")
	p := specTypes(t)
	for _, name := range p.order("Pod") {
		p.section(t, &b, name)
	}
	b.WriteString(changesSection())
	return b.String()
}

// shortFormsSection lists the short forms of fields with their long forms.
func shortFormsSection() string {
	var b strings.Builder
	b.WriteString("## Short forms\n\n" +
		"In TOML, a value of one of these forms stands for a table that has one obvious meaning. Each short form has exactly one long " +
		"form, the\nnotation of the Pod API, and both define the same pod. `podstead explain FIELD` shows both, `podstead convert FILE` " +
		"writes the long\nforms, and `podstead convert --short FILE` the short ones. Manifests in YAML and JSON have the long forms " +
		"only.\n\n" +
		"| Field | Short form | Long form |\n| --- | --- | --- |\n")
	cell := func(text string) string {
		var lines []string
		for line := range strings.SplitSeq(text, "\n") {
			lines = append(lines, strings.TrimSpace(line))
		}
		joined := strings.NewReplacer("[ {", "[{", "}, ]", "}]").Replace(strings.Join(lines, " "))
		if !strings.Contains(text, "\n  ") { // lines of their own
			joined = strings.Join(lines, "`<br>`")
		}
		return "`" + joined + "`"
	}
	for _, form := range spec.ShortForms {
		b.WriteString("| `" + form.Field + "` | " + cell(form.Short) + " | " + cell(form.Long) + " |\n")
	}
	b.WriteString("\n")
	for _, form := range spec.ShortForms {
		if form.Description != "" {
			b.WriteString("- `" + form.Field + "`: " + form.Description + "\n")
		}
	}
	b.WriteString("\n`readinessProbe` and `startupProbe` have the forms of `livenessProbe`, `postStart` those of `preStop`, and " +
		"`initContainers` those of\n`containers`.\n\n")
	return b.String()
}

// fieldsText lists the fields for spec.Explain, as the page does.
func fieldsText(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	p := specTypes(t)
	link := regexp.MustCompile(`\[([A-Za-z]+)\]\([^)]*\)`)
	plain := func(text string) string { return strings.ReplaceAll(link.ReplaceAllString(text, "$1"), "`", "") }
	for _, name := range p.order("Pod") {
		intro, _, _ := strings.Cut(p.docs[name], "\n\n")
		b.WriteString(name + "\t\t\t" + plain(withoutGoNames(intro)) + "\n")
		for _, field := range p.fields(name) {
			doc := plain(withoutGoNames(field.Doc.Text()))
			b.WriteString(name + "\t" + jsonName(field) + "\t" + plain(p.valueOf(field.Type)) + "\t" + doc + "\n")
		}
	}
	return b.String()
}

// manifestsText is what becomes of the objects of manifests.
func manifestsText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("test/repo/testdata/manifests.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// effects describe the effects of changes.
var effects = map[change.Effect]string{
	change.InPlace:          "in place",
	change.NextRound:        "at the next start of the pod",
	change.RestartContainer: "restarts the container",
	change.RestartPod:       "restarts the pod",
	change.ReplacePod:       "replaces the pod",
}

// changesSection lists the effects of changes of fields, from the table of package change.
func changesSection() string {
	var b strings.Builder
	b.WriteString("\n## Changes of a running pod\n\n" +
		"A changed pod file is compared with the running pod field by field, and the least is done. The values count, not the notation: " +
		"comments,\n" +
		"the order of volumes, or a relative path that becomes absolute are no changes. A field without a row has the effect of its " +
		"table.\n\n" +
		"- *In place*: nothing stops.\n" +
		"- *At the next start of the pod*: nothing stops, and the change is used when all containers start again. A change that would " +
		"restart a\n" +
		"  container has this effect on an init container, unless it is a sidecar.\n" +
		"- *Restarts the container*: the container stops with its preStop hook and grace period, and starts again, whatever its restart " +
		"policy. The\n" +
		"  other containers keep running.\n" +
		"- *Restarts the pod*: all containers stop with their preStop hooks and grace periods, and the pod starts again in a new\n" +
		"  sandbox. It keeps its UID and the data of its `emptyDir` volumes. That of a removed volume is kept until the pod is deleted.\n" +
		"- *Replaces the pod*: all containers stop, then a pod with another UID starts. The data of `emptyDir` volumes is deleted.\n\n" +
		"A pod that has completed or failed runs again as a whole after a change that restarts a container. One that was stopped stays\n" +
		"stopped.\n\n" +
		"| Field | Effect of a change | Reason |\n| --- | --- | --- |\n")
	for _, r := range change.Rows() {
		effect, why := effects[r.Effect], r.Why
		if r.If != "" {
			effect += ", or " + effects[r.Larger]
			why += " *" + strings.ToUpper(effects[r.Larger][:1]) + effects[r.Larger][1:] + "*: " + strings.ToLower(r.If[:1]) + r.If[1:]
		}
		b.WriteString("| `" + r.Field + "` | " + effect + " | " + why + " |\n")
	}
	return b.String()
}

// validateOutput returns what podstead validate prints for a file.
func validateOutput(file, text string) string {
	parts, problems := spec.Options{}.ParseParts(file, []byte(text))
	return validated(file, parts, problems)
}

// validated returns the output of podstead validate for a file that was read.
func validated(file string, parts []spec.Part, problems spec.Problems) string {
	var b strings.Builder
	failed := false
	for _, p := range problems {
		failed = failed || !p.Warning
		b.WriteString(p.String())
		switch {
		case p.Warning && p.Code != "":
			b.WriteString(" (warning: " + p.Code + ")")
		case p.Warning:
			b.WriteString(" (warning)")
		case p.Code != "":
			b.WriteString(" (" + p.Code + ")")
		}
		b.WriteString("\n")
		if p.Hint != "" {
			b.WriteString("hint: " + p.Hint + "\n")
		}
	}
	var names []string
	for i := range parts {
		names = append(names, parts[i].Name)
	}
	if !failed && len(names) > 1 {
		b.WriteString(file + ": ok (pods " + strings.Join(names, ", ") + ")\n")
	} else if !failed {
		b.WriteString(file + ": ok\n")
	}
	return b.String()
}

// specTypes returns the types of package spec.
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

// typePage has the declarations for the page.
type typePage struct {
	types  map[string]*ast.TypeSpec
	docs   map[string]string   // by type
	values map[string][]string // of string types with named constants
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
		lit, isLiteral := value.(*ast.BasicLit)
		if id, ok := s.Type.(*ast.Ident); ok && isLiteral && s.Names[i].IsExported() {
			p.values[id.Name] = append(p.values[id.Name], strings.Trim(lit.Value, `"`))
		}
	}
}

// order returns a struct and every struct that it contains, in the order of their first use.
func (p *typePage) order(first string) []string {
	ordered := []string{first}
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

// fields returns the fields that a file can set.
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

func (p *typePage) section(t *testing.T, b *strings.Builder, name string) {
	t.Helper()
	intro, _, _ := strings.Cut(p.docs[name], "\n\n")
	b.WriteString("\n### " + name + "\n\n" + withoutGoNames(intro) + "\n\n| Field | Type | Description |\n| --- | --- | --- |\n")
	for _, field := range p.fields(name) {
		doc := withoutGoNames(field.Doc.Text())
		if doc == "" {
			t.Errorf("spec: field %s of %s has no comment: write its description, default and allowed values", field.Names[0].Name, name)
		}
		b.WriteString("| `" + jsonName(field) + "` | " + p.valueOf(field.Type) + " | " + strings.ReplaceAll(doc, "|", `\|`) + " |\n")
	}
}

var goName = regexp.MustCompile(`\[[A-Z][A-Za-z.]*\]`)

// withoutGoNames joins the lines of a Go comment and removes the sentences with Go names in brackets, which are for programmers.
func withoutGoNames(doc string) string {
	var kept []string
	for sentence := range strings.SplitAfterSeq(strings.Join(strings.Fields(doc), " "), ". ") {
		if !goName.MatchString(sentence) {
			kept = append(kept, strings.TrimSpace(sentence))
		}
	}
	return strings.Join(kept, " ")
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
		return "list of " + plural(p.valueOf(e.Elt))
	case *ast.MapType:
		return "table of " + plural(p.valueOf(e.Value))
	case *ast.Ident:
		return p.named(e.Name)
	}
	return ""
}

func plural(name string) string {
	switch name {
	case "string", "number":
		return name + "s"
	case "quantity":
		return "quantities"
	}
	return name
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
		return "boolean"
	case strings.HasPrefix(name, "int"), name == "float64":
		return "number"
	case name == "Port":
		return "number or string"
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
