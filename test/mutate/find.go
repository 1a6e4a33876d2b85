package main

import (
	"go/ast"
	"go/format"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// operators are the replacements of an operator. For an ordering these are the neighbouring one and the opposite one.
var operators = map[token.Token][]string{
	token.LSS:  {"<=", ">="},
	token.LEQ:  {"<", ">"},
	token.GTR:  {">=", "<="},
	token.GEQ:  {">", "<"},
	token.EQL:  {"!="},
	token.NEQ:  {"=="},
	token.LAND: {"||"},
	token.LOR:  {"&&"},
	token.ADD:  {"-"},
	token.SUB:  {"+"},
	token.MUL:  {"/"},
	token.QUO:  {"*"},
}

// finder walks a file and collects its mutants. Mutants should compile: values that a removed statement uses stay used, and a
// disabled branch stays in the source.
type finder struct {
	file     string
	src      []byte
	fset     *token.FileSet
	function string
	results  []*ast.FieldList // of the enclosing functions, innermost last
	parents  []ast.Node       // of the visited node, innermost last
	found    []mutant
}

// Visit implements [ast.Visitor].
func (f *finder) Visit(node ast.Node) ast.Visitor {
	if node == nil {
		f.parents = f.parents[:len(f.parents)-1]
		return nil
	}
	visitor := f.visit(node)
	if visitor != nil {
		f.parents = append(f.parents, node)
	}
	return visitor
}

func (f *finder) visit(node ast.Node) ast.Visitor {
	switch n := node.(type) {
	case *ast.FuncLit:
		f.results = append(f.results, n.Type.Results)
		ast.Walk(f, n.Body)
		f.results = f.results[:len(f.results)-1]
		return nil
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.replace(n, f.text(n.X))
		}
	case *ast.BasicLit:
		f.number(n)
	case *ast.Ident:
		switch n.Name {
		case "true":
			f.replaceValue(n, "false")
		case "false":
			f.replaceValue(n, "true")
		}
	case *ast.IfStmt:
		f.condition(n.Cond)
	case *ast.ForStmt:
		f.skipLoop(n.Body)
	case *ast.RangeStmt:
		f.skipLoop(n.Body)
	case *ast.SwitchStmt:
		f.cases(n.Body, n.Tag == nil)
	case *ast.TypeSwitchStmt:
		f.cases(n.Body, false)
		ast.Walk(f, n.Body) // its guard can be neither removed nor changed
		return nil
	case *ast.BranchStmt:
		f.branch(n)
	case *ast.ReturnStmt:
		f.returned(n)
	case *ast.ExprStmt:
		f.replace(n, "")
	case *ast.IncDecStmt:
		f.replace(n, "")
	case *ast.AssignStmt:
		f.assignment(n)
	case *ast.ImportSpec, *ast.TypeSpec, *ast.ArrayType:
		return nil
	}
	return f
}

func (f *finder) binary(n *ast.BinaryExpr) {
	if n.Op == token.ADD && isString(n) {
		return
	}
	for _, operator := range operators[n.Op] {
		left, right := f.text(n.X), f.text(n.Y)
		gap := string(f.src[f.offset(n.X.End()):f.offset(n.Y.Pos())]) // keeps line breaks
		f.replace(n, left+strings.Replace(gap, n.Op.String(), operator, 1)+right)
	}
}

// isString reports whether e is a concatenation with a string literal, to which no other operator applies.
func isString(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.BinaryExpr:
		return isString(e.X) || isString(e.Y)
	}
	return false
}

// number increments a number, and decrements it unless a literal would become negative.
func (f *finder) number(n *ast.BasicLit) {
	if v, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
		f.replaceValue(n, strconv.FormatInt(v+1, 10))
		if v > 0 {
			f.replaceValue(n, strconv.FormatInt(v-1, 10))
		}
	} else if v, err := strconv.ParseFloat(n.Value, 64); err == nil {
		f.replaceValue(n, strconv.FormatFloat(v+1, 'f', -1, 64))
	}
}

// condition disables a branch. It also negates a condition that is not an expression with an operator; those are handled above.
func (f *finder) condition(cond ast.Expr) {
	f.replace(cond, "false && ("+f.text(cond)+")")
	switch c := cond.(type) {
	case *ast.BinaryExpr, *ast.UnaryExpr:
	default:
		f.replace(c, "!("+f.text(c)+")")
	}
}

func (f *finder) skipLoop(body *ast.BlockStmt) {
	f.splice(f.offset(body.Lbrace)+1, f.offset(body.Lbrace)+1, " break;", "loop "+f.firstLine(body)+" → loop removed", body.Pos())
}

// cases removes each case of a switch without a value, or each of several values of a case.
func (f *finder) cases(body *ast.BlockStmt, conditions bool) {
	for _, s := range body.List {
		clause, ok := s.(*ast.CaseClause)
		if !ok {
			continue
		}
		for i, value := range clause.List {
			switch {
			case conditions:
				f.condition(value)
			case len(clause.List) > 1 && i+1 < len(clause.List):
				f.splice(f.offset(value.Pos()), f.offset(clause.List[i+1].Pos()), "", "case "+f.text(value)+" → case removed", value.Pos())
			case len(clause.List) > 1:
				f.splice(f.offset(clause.List[i-1].End()), f.offset(value.End()), "", "case "+f.text(value)+" → case removed", value.Pos())
			}
		}
	}
}

func (f *finder) branch(n *ast.BranchStmt) {
	if n.Tok == token.CONTINUE {
		f.replace(n, strings.Replace(f.text(n), "continue", "break", 1))
	}
	if n.Tok == token.BREAK {
		f.replace(n, strings.Replace(f.text(n), "break", "continue", 1))
	}
}

// returned makes a return statement return zero values. It skips bare returns and literals, which the other changes handle.
func (f *finder) returned(n *ast.ReturnStmt) {
	if len(n.Results) == 0 || len(f.results) == 0 {
		return
	}
	var zeros, uses []string
	for _, field := range f.results[len(f.results)-1].List {
		for range max(1, len(field.Names)) {
			zeros = append(zeros, "*new("+f.text(field.Type)+")")
		}
	}
	if len(zeros) != len(n.Results) {
		uses = []string{strings.Repeat("_, ", len(zeros)-1) + "_ = " + f.text(n.Results[0])}
	} else {
		for _, result := range n.Results {
			if !literal(result) {
				uses = append(uses, "_ = "+f.text(result))
			}
		}
	}
	if len(uses) == 0 {
		return
	}
	f.splice(f.offset(n.Pos()), f.offset(n.End()), "{ "+strings.Join(uses, "; ")+"; return "+strings.Join(zeros, ", ")+" }",
		f.text(n)+" → return zero", n.Pos())
}

// literal reports whether an expression is nil, a boolean, a number or an empty literal: changed elsewhere, or zero already.
func literal(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "nil" || e.Name == "true" || e.Name == "false"
	case *ast.BasicLit:
		return true
	case *ast.CompositeLit:
		return len(e.Elts) == 0
	}
	return false
}

// assignment removes an assignment and keeps its right side, so that the names in it stay used.
func (f *finder) assignment(n *ast.AssignStmt) {
	if n.Tok == token.DEFINE {
		return
	}
	blanks := strings.TrimSuffix(strings.Repeat("_, ", len(n.Lhs)), ", ")
	right := string(f.src[f.offset(n.Rhs[0].Pos()):f.offset(n.Rhs[len(n.Rhs)-1].End())])
	if n.Tok == token.ASSIGN && strings.TrimSpace(blanks) == f.joined(n.Lhs) {
		return
	}
	if len(n.Rhs) == 1 && isNil(n.Rhs[0]) {
		f.splice(f.offset(n.Pos()), f.offset(n.End()), "", f.text(n)+" → removed", n.Pos())
		return
	}
	f.splice(f.offset(n.Pos()), f.offset(n.End()), blanks+" = "+right, f.text(n)+" → removed", n.Pos())
}

func isNil(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "nil"
}

func (f *finder) joined(list []ast.Expr) string {
	texts := make([]string, len(list))
	for i, e := range list {
		texts[i] = f.text(e)
	}
	return strings.Join(texts, ", ")
}

func (f *finder) offset(pos token.Pos) int { return f.fset.Position(pos).Offset }

func (f *finder) text(n ast.Node) string { return string(f.src[f.offset(n.Pos()):f.offset(n.End())]) }

// firstLine returns the source line in which a block begins, without the brace.
func (f *finder) firstLine(body *ast.BlockStmt) string {
	line := string(f.src[:f.offset(body.Lbrace)])
	return strings.TrimSpace(line[strings.LastIndexByte(line, '\n')+1:])
}

// replace adds the mutant in which n is replaced by text.
func (f *finder) replace(n ast.Node, text string) {
	after := text
	if text == "" {
		after = "removed"
	}
	f.splice(f.offset(n.Pos()), f.offset(n.End()), text, f.text(n)+" → "+after, n.Pos())
}

// replaceValue adds the mutant in which a value is replaced. Its key has the expression around the value, which shows its purpose.
func (f *finder) replaceValue(n ast.Expr, text string) {
	around, prefix := f.around(n)
	start, end := f.offset(n.Pos()), f.offset(n.End())
	before, after := f.src[f.offset(around.Pos()):start], f.src[end:f.offset(around.End())]
	f.splice(start, end, text, prefix+f.text(around)+" → "+prefix+string(before)+text+string(after), n.Pos())
}

// around returns the comparison, assignment, result or call that a value belongs to, unless that is long, and a prefix for it.
func (f *finder) around(value ast.Expr) (node ast.Node, prefix string) {
	const long = 80
	node = value
	for _, parent := range slices.Backward(f.parents) {
		last := false
		switch p := parent.(type) {
		case *ast.BinaryExpr:
			if p.Op == token.LAND || p.Op == token.LOR {
				return node, ""
			}
			last = p.Op.Precedence() == token.EQL.Precedence()
		case ast.Expr:
		case *ast.ReturnStmt, *ast.AssignStmt, *ast.SendStmt, *ast.ExprStmt, *ast.ValueSpec:
			last = true
		case *ast.CaseClause:
			return node, "case "
		default:
			return node, ""
		}
		if len(f.text(parent)) > long {
			return node, ""
		}
		node = parent
		if last {
			break
		}
	}
	return node, ""
}

func (f *finder) splice(start, end int, text, change string, pos token.Pos) {
	f.found = append(f.found, mutant{
		file: f.file, line: f.fset.Position(pos).Line, function: f.function, key: key(change),
		start: start, end: end, text: text, original: f.src,
	})
}

// key formats a change for a line of a Markdown list, between backticks, in a way that does not depend on the format of the source.
func key(change string) string {
	before, after, _ := strings.Cut(change, " → ")
	return strings.ReplaceAll(canonical(before)+" → "+canonical(after), "`", "'")
}

// canonical returns code in one line, as gofmt formats it alone.
func canonical(code string) string {
	line := strings.Join(strings.Fields(code), " ")
	if formatted, err := format.Source([]byte(line)); err == nil {
		line = strings.Join(strings.Fields(string(formatted)), " ")
	}
	return line
}
