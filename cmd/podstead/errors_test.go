package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// imageAndDiskSources are the files whose errors reach the users of the commands for images, bundles, registries, logs and the disk.
var imageAndDiskSources = []string{
	"image*.go", "login.go", "bundle*.go", "system.go", "logs.go", "debug_image.go", "internal/imagefile/*.go", "internal/logs/*.go", "internal/imagegc/*.go",
	"internal/images/*.go", "internal/podbundle/*.go", "internal/bundleundo/*.go", "internal/diskusage/*.go", "internal/imagedirs/*.go",
	"../../runtime/image/*.go", "../../runtime/image/*/*.go", "../../runtime/logbound/*.go",
}

// goTests are the tests that run the binary without a script, and what they expect.
var goTests = []string{"*_e2e_test.go", "../../test/faults/*_test.go", "../../test/hostile/*_test.go", "../../test/ocitar/attack.go"}

// TestErrorsInScripts checks that a script, which runs the binary, or a test in Go that does expects every error, note and hint of the commands for images,
// bundles, registries, logs and the disk, or that untestedErrors has the reason why none can.
func TestErrorsInScripts(t *testing.T) {
	expected := regexp.MustCompile(`(?m)^(stderr|stdout|exec sh) .*`)
	text := strings.Join(slices.Concat(expected.FindAllString(filesOf(t, "testdata/*/*.txtar")[""], -1), expectationsOf(t, goTests)), "\n")
	text = strings.ReplaceAll(text, `\`, "")
	messages, untested := messagesOf(t, imageAndDiskSources), slices.Concat(slices.Collect(maps.Values(untestedErrors))...)
	for _, message := range messages {
		found, excused := regexp.MustCompile(messagePattern(message)).MatchString(text), slices.Contains(untested, message)
		switch {
		case !found && !excused:
			t.Errorf("no test that runs the binary expects %q", message)
		case found && excused:
			t.Errorf("a test that runs the binary expects %q: remove it from untestedErrors", message)
		}
	}
	for _, message := range untested {
		if !slices.Contains(messages, message) {
			t.Errorf("untestedErrors has %q, which is no error of the sources", message)
		}
	}
}

// verb matches a verb of fmt.
var verb = regexp.MustCompile(`%[-+#0-9.]*[a-zA-Z]`)

// messagePattern returns a pattern for the text of a message, whose verbs stand for any text in the line. What is before its first word is left out.
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

// parsed returns the files that match patterns, of which each must match one.
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
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
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
				if slices.Contains([]string{"fmt.Errorf", "errors.New", "usage", "exceeds", "note", "Refuse", "refuse", "refusal"}, calledName(n.Fun)) {
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

// untestedErrors are the errors that no test causes by running the binary, by the reason. Most of them have unit tests.
var untestedErrors = map[string][]string{
	"it takes 30 seconds or longer": {
		"another bundle is being applied", "bundle %q was interrupted, and the daemon has not undone it",
		"read the log of the daemon. Remove ", " to keep what that bundle has changed", "credential helper %s %s: no answer within %v",
		"registry is too slow: %d bytes in %v, want at least %d bytes per second", "the registry did not deliver the signatures within %v",
	},
	"two commands must meet at the same moment": {
		"pull image %q: it was removed again", "the bundle has changed",
		"image %q was changed, and is not restored; before, it was %s. Import that image again, or apply the bundle that has it",
		"the daemon is stopping", "image store is closed", "rollout of pod %q: timed out after %v",
	},
	"no tool writes such signatures": {
		"signature is malformed: %s does not match its digest", "bundle is malformed: it has more than %d bytes", "fetch %s: %w", "fetch signatures of %s: %w",
		"manifest of a signature is malformed: %v", "manifest of a signature has %d layers, the limit is %d",
		"signature is malformed: %s has %d bytes, the limit is %d", "signature is malformed: %s is not in the archive",
		"signature is malformed: digest %q: %v", "signature is malformed: its payload has more than %d bytes",
		"signatures have more than %d bytes", "the archive has more than %d manifests without a name",
		"the image has more than %d signatures", "the list of files and signatures has more than %d bytes",
	},
	"the digests of two images must start with the same 12 digits: TestIDs": {
		"image %q is ambiguous: %s", "use more digits, or a name",
	},
	"a bundle must fail, and the host must change meanwhile": {
		"pod %q: it existed without a file, and is that of the bundle now", "restore %s: %w", "restore image %q: %w",
		"restore the file of pod %q: %w", "restore: %w", "the daemon undoes the bundle",
	},
	"the archive of a bundle must be wrong: TestHostileBundles, TestTruncated": {
		"image %q is not in the manifest", "not a bundle, or damaged: %w",
	},
	"the pod must be unknown to the daemon: TestPruneVolumesOfUndefinedPod": {
		", or delete the pod", "see the reason with podstead why ", "the definition of pod %q is not known",
	},
	"an image must be kept for a rollback only: TestRemove": {
		"remove the name with --force; the content remains until the rollback does not need it",
	},
	"a registry outside of the host must name a service of the host: TestAuthenticationRealms, TestLocalServicesAreNotReached": {
		"refused: %s is a %s address of the host, and the registry is not",
	},
	"the program does not allow the cause": {
		"registry client has no http.Transport", "the daemon has no %w", "the hosts.toml of %s has no host",
	},
	"what a finished pod has left must need longer than a minute: TestPruneIsStuck": {
		"remove what pod %q has left: %w",
	},
}
