package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// imageAndDiskSources are the files whose errors reach the users of the commands for images, bundles, registries, logs and the disk.
var imageAndDiskSources = []string{
	"image*.go", "login.go", "bundle*.go", "system.go", "logs.go", "internal/follow/logs.go",
	"../../internal/bundle/*.go", "../../internal/daemon/bundleundo/*.go", "../../internal/daemon/diskusage/*.go",
	"../../internal/daemon/image*/*.go",
	"../../runtime/image/*.go", "../../runtime/image/*/*.go", "../../runtime/log*.go",
}

// goTests are the tests that run the binary without a script, and what they expect.
var goTests = []string{"*_e2e_test.go", "../../test/faults/*_test.go", "../../test/hostile/*_test.go", "../../test/ocitar/attack.go"}

// TestErrorsInScripts checks that a script, which runs the binary, or a test in Go that does expects every error, note and hint of the
// commands for images, bundles, registries, logs and the disk.
func TestErrorsInScripts(t *testing.T) {
	expected := regexp.MustCompile(`(?m)^(stderr|stdout|exec sh) .*`)
	text := strings.Join(slices.Concat(expected.FindAllString(filesOf(t, "testdata/*/*.txtar")[""], -1), expectationsOf(t, goTests)), "\n")
	text = strings.ReplaceAll(text, `\`, "")
	for _, message := range messagesOf(t, imageAndDiskSources) {
		if !regexp.MustCompile(messagePattern(message)).MatchString(text) {
			t.Errorf("no test that runs the binary expects %q", message)
		}
	}
}

// verb matches a verb of fmt.
var verb = regexp.MustCompile(`%[-+#0-9.]*[a-zA-Z]`)

// messagePattern returns a pattern for the text of a message, whose verbs stand for any text in the line. What is before its first word is
// left out.
func messagePattern(format string) string {
	parts := verb.Split(format, -1)
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return strings.TrimLeft(strings.Join(parts, ".*"), ".* :,")
}

// expectationsOf returns the texts in the code of tests, without those that a failed test prints.
func expectationsOf(t *testing.T, patterns []string) (texts []string) {
	t.Helper()
	printed := []string{"fmt.Errorf", "errors.New", "Error", "Errorf", "Fatal", "Fatalf", "Log", "Logf", "Until"}
	for _, file := range parsed(t, patterns) {
		var skip []ast.Expr
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if slices.Contains(printed, calledName(n.Fun)) {
					skip = n.Args
				}
			case *ast.BasicLit:
				if n.Kind == token.STRING && !slices.Contains(skip, ast.Expr(n)) {
					texts = append(texts, unquoted(t, n))
				}
			}
			return true
		})
	}
	return texts
}

// brokenText is where a text goes on in the next line.
var brokenText = regexp.MustCompile("\" \\+\n\t*\"|` \\+\n\t*`")

// parsed returns the files that match patterns, of which each must match one. Their texts are not broken into lines.
func parsed(t *testing.T, patterns []string) (files []*ast.File) {
	t.Helper()
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatal(pattern, err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(pattern, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text = brokenText.ReplaceAll(text, nil)
			file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
	}
	return files
}

func unquoted(t *testing.T, lit *ast.BasicLit) string {
	t.Helper()
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// messagesOf returns the formats of errors, notes and hints in files, without those that have no word of their own.
func messagesOf(t *testing.T, patterns []string) []string {
	t.Helper()
	var found []string
	add := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text := unquoted(t, lit); strings.Contains(text, " ") {
					found = append(found, text)
				}
			}
			return true
		})
	}
	for _, file := range parsed(t, patterns) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if slices.Contains([]string{"fmt.Errorf", "errors.New", "usage", "exceeds", "note", "Refuse", "refuse", "refusal"},
					calledName(n.Fun)) {
					for _, arg := range n.Args {
						if lit, ok := arg.(*ast.BasicLit); ok {
							add(lit)
							break
						}
					}
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && slices.Contains([]string{"Message", "Hint", "Cause", "hints"}, key.Name) {
					add(n.Value)
				}
			case *ast.AssignStmt:
				if field, ok := n.Lhs[0].(*ast.SelectorExpr); ok && field.Sel.Name == "Hint" {
					add(n.Rhs[0])
				}
			}
			return true
		})
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// calledName returns the name of a function, with that of its package for fmt and errors.
func calledName(fun ast.Expr) string {
	switch fun := fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		if pkg, ok := fun.X.(*ast.Ident); ok && (pkg.Name == "fmt" || pkg.Name == "errors") {
			return pkg.Name + "." + fun.Sel.Name
		}
		return fun.Sel.Name
	}
	return ""
}
