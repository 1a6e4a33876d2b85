package repo_test

import (
	"go/ast"
	"go/token"
	"testing"
)

// TestAPITypesAreNoAliases requires that package api declares its exported types itself, so that a change of another package cannot change
// the API.
func TestAPITypesAreNoAliases(t *testing.T) {
	types := 0
	for _, s := range goFiles(t) {
		if s.isTest || s.dir != "api" {
			continue
		}
		for _, d := range s.file.Decls {
			d, ok := d.(*ast.GenDecl)
			if !ok || d.Tok != token.TYPE {
				continue
			}
			for _, s := range d.Specs {
				typ, ok := s.(*ast.TypeSpec)
				if !ok || !typ.Name.IsExported() {
					continue
				}
				types++
				if typ.Assign.IsValid() {
					t.Errorf("api.%s is an alias: declare a type, and convert it", typ.Name.Name)
				}
			}
		}
	}
	if types == 0 {
		t.Error("found no exported types of package api")
	}
}
