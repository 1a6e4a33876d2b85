package supervisor

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"testing"
)

// TestMessagesAreListedAndHandled expects that every message type is in the table at the top of message.go and in the switch of
// loop.handle.
func TestMessagesAreListedAndHandled(t *testing.T) {
	files := token.NewFileSet()
	parse := func(name string) *ast.File {
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	var declared, listed, handled []string
	var table string
	for _, d := range parse("message.go").Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.Name == "isMessage" {
				declared = append(declared, d.Recv.List[0].Type.(*ast.Ident).Name)
			}
		case *ast.GenDecl:
			if table == "" && d.Tok == token.TYPE {
				table = d.Doc.Text()
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\t([a-z]\w*) +(?:Supervisor|effects|loop|staging)\.`).FindAllStringSubmatch(table, -1) {
		listed = append(listed, m[1])
	}
	ast.Inspect(parse("loop.go"), func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncDecl); ok {
			return f.Name.Name == "handle"
		}
		if c, ok := n.(*ast.CaseClause); ok {
			for _, name := range c.List {
				handled = append(handled, name.(*ast.Ident).Name)
			}
		}
		return true
	})
	slices.Sort(declared)
	slices.Sort(listed)
	slices.Sort(handled)
	if len(declared) == 0 || !slices.Equal(declared, listed) || !slices.Equal(declared, handled) {
		t.Errorf("declared: %v\nlisted:   %v\nhandled:  %v", declared, listed, handled)
	}
}
