package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// edit is a change of the source that is found by syntax, so that it does not depend on lines, files and formatting.
//
// The function (Func or Type.Method) selects one of several places in a package. If it has none, because the code has moved to another
// function, the place must be the only one in the package.
type edit struct {
	dir      string // of the package
	function string
	what     string                                  // the operation, for errors
	code     string                                  // what is found
	find     func(s *syntax, code []string) []splice // code is the tokens of the code
}

// splice replaces the bytes from start to end of a file.
type splice struct {
	start, end int
	text       string
}

// never makes the condition false that contains an expression, or whose initialisation contains it: of an if, or of a case.
func never(dir, function, part string) edit {
	return edit{dir, function, "condition", part, func(s *syntax, code []string) []splice { return s.conditions(code, "false && (", ")") }}
}

// always makes such a condition true.
func always(dir, function, part string) edit {
	return edit{dir, function, "condition", part, func(s *syntax, code []string) []splice { return s.conditions(code, "true || (", ")") }}
}

// replaced replaces an expression, or statements that follow each other. A dollar sign in the replacement stands for what is replaced.
func replaced(dir, function, code, by string) edit {
	return edit{dir, function, "code", code, func(s *syntax, code []string) []splice {
		var all []splice
		for _, found := range s.matches(code) {
			all = append(all, splice{found.start, found.end, strings.ReplaceAll(by, "$", s.text[found.start:found.end])})
		}
		return all
	}}
}

// without removes an operand, an argument, or statements that follow each other.
func without(dir, function, code string) edit {
	return edit{dir, function, "operand, argument or statement", code, (*syntax).removals}
}

// constant changes the value of a constant.
func constant(dir, name, value string) edit {
	return edit{dir, name, "constant", name, func(s *syntax, code []string) []splice { return s.constants(code, value) }}
}

// place is a change of a file.
type place struct {
	file, text string // text: of the whole file
	splice
}

// apply makes the change in the files of its package. The texts of changed files are in changed, by path.
func (e edit) apply(root string, changed map[string]string) error {
	files, err := filepath.Glob(filepath.Join(root, e.dir, "*.go"))
	if err != nil {
		return err
	}
	var inFunction, inPackage []place
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, ok := changed[file]
		if !ok {
			read, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			text = string(read)
		}
		some, all, err := e.places(file, text)
		if err != nil {
			return err
		}
		inFunction, inPackage = append(inFunction, some...), append(inPackage, all...)
	}
	places := inFunction
	if len(places) == 0 {
		places = inPackage
	}
	if len(places) != 1 {
		return fmt.Errorf("package %s, function %s: %s %q: found %d times, must be once", e.dir, e.function, e.what, e.code, len(places))
	}
	p := places[0]
	changed[p.file] = p.text[:p.start] + p.splice.text + p.text[p.end:]
	return nil
}

// places returns what the change can be made of in a file: in its function, and everywhere.
func (e edit) places(file, text string) (inFunction, all []place, err error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	code := tokens(e.code)
	for _, decl := range parsed.Decls {
		s := &syntax{text: text, base: int(parsed.FileStart), root: decl}
		for _, found := range e.find(s, code) {
			all = append(all, place{file, text, found})
			if f, ok := decl.(*ast.FuncDecl); ok && funcName(f) == e.function {
				inFunction = append(inFunction, place{file, text, found})
			}
		}
	}
	return inFunction, all, nil
}

// funcName returns Func, or Type.Method.
func funcName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

// syntax is a declaration of a file.
type syntax struct {
	text string // of the file
	base int    // position of its first byte
	root ast.Node
}

func (s *syntax) at(n ast.Node) splice {
	return splice{start: int(n.Pos()) - s.base, end: int(n.End()) - s.base}
}

func (s *syntax) is(n ast.Node, code []string) bool {
	at := s.at(n)
	text := s.text[at.start:at.end]
	return strings.HasPrefix(text, code[0]) && slices.Equal(tokens(text), code) // most nodes begin with something else
}

// matches returns the expressions, and the sequences of statements, that are the code.
func (s *syntax) matches(code []string) []splice {
	var all []splice
	ast.Inspect(s.root, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && s.is(e, code) {
			all = append(all, s.at(n))
		}
		for _, found := range s.statements(n, code) {
			if !slices.Contains(all, found) {
				all = append(all, found)
			}
		}
		return true
	})
	slices.SortFunc(all, func(a, b splice) int { return a.start - b.start })
	return slices.Compact(all) // a call can be an expression and a statement
}

// statements returns the sequences of statements in the list of a node that are the code.
func (s *syntax) statements(n ast.Node, code []string) []splice {
	var list []ast.Stmt
	switch n := n.(type) {
	case *ast.BlockStmt:
		list = n.List
	case *ast.CaseClause:
		list = n.Body
	case *ast.CommClause:
		list = n.Body
	}
	var all []splice
	for i := range list {
		for j := i; j < len(list) && strings.HasPrefix(s.text[s.at(list[i]).start:], code[0]); j++ {
			start, end := s.at(list[i]).start, s.at(list[j]).end
			got := tokens(s.text[start:end])
			if slices.Equal(got, code) {
				all = append(all, splice{start: start, end: end})
			}
			if len(got) >= len(code) {
				break
			}
		}
	}
	return all
}

// conditions returns the changes of conditions that contain the code.
func (s *syntax) conditions(code []string, before, after string) []splice {
	var all []splice
	add := func(cond ast.Expr, parts ...ast.Node) {
		for _, part := range parts {
			if len((&syntax{s.text, s.base, part}).matches(code)) > 0 {
				at := s.at(cond)
				all = append(all, splice{at.start, at.end, before + s.text[at.start:at.end] + after})
				return
			}
		}
	}
	ast.Inspect(s.root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			if n.Init == nil {
				add(n.Cond, n.Cond)
			} else {
				add(n.Cond, n.Cond, n.Init)
			}
		case *ast.SwitchStmt:
			for _, clause := range n.Body.List {
				if clause, ok := clause.(*ast.CaseClause); ok && n.Tag == nil {
					for _, cond := range clause.List {
						add(cond, cond)
					}
				}
			}
		}
		return true
	})
	return all
}

// removals returns the changes that remove an operand, an argument, or statements.
func (s *syntax) removals(code []string) []splice {
	var all []splice
	ast.Inspect(s.root, func(n ast.Node) bool {
		all = append(all, s.statements(n, code)...)
		switch n := n.(type) {
		case *ast.BinaryExpr:
			at, left, right := s.at(n), s.at(n.X), s.at(n.Y)
			if s.is(n.X, code) {
				all = append(all, splice{at.start, at.end, s.text[right.start:right.end]})
			}
			if s.is(n.Y, code) {
				all = append(all, splice{at.start, at.end, s.text[left.start:left.end]})
			}
		case *ast.CallExpr:
			for i, arg := range n.Args {
				if !s.is(arg, code) {
					continue
				}
				at := s.at(arg)
				switch {
				case i > 0:
					at.start = s.at(n.Args[i-1]).end
				case len(n.Args) > 1:
					at.end = s.at(n.Args[1]).start
				}
				all = append(all, at)
			}
		}
		return true
	})
	return all
}

// constants returns the changes of the values of constants with a name.
func (s *syntax) constants(name []string, value string) []splice {
	var all []splice
	ast.Inspect(s.root, func(n ast.Node) bool {
		decl, ok := n.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST {
			return true
		}
		for _, spec := range decl.Specs {
			if spec, ok := spec.(*ast.ValueSpec); ok {
				for i, id := range spec.Names {
					if id.Name == name[0] && i < len(spec.Values) {
						at := s.at(spec.Values[i])
						all = append(all, splice{at.start, at.end, value})
					}
				}
			}
		}
		return true
	})
	return all
}

// tokens returns the tokens of code, without what depends on its format: comments, semicolons, and commas at the end of a list.
func tokens(code string) []string {
	var all []string
	var s scanner.Scanner
	fset := token.NewFileSet()
	s.Init(fset.AddFile("", fset.Base(), len(code)), []byte(code), nil, 0)
	for {
		_, kind, literal := s.Scan()
		switch kind {
		case token.EOF:
			return all
		case token.SEMICOLON:
			continue
		case token.RPAREN, token.RBRACK, token.RBRACE:
			if n := len(all); n > 0 && all[n-1] == "," {
				all = all[:n-1]
			}
		}
		if kind.IsLiteral() {
			all = append(all, literal)
		} else {
			all = append(all, kind.String())
		}
	}
}
