package repo_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
)

// TestFields checks that every field of a pod file is covered by a test on real containers or is never allowed.
// docs/fields.md lists the tests.
//
// A test lists the fields that it covers in its doc comment, a testscript in a comment above its first file:
//
//	fields: name, containers[].env[].{name,value}
//
// This updates the page:
//
//	go test ./test/repo -run TestFields -update
func TestFields(t *testing.T) {
	fields, tests := fieldsOf(t), coverageOf(t)
	for _, problem := range fieldProblems(fields, tests) {
		t.Error(problem)
	}
	const name = "docs/fields.md"
	want := fieldsPage(fields, tests, vmTests(t))
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, readFile(t, name)); diff != "" {
		t.Errorf("%s is not up to date, run go test ./test/repo -run TestFields -update (-want +got):\n%s", name, diff)
	}
}

// podField is a field of a pod file with a value, or a rejected field with everything in it.
type podField struct {
	path     string // such as "containers[].env[].name"
	rejected bool
}

// neverAllowed are fields of the types that are not valid anywhere in a pod, each with a pod file that sets it.
var neverAllowed = map[string]string{
	"containers[].readinessProbe.terminationGracePeriodSeconds": "[[containers]]\nname = \"c\"\nimage = \"i:1\"\n" +
		"readinessProbe = { exec = { command = [\"true\"] }, terminationGracePeriodSeconds = 1 }\n",
}

// TestNeverAllowed checks that the fields of neverAllowed are rejected.
func TestNeverAllowed(t *testing.T) {
	for field, text := range neverAllowed {
		name := field[strings.LastIndex(field, ".")+1:]
		problemAt := func(text string) bool {
			_, problems := spec.Parse("pod.toml", []byte(text))
			return slices.ContainsFunc(problems, func(p spec.Problem) bool { return !p.Warning && strings.HasSuffix(p.Path, name) })
		}
		if !problemAt(text) {
			t.Errorf("%s is not rejected", field)
		}
	}
}

// coverage is a test on real containers with the fields that it covers.
type coverage struct {
	name, file string
	fields     []string
}

// fieldsOf lists the fields in the order of the reference. Init containers have the fields of containers.
func fieldsOf(t *testing.T) []podField {
	t.Helper()
	p := specTypes(t)
	rejected := map[string]bool{}
	for field := range neverAllowed {
		rejected[field] = true
	}
	var fields []podField
	var walk func(structure, prefix string)
	walk = func(structure, prefix string) {
		for _, field := range p.fields(structure) {
			at := prefix + jsonName(field)
			inside := elementName(field.Type)
			if rejected[at] || !p.isStruct(inside) || at == "initContainers" {
				fields = append(fields, podField{at, rejected[at]})
				continue
			}
			if _, list := field.Type.(*ast.ArrayType); list {
				at += "[]"
			}
			walk(inside, at+".")
		}
	}
	walk("Pod", "")
	for line := range rejected {
		if !slices.Contains(fields, podField{line, true}) {
			t.Errorf("%s is not a field, or is in a rejected field", line)
		}
	}
	return fields
}

// coverageOf returns the tests on real containers that list fields, in the order of their files.
func coverageOf(t *testing.T) []coverage {
	t.Helper()
	var tests []coverage
	add := func(c coverage, comment []string) {
		c.fields = coveredBy(comment)
		if len(c.fields) > 0 {
			tests = append(tests, c)
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
				if len(coveredBy(lines)) > 0 {
					t.Errorf("%s: %s lists fields, but is not a test", s.path, f.Name.Name)
				}
				continue
			}
			add(coverage{name: f.Name.Name, file: s.path}, lines)
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
		add(coverage{name: path.Base(file), file: file}, comments)
	}
	return tests
}

// coveredBy returns the fields in the lines of a comment that begin with "fields: ".
func coveredBy(comment []string) []string {
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

// expandBraces expands a.{b,c} to a.b and a.c.
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

// fieldProblems returns the fields that no test covers, and the entries of tests that are not fields.
func fieldProblems(fields []podField, tests []coverage) []string {
	var problems []string
	covered := map[string]bool{}
	for _, c := range tests {
		for _, name := range c.fields {
			covered[name] = true
			if problem := entryProblem(fields, name); problem != "" {
				problems = append(problems, c.name+" covers "+name+", which "+problem)
			}
		}
	}
	for _, f := range fields {
		if !f.rejected && !covered[f.path] {
			problems = append(problems, fmt.Sprintf("no test on real containers covers %s, and it is not in neverAllowed: "+
				`add a test with "fields: %s" in its doc comment`, f.path, f.path))
		}
	}
	return problems
}

// entryProblem returns why a name is not an entry of a list of covered fields, or "".
func entryProblem(fields []podField, name string) string {
	isIn := func(name, table string) bool {
		return strings.HasPrefix(name, table+".") || strings.HasPrefix(name, table+"[].")
	}
	for _, f := range fields {
		switch {
		case f.rejected && (name == f.path || isIn(name, f.path)):
			return "is rejected: " + f.path
		case name == f.path:
			return ""
		case isIn(f.path, name):
			return "is a table: list the fields in it that the test covers, such as " + f.path
		}
	}
	return "is not a field of a pod file"
}

// vmTests returns the tests of runtime that test/vm runs in its virtual machine. Each of them must exist.
func vmTests(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, s := range goFiles(t) {
		if !s.isE2E || !within(s.dir, "runtime") {
			continue
		}
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				all = append(all, f.Name.Name)
			}
		}
	}
	inVM := testsInStrings(t, "test/vm")
	if len(inVM) == 0 {
		t.Error("test/vm lists no tests")
	}
	for _, name := range inVM {
		if !slices.Contains(all, name) {
			t.Errorf("test/vm lists %s, which is not a test of runtime", name)
		}
	}
	return inVM
}

// testsInStrings returns the names of tests in the strings of a package that contain nothing else.
func testsInStrings(t *testing.T, dir string) []string {
	t.Helper()
	onlyTests := regexp.MustCompile(`^( ?Test\w+)+ ?$`)
	var names []string
	for _, s := range goFiles(t) {
		if s.dir != dir {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && onlyTests.MatchString(text) {
					names = append(names, strings.Fields(text)...)
				}
			}
			return true
		})
	}
	return names
}

func fieldsPage(fields []podField, tests []coverage, inVM []string) string {
	var b strings.Builder
	b.WriteString("# Test coverage of fields\n\n`go test ./test/repo -run TestFields -update` generates this page from the types of " +
		"package `spec` and the tests on real containers. Each\n" +
		"supported field has at least one test that observes its effect, if possible from inside the container. Fields that are not " +
		"supported\n" +
		"are rejected with an error, never ignored. [Pod file](reference/pod-file.md) describes the fields. Init containers have the " +
		"fields of\n" +
		"containers.\n\n" +
		"The tests use the cgroup version of the host that they run on. Those with **v2** also run in [a virtual " +
		"machine](testing.md#virtual-machine)\n" +
		"with cgroup v2 only.\n\n" +
		"| Field | Tests |\n| --- | --- |\n")
	for _, f := range fields {
		var by []string
		if f.rejected {
			by = []string{"*rejected*, with everything in it"}
		}
		for _, p := range tests {
			if slices.Contains(p.fields, f.path) {
				link := fmt.Sprintf("[%s](../%s)", p.name, p.file)
				if within(path.Dir(p.file), "runtime") && slices.Contains(inVM, p.name) {
					link += " **v2**"
				}
				by = append(by, link)
			}
		}
		b.WriteString("| `" + f.path + "` | " + strings.Join(by, ", ") + " |\n")
	}
	return b.String()
}

// TestFieldProblems checks that fields without tests and wrong entries of tests are reported.
func TestFieldProblems(t *testing.T) {
	fields := []podField{{"name", false}, {"containers[].env[].name", false}, {"containers[].env[].value", false}, {"resources", true}}
	for _, test := range []struct {
		comment string
		want    []string // prefixes of the problems
	}{
		{"fields: name, containers[].env[].{name,value}", nil},
		{"fields: name containers[].env[].name", []string{"no test on real containers covers containers[].env[].value,"}},
		{"covers fields: name", []string{
			"no test on real containers covers name,", "no test on real containers covers containers[].env[].name,",
			"no test on real containers covers containers[].env[].value,",
		}},
		{"fields: {name,names},containers[].{env[].name,env[].value}", []string{"TestX covers names, which is not a field"}},
		{"fields: name, containers[].env, containers[].env[].{name,value}", []string{"TestX covers containers[].env, which is a table:"}},
		{"fields: name, containers[].env[].{name,value}, resources", []string{"TestX covers resources, which is rejected"}},
		{"fields: name, containers[].env[].{name,value}, resources.limits", []string{"TestX covers resources.limits, which is rejected"}},
		{"fields: name, containers[].env[].{name,value}{", []string{
			"TestX covers containers[].env[].name{,", "TestX covers containers[].env[].value{,",
			"no test on real containers covers containers[].env[].name,", "no test on real containers covers containers[].env[].value,",
		}},
	} {
		got := fieldProblems(fields, []coverage{{name: "TestX", fields: coveredBy([]string{"TestX: why.", test.comment})}})
		if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
			t.Errorf("%s: problems %q, want %q", test.comment, got, test.want)
		}
	}
}
