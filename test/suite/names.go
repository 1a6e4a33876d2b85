package suite

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
)

// testName is a test of a package.
type testName struct {
	test   string
	tagged bool // its file has a build tag
}

// testNames returns the tests of the package in a directory, by the build tags of this program; nil if there are no sources.
func testNames(dir string) ([]testName, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	plain, tagged := build.Default, build.Default
	tagged.BuildTags = buildTags()
	isTest := regexp.MustCompile(`^(Test|Fuzz)([^a-z]|$)`) // a fuzz test runs its seeds
	var names []testName
	for _, path := range files {
		included, err := tagged.MatchFile(dir, filepath.Base(path))
		if err != nil {
			return nil, err
		}
		if !included {
			continue
		}
		always, err := plain.MatchFile(dir, filepath.Base(path))
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name != "TestMain" && isTest.MatchString(f.Name.Name) {
				names = append(names, testName{f.Name.Name, !always})
			}
		}
	}
	return names, nil
}

// buildTags returns the tags that this program was built with.
func buildTags() []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, s := range info.Settings {
		if s.Key == "-tags" {
			return strings.Split(s.Value, ",")
		}
	}
	return nil
}
