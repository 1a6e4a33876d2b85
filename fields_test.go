package podstead_test

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
)

// TestFields: docs/fields.md names, for each field of a pod file, a test that sees it work in a real container, or says that the
// field is refused.
//
// A test says what it proves in lines of its doc comment, a testscript in comments above its first file:
//
//	fields: name, containers[].env[].{name,value}
//
// The page is written anew by
//
//	go test -run TestFields -update .
func TestFields(t *testing.T) {
	fields, proofs := fieldsOf(t), proofsOf(t)
	for _, problem := range fieldProblems(fields, proofs) {
		t.Error(problem)
	}
	const name = "docs/fields.md"
	want := fieldsPage(fields, proofs, machineTests(t))
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, readFile(t, name)); diff != "" {
		t.Errorf("%s is not what the tests say (go test -run TestFields -update . writes it):\n%s", name, diff)
	}
}

// podField is a field of a pod file that holds a value, or one that is refused with all that is in it.
type podField struct {
	path    string // such as "containers[].env[].name"
	refused bool
}

// neverAllowed are the fields that have a place in the types and none in a pod, each with a pod file that says so.
var neverAllowed = map[string]string{
	"containers[].readinessProbe.terminationGracePeriodSeconds": "[[containers]]\nname = \"c\"\nimage = \"i:1\"\n" +
		"readinessProbe = { exec = { command = [\"true\"] }, terminationGracePeriodSeconds = 1 }\n",
}

// TestNeverAllowed: what the page calls refused because it has no place in a pod is refused.
func TestNeverAllowed(t *testing.T) {
	for field, text := range neverAllowed {
		name := field[strings.LastIndex(field, ".")+1:]
		problemAt := func(text string) bool {
			_, problems := spec.Parse("pod.toml", []byte(text))
			return slices.ContainsFunc(problems, func(p spec.Problem) bool { return !p.Warning && strings.HasSuffix(p.Path, name) })
		}
		if !problemAt(text) {
			t.Errorf("%s is not refused", field)
		}
	}
}

// proof is a test on real containers.
type proof struct {
	name, file string
	fields     []string
}

// fieldsOf lists the fields in the order of the reference. Init containers have those of containers.
func fieldsOf(t *testing.T) []podField {
	t.Helper()
	p := specTypes(t)
	refused := map[string]bool{}
	for _, line := range p.unsupported {
		field, _, _ := strings.Cut(line, "=")
		refused[field] = true
	}
	for field := range neverAllowed {
		refused[field] = true
	}
	var fields []podField
	var walk func(structure, prefix string)
	walk = func(structure, prefix string) {
		for _, field := range p.fields(structure) {
			at := prefix + jsonName(field)
			inside := elementName(field.Type)
			if refused[at] || !p.isStruct(inside) || at == "initContainers" {
				fields = append(fields, podField{at, refused[at]})
				continue
			}
			if _, list := field.Type.(*ast.ArrayType); list {
				at += "[]"
			}
			walk(inside, at+".")
		}
	}
	walk("Pod", "")
	for line := range refused {
		if !slices.Contains(fields, podField{line, true}) {
			t.Errorf("%s is no field, or is in one that is refused", line)
		}
	}
	return fields
}

// proofsOf are the tests on real containers that say what they prove, in the order of their files.
func proofsOf(t *testing.T) []proof {
	t.Helper()
	var proofs []proof
	add := func(p proof, lines []string) {
		p.fields = provedBy(lines)
		if len(p.fields) > 0 {
			proofs = append(proofs, p)
		}
	}
	for _, s := range goFiles(t) {
		if !s.isTest || !s.isE2E {
			continue
		}
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			lines := strings.Split(f.Doc.Text(), "\n")
			if f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
				if len(provedBy(lines)) > 0 {
					t.Errorf("%s: %s says what fields it proves, and is no test", s.path, f.Name.Name)
				}
				continue
			}
			add(proof{name: f.Name.Name, file: s.path}, lines)
		}
	}
	scripts, err := filepath.Glob("cmd/podstead/testdata/e2e/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("testscripts: %v, %v", scripts, err)
	}
	for _, script := range scripts {
		text, _, _ := strings.Cut(readFile(t, script), "\n-- ")
		var comments []string
		for line := range strings.SplitSeq(text, "\n") {
			if comment, ok := strings.CutPrefix(line, "# "); ok {
				comments = append(comments, comment)
			}
		}
		file := filepath.ToSlash(script)
		add(proof{name: path.Base(file), file: file}, comments)
	}
	return proofs
}

// provedBy reads the lines of a comment that name fields.
func provedBy(comment []string) []string {
	var fields []string
	for _, line := range comment {
		list, ok := strings.CutPrefix(line, "fields: ")
		if !ok {
			continue
		}
		for _, pattern := range regexp.MustCompile(`(\{[^{} ]*\}|[^ ,])+`).FindAllString(list, -1) {
			fields = append(fields, expandBraces(pattern)...)
		}
	}
	return fields
}

var braces = regexp.MustCompile(`\{([^{}]*)\}`)

// expandBraces writes a.{b,c} out as a.b and a.c, as a shell does.
func expandBraces(pattern string) []string {
	at := braces.FindStringSubmatchIndex(pattern)
	if at == nil {
		return []string{pattern}
	}
	var out []string
	for choice := range strings.SplitSeq(pattern[at[2]:at[3]], ",") {
		out = append(out, expandBraces(pattern[:at[0]]+choice+pattern[at[1]:])...)
	}
	return out
}

// fieldProblems are the fields of which the page would tell nothing, and the proofs of what is no field.
func fieldProblems(fields []podField, proofs []proof) []string {
	var problems []string
	proved := map[string]bool{}
	for _, p := range proofs {
		for _, name := range p.fields {
			proved[name] = true
			if problem := proofProblem(fields, name); problem != "" {
				problems = append(problems, p.name+" proves "+name+", which "+problem)
			}
		}
	}
	for _, f := range fields {
		if !f.refused && !proved[f.path] {
			problems = append(problems, fmt.Sprintf("no test on real containers proves %s, and spec/unsupported.go does not refuse it: "+
				`let one see it work, with "fields: %s" in its doc comment`, f.path, f.path))
		}
	}
	return problems
}

// proofProblem says what is wrong with a name in a proof.
func proofProblem(fields []podField, name string) string {
	isIn := func(name, table string) bool {
		return strings.HasPrefix(name, table+".") || strings.HasPrefix(name, table+"[].")
	}
	for _, f := range fields {
		switch {
		case f.refused && (name == f.path || isIn(name, f.path)):
			return "is refused: " + f.path
		case name == f.path:
			return ""
		case isIn(f.path, name):
			return "is a table: name the fields in it that the test sees work, such as " + f.path
		}
	}
	return "is no field of a pod file"
}

// machineTests are the tests of runtime that test/vm runs once more in its machine, each of which must exist.
func machineTests(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, s := range goFiles(t) {
		if !s.isE2E || s.dir != "runtime" {
			continue
		}
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				all = append(all, f.Name.Name)
			}
		}
	}
	const list = "test/vm/runtime_test.go"
	inMachine := regexp.MustCompile(`\bTest\w+`).FindAllString(strings.Join(regexp.MustCompile(`"[^"]*"`).FindAllString(readFile(t, list), -1), " "), -1)
	if len(inMachine) == 0 {
		t.Errorf("%s names no test", list)
	}
	for _, name := range inMachine {
		if !slices.Contains(all, name) {
			t.Errorf("%s names %s, which is no test of runtime", list, name)
		}
	}
	return inMachine
}

func fieldsPage(fields []podField, proofs []proof, inMachine []string) string {
	var b strings.Builder
	b.WriteString("# The fields of a pod file, and what proves them\n\n" +
		"Made from the types of package `spec` and from the tests that run real containers: each field has at least one that sees it work,\n" +
		"from inside of a container wherever it can be seen there. What is not supported yet is refused with an error, never ignored.\n" +
		"[The pod file](reference/pod-file.md) says what the fields mean. Init containers have the fields of containers.\n\n" +
		"The tests run where they are started, which is mostly cgroup v1. Those with **v2** are run once more in [a machine](testing.md#a-machine-of-its-own)\n" +
		"with cgroup v2 and nothing else.\n\n" +
		"| field | proved by |\n| --- | --- |\n")
	for _, f := range fields {
		var by []string
		if f.refused {
			by = []string{"*refused*, with all that is in it"}
		}
		for _, p := range proofs {
			if slices.Contains(p.fields, f.path) {
				link := fmt.Sprintf("[%s](../%s)", p.name, p.file)
				if path.Dir(p.file) == "runtime" && slices.Contains(inMachine, p.name) {
					link += " **v2**"
				}
				by = append(by, link)
			}
		}
		b.WriteString("| `" + f.path + "` | " + strings.Join(by, ", ") + " |\n")
	}
	return b.String()
}

// TestFieldProblems: a proof that proves nothing is found, and so is a field that nobody proves.
func TestFieldProblems(t *testing.T) {
	fields := []podField{{"name", false}, {"containers[].env[].name", false}, {"containers[].env[].value", false}, {"resources", true}}
	for _, test := range []struct {
		comment string
		want    []string // the beginnings of the problems
	}{
		{"fields: name, containers[].env[].{name,value}", nil},
		{"fields: name containers[].env[].name", []string{"no test on real containers proves containers[].env[].value,"}},
		{"proves fields: name", []string{
			"no test on real containers proves name,", "no test on real containers proves containers[].env[].name,",
			"no test on real containers proves containers[].env[].value,",
		}},
		{"fields: {name,names},containers[].{env[].name,env[].value}", []string{"TestX proves names, which is no field"}},
		{"fields: name, containers[].env, containers[].env[].{name,value}", []string{"TestX proves containers[].env, which is a table:"}},
		{"fields: name, containers[].env[].{name,value}, resources", []string{"TestX proves resources, which is refused"}},
		{"fields: name, containers[].env[].{name,value}, resources.limits", []string{"TestX proves resources.limits, which is refused"}},
		{"fields: name, containers[].env[].{name,value}{", []string{
			"TestX proves containers[].env[].name{,", "TestX proves containers[].env[].value{,",
			"no test on real containers proves containers[].env[].name,", "no test on real containers proves containers[].env[].value,",
		}},
	} {
		got := fieldProblems(fields, []proof{{name: "TestX", fields: provedBy([]string{"TestX: why.", test.comment})}})
		if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
			t.Errorf("%s: problems %q, want %q", test.comment, got, test.want)
		}
	}
}
