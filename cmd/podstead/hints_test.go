package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/spec"
)

// TestHints follows each hint of the program as far as a program can: the commands, flags, arguments, fields, settings, units and pages in
// it exist. A hint that it cannot find in the sources is an error: what is printed as a hint comes from something with hint in its name.
func TestHints(t *testing.T) {
	s := scanHints(t)
	for _, problem := range s.problems {
		t.Error(problem)
	}
	if len(s.hints) < 800 {
		t.Errorf("only %d hints in the sources", len(s.hints))
	}
	followed := map[string]bool{}
	for _, h := range s.hints {
		if followed[h.text] {
			continue
		}
		followed[h.text] = true
		for _, problem := range hintProblems(t, h.text) {
			t.Errorf("%s: hint %q: %s", h.at, h.text, problem)
		}
	}
}

// TestHintProblems checks that wrong hints are found.
func TestHintProblems(t *testing.T) {
	for _, hint := range []string{
		"run podstead frob", "run podstead ls", "see podstead get --frob", "podstead exec -Z POD", "podstead volume frob VOLUME",
		"stop it with podstead stop", "run podstead rollout undo", "podstead image pulll IMAGE", "use --frob",
		"set resources.limit.memory", "set readyWithinSecond",
		"see docs/howto/" + "frob.md", "set frob in podstead.toml", "set pods.frob in podstead.toml", "set dirs in [pod] of podstead.toml",
		"set PODSTEAD_FROB", "run systemctl frob podstead", "run systemctl restart frob.service", "run frob -x",
	} {
		if len(hintProblems(t, hint)) == 0 {
			t.Errorf("%s is accepted", hint)
		}
	}
	for _, hint := range []string{
		"see why with podstead why POD, and stop it with podstead stop POD", "set update.readyWithinSeconds in the pod",
		"run podstead exec -it POD -- sh", "set pods.pidsLimit in podstead.toml",
		"run systemctl daemon-reload && systemctl start podstead@web.service",
	} {
		if problems := hintProblems(t, hint); len(problems) > 0 {
			t.Errorf("%s: %v", hint, problems)
		}
	}
}

// TestScanHints checks that the scan finds hints wherever they come from, and reports those that it cannot follow.
func TestScanHints(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "a.go", `package a
type result struct { grade int; hint string }
const advice = "const"
var someHints = []string{"variable", "with " + name}
func f(e error, hint string, other string) error {
	x := "local"
	e.Hint = x
	e.Hint = fmt.Sprintf("format %s %d", other, 1)
	g(e, "argument", other)
	list = append(list, result{1, "positional"})
	rows := []result{{2, "elided"}, {hint: advice}}
	e.Hint = cmp.Or(hint, call("argument of call"))
	a.hint("printed")
	e.Hint = other
	fmt.Println("hint: escaped")
	return e
}
func g(e error, hint, name string) {}
func (a *app) hint(text string) {}
func call(s string) string { return "returned " + s }
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	s := &hintScan{files: []*ast.File{file}, dirs: []string{"a"}, fset: token.NewFileSet()}
	s.scan()
	var got []string
	for _, h := range s.hints {
		got = append(got, h.text)
	}
	slices.Sort(got)
	want := []string{"const", "elided", "format X X", "local", "argument", "positional", "printed", "returned X", "variable", "with X"}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("hints %q, want %q", got, want)
	}
	if len(s.problems) != 2 {
		t.Errorf("problems %q, want those of other and escaped", s.problems)
	}
}

// data stands for what is not constant in a hint.
const data = "X"

type foundHint struct{ at, text string }

// hintScan finds hints in sources by the names of what they are assigned to.
type hintScan struct {
	fset     *token.FileSet
	files    []*ast.File
	dirs     []string // of the files
	hints    []foundHint
	problems []string

	values  map[string][]ast.Expr  // of constants and variables of a package, by "dir name"
	funcs   map[string][]fn        // by name
	structs map[string][]structure // by name
	dir     string
	scope   ast.Node // the function that is scanned
	busy    map[ast.Node]bool
}

type structure struct {
	dir    string
	fields []string
}

type fn struct {
	dir    string
	local  bool // a variable
	params []string
	rest   bool // the last parameter takes all further arguments
	prints bool // it has no results
	texts  bool // its last result is a text or a list of texts
	body   *ast.BlockStmt
}

func newFn(dir string, local bool, t *ast.FuncType, body *ast.BlockStmt) fn {
	f := fn{dir: dir, local: local, params: paramsOf(t), prints: t.Results == nil, body: body}
	if n := len(t.Params.List); n > 0 {
		_, f.rest = t.Params.List[n-1].Type.(*ast.Ellipsis)
	}
	if !f.prints {
		of := t.Results.List[len(t.Results.List)-1].Type
		if list, ok := of.(*ast.ArrayType); ok {
			of = list.Elt
		}
		f.texts = nameOf(of) == "string"
	}
	return f
}

// notScanned are the directories without hints of the program.
var notScanned = []string{"test", "tools", "bin", "docs", "testdata"}

func scanHints(t *testing.T) *hintScan {
	t.Helper()
	s := &hintScan{fset: token.NewFileSet()}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(filepath.ToSlash(path), "../../")
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(notScanned, d.Name()) || strings.HasPrefix(d.Name(), ".") && rel != "../.."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(s.fset, path, nil, parser.SkipObjectResolution)
		s.files, s.dirs = append(s.files, file), append(s.dirs, filepath.Dir(path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.scan()
	return s
}

// hintName matches the names of what has hints.
var hintName = regexp.MustCompile(`^[hH]int[A-Z]|[hH]ints?$`)

func isHint(e ast.Expr) bool { return hintName.MatchString(nameOf(e)) }

// nameOf returns the last name of an expression, "" if it has none.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.IndexExpr:
		if key, ok := e.Index.(*ast.BasicLit); ok && key.Kind == token.STRING {
			return strings.Trim(key.Value, `"`)
		}
		return nameOf(e.X)
	case *ast.StarExpr:
		return nameOf(e.X)
	case *ast.ParenExpr:
		return nameOf(e.X)
	}
	return ""
}

// scan finds the hints of all files.
func (s *hintScan) scan() {
	s.values, s.funcs, s.structs, s.busy = map[string][]ast.Expr{}, map[string][]fn{}, map[string][]structure{}, map[ast.Node]bool{}
	for i, file := range s.files {
		s.dir = s.dirs[i]
		ast.Inspect(file, s.declare)
	}
	for i, file := range s.files {
		s.dir = s.dirs[i]
		for _, decl := range file.Decls {
			s.scope = decl
			ast.Inspect(decl, s.visit)
		}
	}
}

func paramsOf(t *ast.FuncType) (names []string) {
	for _, field := range t.Params.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
		if len(field.Names) == 0 {
			names = append(names, "")
		}
	}
	return names
}

// declare records what a file declares.
func (s *hintScan) declare(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		s.funcs[n.Name.Name] = append(s.funcs[n.Name.Name], newFn(s.dir, false, n.Type, n.Body))
	case *ast.AssignStmt:
		for i, right := range n.Rhs {
			if f, ok := right.(*ast.FuncLit); ok && i < len(n.Lhs) {
				name := nameOf(n.Lhs[i])
				s.funcs[name] = append(s.funcs[name], newFn(s.dir, true, f.Type, f.Body))
			}
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if i < len(n.Values) {
				s.values[s.dir+" "+name.Name] = append(s.values[s.dir+" "+name.Name], n.Values[i])
			}
		}
	case *ast.TypeSpec:
		if of, ok := n.Type.(*ast.StructType); ok {
			next := structure{dir: s.dir}
			for _, field := range of.Fields.List {
				for _, name := range field.Names {
					next.fields = append(next.fields, name.Name)
				}
			}
			s.structs[n.Name.Name] = append(s.structs[n.Name.Name], next)
		}
	}
	return true
}

// visit finds what is assigned to hints.
func (s *hintScan) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if isHint(n.Key) {
			s.add(n.Value)
		}
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			switch {
			case !isHint(left):
			case len(n.Rhs) == len(n.Lhs):
				s.add(n.Rhs[i])
			default:
				s.add(n.Rhs[0])
			}
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if isHint(name) && i < len(n.Values) {
				s.add(n.Values[i])
			}
		}
	case *ast.CallExpr:
		s.visitCall(n)
	case *ast.FuncDecl:
		if n.Body != nil && hintName.MatchString(n.Name.Name) && newFn("", false, n.Type, nil).texts {
			s.addReturns(n.Body)
		}
	case *ast.CompositeLit:
		s.visitLiteral(n, n.Type)
	case *ast.BasicLit:
		if strings.Contains(n.Value, "hint: ") && !slices.Contains(printers, functionName(s.scope)) {
			s.problem(n, "prints a hint by itself: use app.hint or a field with hint in its name")
		}
	}
	return true
}

// printers are the functions that print hints.
var printers = []string{"hint", "Hint", "Report", "printFindings"}

func functionName(n ast.Node) string {
	if f, ok := n.(*ast.FuncDecl); ok {
		return f.Name.Name
	}
	return ""
}

// visitCall finds arguments for parameters that are hints, and those of functions that print one.
func (s *hintScan) visitCall(call *ast.CallExpr) {
	name := nameOf(call.Fun)
	for _, f := range s.funcs[name] {
		if f.dir != s.dir && (f.local || !ast.IsExported(name)) || len(call.Args) != len(f.params) && !f.rest {
			continue
		}
		for i, param := range f.params {
			prints := f.prints && (name == "hint" || name == "Hint")
			if (hintName.MatchString(param) || prints) && i < len(call.Args) {
				s.add(call.Args[i])
			}
		}
	}
}

// visitLiteral finds hints in struct literals without keys.
func (s *hintScan) visitLiteral(n *ast.CompositeLit, of ast.Expr) {
	var element ast.Expr
	switch t := of.(type) {
	case *ast.ArrayType:
		element = t.Elt
	case *ast.MapType:
		element = t.Value
	default:
		_, imported := of.(*ast.SelectorExpr)
		for _, t := range s.structs[nameOf(of)] {
			if imported == (t.dir == s.dir) || len(n.Elts) != len(t.fields) {
				continue
			}
			for i, field := range t.fields {
				if _, keyed := n.Elts[i].(*ast.KeyValueExpr); !keyed && hintName.MatchString(field) {
					s.add(n.Elts[i])
				}
			}
		}
		return
	}
	for _, elt := range n.Elts {
		if pair, ok := elt.(*ast.KeyValueExpr); ok {
			elt = pair.Value
		}
		if inner, ok := elt.(*ast.CompositeLit); ok && inner.Type == nil {
			s.visitLiteral(inner, element)
		}
	}
}

func (s *hintScan) addReturns(body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		if _, inner := n.(*ast.FuncLit); inner {
			return false
		}
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
			s.add(r.Results[len(r.Results)-1])
		}
		return true
	})
}

func (s *hintScan) problem(n ast.Node, text string) {
	s.problems = append(s.problems, s.fset.Position(n.Pos()).String()+": "+text)
}

// add adds the texts of an expression that is used as a hint.
func (s *hintScan) add(e ast.Expr) {
	texts, ok := s.texts(e)
	if !ok {
		s.problem(e, "the test cannot find this hint: use a text, or something with hint in its name")
	}
	for _, text := range texts {
		if h := (foundHint{s.fset.Position(e.Pos()).String(), text}); text != "" && text != data && !slices.Contains(s.hints, h) {
			s.hints = append(s.hints, h)
		}
	}
}

// texts returns what an expression can be, with [data] for what is not constant. It is not ok if nothing is.
func (s *hintScan) texts(e ast.Expr) (list []string, ok bool) {
	if s.busy[e] {
		return nil, true
	}
	s.busy[e] = true
	defer delete(s.busy, e)
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return nil, true
		}
		text, err := strconv.Unquote(e.Value)
		return []string{text}, err == nil
	case *ast.ParenExpr:
		return s.texts(e.X)
	case *ast.BinaryExpr:
		left, isLeft := s.texts(e.X)
		right, isRight := s.texts(e.Y)
		return product(left, right), isLeft || isRight
	case *ast.Ident:
		return s.ofName(e)
	case *ast.SelectorExpr:
		return s.ofPackage(e)
	case *ast.IndexExpr:
		if isHint(e) || isHint(e.X) {
			return nil, true
		}
		return s.texts(e.X)
	case *ast.SliceExpr:
		return s.texts(e.X)
	case *ast.CompositeLit:
		return s.ofLiteral(e)
	case *ast.CallExpr:
		return s.ofCall(e)
	}
	return nil, false
}

func product(left, right []string) (list []string) {
	if len(left) == 0 {
		left = []string{data}
	}
	if len(right) == 0 {
		right = []string{data}
	}
	for _, l := range left {
		for _, r := range right {
			list = append(list, l+r)
		}
	}
	return list
}

// ofName returns the texts of a variable or constant. Those of names with hint in them are found where they are assigned.
func (s *hintScan) ofName(e *ast.Ident) (list []string, ok bool) {
	if e.Name == "nil" || isHint(e) {
		return nil, true
	}
	if f, isFunction := s.scope.(*ast.FuncDecl); isFunction {
		ast.Inspect(f, func(n ast.Node) bool {
			assign, isAssign := n.(*ast.AssignStmt)
			for i := 0; isAssign && i < len(assign.Lhs) && len(assign.Rhs) == len(assign.Lhs); i++ {
				if id, isName := assign.Lhs[i].(*ast.Ident); isName && id.Name == e.Name {
					texts, known := s.texts(assign.Rhs[i])
					list, ok = append(list, texts...), ok || known
				}
			}
			return true
		})
	}
	for _, value := range s.values[s.dir+" "+e.Name] {
		texts, known := s.texts(value)
		list, ok = append(list, texts...), ok || known
	}
	return list, ok
}

// ofPackage returns the texts of a field, or of a constant of another package.
func (s *hintScan) ofPackage(e *ast.SelectorExpr) ([]string, bool) {
	if isHint(e) {
		return nil, true
	}
	return nil, false
}

func (s *hintScan) ofLiteral(e *ast.CompositeLit) (list []string, ok bool) {
	for _, elt := range e.Elts {
		if pair, isPair := elt.(*ast.KeyValueExpr); isPair {
			elt = pair.Value
		}
		texts, known := s.texts(elt)
		list, ok = append(list, texts...), ok || known
	}
	return list, ok || len(e.Elts) == 0
}

var formatVerb = regexp.MustCompile(`%(\[\d\])?[a-z]`)

// ofCall returns the texts of the result of a call.
func (s *hintScan) ofCall(e *ast.CallExpr) (list []string, ok bool) {
	name := nameOf(e.Fun)
	switch name {
	case "Sprintf":
		formats, known := s.texts(e.Args[0])
		for i := range formats {
			formats[i] = formatVerb.ReplaceAllString(formats[i], data)
		}
		return formats, known
	case "Or", "append":
		for _, arg := range e.Args {
			texts, known := s.texts(arg)
			list, ok = append(list, texts...), ok || known
		}
		return list, ok
	case "Join", "Text", "TrimSuffix", "Clone", "ToValidUTF8":
		return s.texts(e.Args[0])
	}
	for _, f := range s.funcs[name] {
		if f.dir != s.dir || f.body == nil {
			continue
		}
		before := s.scope
		s.scope = &ast.FuncDecl{Body: f.body, Name: ast.NewIdent(name), Type: &ast.FuncType{Params: &ast.FieldList{}}}
		ast.Inspect(f.body, func(n ast.Node) bool {
			if r, isReturn := n.(*ast.ReturnStmt); isReturn && len(r.Results) > 0 {
				texts, known := s.texts(r.Results[len(r.Results)-1])
				list, ok = append(list, texts...), ok || known
			}
			return true
		})
		s.scope = before
	}
	return list, ok || isHint(e.Fun)
}

// hintProblems returns what in a hint does not exist.
func hintProblems(t *testing.T, hint string) (problems []string) {
	t.Helper()
	add := func(problem string) {
		if problem != "" {
			problems = append(problems, problem)
		}
	}
	rest := hint
	for _, line := range commandLines(hint) {
		add(followHint(t, line))
		rest = strings.Replace(rest, strings.Join(line, " "), "", 1)
	}
	for _, unit := range regexp.MustCompile(`systemctl( [a-z-]+)?( --now)?( [\w@.-]+)?`).FindAllString(rest, -1) {
		add(followSystemctl(strings.Fields(unit)[1:]))
		rest = strings.Replace(rest, unit, "", 1)
	}
	for _, p := range page.FindAllString(rest, -1) {
		if _, err := os.Stat(filepath.Join("../..", p)); err != nil {
			add(err.Error())
		}
		rest = strings.Replace(rest, p, "", 1)
	}
	for _, m := range regexp.MustCompile(`\brun ([a-z][a-z-]*) -`).FindAllStringSubmatch(rest, -1) {
		if !slices.Contains(hostPrograms, m[1]) {
			add("no such program " + m[1])
		}
	}
	if !usesProgram(rest) {
		for _, flag := range regexp.MustCompile(`(^|[ ,;(])--[a-z-]+`).FindAllString(rest, -1) {
			if name := strings.TrimLeft(flag, " ,;(-"); !anyFlag(name) {
				add("no command has the flag --" + name)
			}
		}
	}
	for _, variable := range regexp.MustCompile(`PODSTEAD_[A-Z_]+`).FindAllString(rest, -1) {
		if !slices.ContainsFunc(settings(), func(s config.Setting) bool { return s.Env == variable }) {
			add("no setting has the variable " + variable)
		}
	}
	for _, m := range regexp.MustCompile(`\[([a-z]+)\]`).FindAllStringSubmatch(rest, -1) {
		if !isTable(m[1]) && !isField(m[1]) && m[1] != "header" && m[1] != "sh" { // a list of words
			add("podstead.toml has no table [" + m[1] + "]")
		}
	}
	for _, m := range regexp.MustCompile(`\bset ([a-z]\w*) in podstead\.toml`).FindAllStringSubmatch(rest, -1) {
		if !isSetting(m[1]) && !isTable(m[1]) {
			add("no setting " + m[1])
		}
	}
	for _, name := range regexp.MustCompile(`[\w./:@-]+`).FindAllString(rest, -1) {
		add(followName(strings.TrimRight(name, ".:"), rest))
	}
	return problems
}

// hostPrograms are programs of the host that hints use.
var hostPrograms = []string{"chmod", "firewall-cmd", "sysctl", "nft", "iptables", "ss", "systemctl", "podstead"}

// usesProgram reports whether a hint has the command line of another program.
func usesProgram(hint string) bool {
	programs := `\b(firewall-cmd|cosign|kubectl|sysctl|nft|ss|apt-get|journalctl|ip6?tables\S*|kill|ulimit) `
	return regexp.MustCompile(programs).MatchString(hint)
}

var settings = sync.OnceValue(config.Settings)

func settingMatches(matches func(key string) bool) bool {
	return slices.ContainsFunc(settings(), func(s config.Setting) bool { return matches(s.Key) })
}

func isSetting(name string) bool {
	return settingMatches(func(key string) bool { return key == name || strings.HasSuffix(key, "."+name) })
}

// isTable reports whether podstead.toml has a table.
func isTable(name string) bool {
	return slices.Contains([]string{"notify", "images.verify", "engine.runtimeClasses"}, name) ||
		settingMatches(func(key string) bool { return strings.HasPrefix(key, name+".") })
}

// textAfter are the words that follow the name of the program in a sentence.
var textAfter = []string{"as", "or", "runs", "without", "again", "and"}

// commandLines returns the command lines of the program in a hint, each from "podstead" to its last argument.
func commandLines(hint string) (lines [][]string) {
	words := strings.Fields(hint)
	for i := 0; i < len(words); i++ {
		if words[i] != "podstead" || i+1 == len(words) || slices.Contains(textAfter, words[i+1]) {
			continue
		}
		line := []string{"podstead"}
		cmd, subcommand := tree(), true
		for i++; i < len(words); i++ {
			word := strings.TrimRight(words[i], ",;:.)")
			if word == "" || word == "&&" {
				break
			}
			next, isCommand := childOf(cmd, word)
			switch {
			case subcommand && isCommand:
				cmd = next
			case subcommand && cmd.HasAvailableSubCommands() && isWord(word):
			case isWord(word) && !slices.Contains(line, "--") && !takesValue(cmd, line[len(line)-1]):
				word = ""
			default:
				subcommand = false
			}
			if word == "" {
				break
			}
			line = append(line, word)
			if word != words[i] {
				break
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// takesValue reports whether the next word is the value of a flag.
func takesValue(cmd *cobra.Command, word string) bool {
	name, long := strings.CutPrefix(word, "--")
	flag := cmd.Flag(name)
	if !long && strings.HasPrefix(word, "-") && len(word) > 1 {
		flag = cmd.Flags().ShorthandLookup(word[len(word)-1:])
	}
	return flag != nil && flag.NoOptDefVal == "" && flag.Value.Type() != "bool"
}

func isWord(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < 'a' || r > 'z' })
}

// childOf returns a visible subcommand.
func childOf(cmd *cobra.Command, name string) (*cobra.Command, bool) {
	for _, c := range cmd.Commands() {
		if (!c.Hidden || strings.HasPrefix(c.Short, "As podstead ")) && (c.Name() == name || c.HasAlias(name)) {
			return c, true
		}
	}
	return cmd, false
}

// required matches the first argument of a command that is not in brackets.
var required = regexp.MustCompile(`^[a-z -]+ [A-Z]+`)

// followHint parses a command line of a hint as the program does, and returns why the program refuses it.
func followHint(t *testing.T, line []string) string {
	t.Helper()
	cmd := tree()
	words := line[1:]
	for len(words) > 0 {
		child, ok := childOf(cmd, words[0])
		if !ok {
			break
		}
		cmd, words = child, words[1:]
	}
	isArgument := len(words) > 0 && !strings.HasPrefix(words[0], "-")
	if isArgument && (!cmd.HasParent() || cmd.HasAvailableSubCommands() && isWord(words[0])) {
		return "no such command: " + strings.Join(line, " ")
	}
	for i, word := range words { // a name for a value that is parsed
		switch strings.Trim(words[max(0, i-1)], "-") {
		case "generation", "to-generation", "grace-period", "timeout":
			if word == data || strings.ToUpper(word) == word {
				words = slices.Clone(words)
				words[i] = "1"
			}
		}
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(words); err != nil {
		return strings.Join(line, " ") + ": " + err.Error()
	}
	if help, err := cmd.Flags().GetBool("help"); err == nil && help || !cmd.Runnable() {
		return ""
	}
	if needs := required.FindString(cmd.Use); needs != "" && cmd.Flags().NArg() == 0 && cmd.Flags().NFlag() == 0 {
		return strings.Join(line, " ") + ": has no " + needs
	}
	t.Chdir(argumentFiles(t))
	err := cmd.ValidateArgs(cmd.Flags().Args())
	t.Chdir(sourceDir)
	if err != nil {
		return strings.Join(line, " ") + ": " + err.Error()
	}
	return ""
}

// sourceDir is the directory of the sources of this package.
var sourceDir, _ = os.Getwd()

// tree returns all commands. Each call returns others: flags have state.
func tree() *cobra.Command {
	root := (&app{}).root()
	root.InitDefaultHelpCmd()
	return root
}

// argumentFiles returns a directory with the files that command lines in hints have as arguments.
func argumentFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"FILE", data} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "DIR"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// anyFlag reports whether a command has a flag.
func anyFlag(name string) bool {
	if name == "help" {
		return true
	}
	var has func(c *cobra.Command) bool
	has = func(c *cobra.Command) bool {
		return c.Flags().Lookup(name) != nil || c.PersistentFlags().Lookup(name) != nil || slices.ContainsFunc(c.Commands(), has)
	}
	return has(tree())
}

// followSystemctl returns what is wrong with the arguments of systemctl.
func followSystemctl(args []string) string {
	if len(args) == 0 {
		return ""
	}
	if !slices.Contains([]string{"start", "stop", "restart", "reload", "enable", "disable", "daemon-reload", "status"}, args[0]) {
		return "systemctl has no verb " + args[0]
	}
	unit := args[len(args)-1]
	if len(args) < 2 || unit == data {
		return ""
	}
	name := regexp.MustCompile(`@[^.]*`).ReplaceAllString(strings.TrimRight(unit, "."), "@")
	if !strings.Contains(name, ".") {
		name += ".service"
	}
	if _, err := os.Stat(filepath.Join("../../packaging", name)); err != nil {
		return err.Error()
	}
	return ""
}

// camel matches the names of fields and settings, and their paths.
var camel = regexp.MustCompile(`^[a-z][A-Za-z]*(\.[a-zA-Z-]+)*$`)

// foreign are names in hints that are no fields of pods.
var foreign = []string{"podstead.toml", "matchLabels", "accessModes"}

// followName returns what is wrong with a word that has the form of a field, a setting or their path.
func followName(name, hint string) string {
	if !camel.MatchString(name) || strings.ToLower(name) == name && !strings.Contains(name, ".") {
		return ""
	}
	if slices.Contains(foreign, name) || isField(name) || isSetting(name) || isTable(name) {
		return ""
	}
	if strings.Contains(hint, "sysctl") || regexp.MustCompile(`\.(toml|yaml|service|socket|io|tar|env|txt)$`).MatchString(name) {
		return ""
	}
	return "no field or setting " + name
}

// isField reports whether a table of a pod file has a field, or a path of fields.
func isField(path string) bool {
	path = strings.TrimPrefix(strings.TrimPrefix(path, "metadata."), "spec.") // of a manifest
	seen := map[reflect.Type]bool{}
	var within func(t reflect.Type) bool
	within = func(t reflect.Type) bool {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] {
			return false
		}
		seen[t] = true
		if resolves(t, path) {
			return true
		}
		for f := range t.Fields() {
			if within(f.Type) {
				return true
			}
		}
		return false
	}
	return within(reflect.TypeFor[spec.Pod]())
}

// resolves reports whether a table has a field at a path.
func resolves(t reflect.Type, path string) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() == reflect.Map || t.Kind() == reflect.Interface { // such as resources.limits.memory
		return true
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	name, rest, more := strings.Cut(path, ".")
	for f := range t.Fields() {
		if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key == name {
			return !more || resolves(f.Type, rest)
		}
	}
	return false
}
