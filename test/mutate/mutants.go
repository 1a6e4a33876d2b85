package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one change of one file: the bytes from start to end are replaced by text.
type mutant struct {
	file       string
	line       int
	function   string // Func, Type.Method, or the name of a package-level constant or variable
	key        string // the code before and after; independent of its function, its file and its format
	start, end int
	text       string
	original   []byte // the whole file
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d: %s: `%s`", m.file, m.line, m.function, m.key)
}

func (m mutant) source() []byte {
	return slices.Concat(m.original[:m.start], []byte(m.text), m.original[m.end:])
}

// packageMutants returns the mutants of the package in dir, without tests and generated files, in source order.
func packageMutants(dir string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		mutants, err := fileMutants(file, src)
		if err != nil {
			return nil, err
		}
		all = append(all, mutants...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no mutants in %s", dir)
	}
	return all, nil
}

func fileMutants(file string, src []byte) ([]mutant, error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(parsed) {
		return nil, nil
	}
	f := &finder{file: file, src: src, fset: fset}
	for _, decl := range parsed.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Body != nil {
				f.function = funcName(decl)
				f.results = append(f.results, decl.Type.Results)
				ast.Walk(f, decl.Body)
				f.results = nil
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok {
					f.function = value.Names[0].Name
					ast.Walk(f, value)
				}
			}
		}
	}
	slices.SortStableFunc(f.found, func(a, b mutant) int { return a.start - b.start })
	return f.found, nil
}

func funcName(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return decl.Name.Name
	}
	t := decl.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + decl.Name.Name
		default:
			return decl.Name.Name
		}
	}
}
