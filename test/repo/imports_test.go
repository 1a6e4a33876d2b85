package repo_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// importRules are the only list of forbidden imports between packages; docs/design/architecture.md explains them. A rule holds for
// whole subtrees, so that it covers packages that are added later. Tests may import anything.
//
// The linter has no second list (depguard): it cannot express subtrees with exceptions, and does not run in go test.
var importRules = []struct {
	from   string // directories; "runtime/" means the packages below runtime, without runtime itself
	except string // directories in from for which the rule does not hold
	never  string // import paths; "runtime$" means runtime without the packages below it
	reason string
}{
	{from: leaf, never: module, reason: "all other packages, also spec, may import it"},
	{from: "spec", never: module, reason: "all other packages import spec"},
	{
		from: "supervisor", never: ours("runtime probes hooks"),
		reason: "supervisor declares the interfaces that it needs, the daemon connects them",
	},
	{
		from: "supervisor/lifecycle supervisor/admission supervisor/generation supervisor/state", never: ours("api"),
		reason: "supervisor has the events of the API; decisions and files of state have words of their own, which the edges import",
	},
	{
		from: "supervisor/", except: "supervisor/explain supervisor/podfiles supervisor/schedule", never: ours("supervisor$"),
		reason: "supervisor imports the packages below it",
	},
	{
		from: "supervisor", except: "supervisor/schedule", never: ours("supervisor/podfiles"),
		reason: "podfiles is a client of the set of pods, and schedule one of both",
	},
	{from: "supervisor", never: ours("supervisor/schedule"), reason: "schedule is a client of the set of pods"},
	{
		from: "supervisor/", never: ours("supervisor/explain"),
		reason: "explain reads the events of supervisor; only the server and clients of the API import it",
	},
	{from: "api", never: ours("supervisor runtime probes hooks"), reason: "api has what clients and the daemon agree on"},
	{
		from: "internal/server supervisor internal/view", never: ours("api/client"),
		reason: "they have the types of api, and send no requests",
	},
	{from: "internal/server", never: ours("runtime probes hooks"), reason: "server declares the interfaces that it needs"},
	{
		from: "runtime probes hooks", never: ours("supervisor$ supervisor/admission supervisor/explain api"),
		reason: "the edges depend on spec and lifecycle, not on their callers",
	},
	{
		from: "runtime probes", never: ours("runtime probes hooks"),
		reason: "the edges do not depend on each other, the daemon connects them",
	},
	{from: "hooks", never: ours("runtime"), reason: "hooks run commands and send requests as probes do, and need nothing else"},
	{from: "runtime/", never: ours("runtime$"), reason: "runtime composes the packages below it"},
	{
		from: "internal/", except: daemon, never: ours("spec supervisor runtime probes hooks api " + daemon),
		reason: "internal packages do not depend on pods",
	},
	{from: "internal/daemon internal/server", never: ours(ofCommands), reason: "commands use the daemon, the daemon no commands"},
	{from: "spec supervisor runtime probes hooks api", never: ours(daemon), reason: "the daemon connects the packages that do the work"},
	{from: "spec supervisor runtime probes hooks api internal", never: ours("cmd test"), reason: "cmd and test are programs"},
	{
		from: "cmd", except: "cmd/containerd-shim-podstead-v1 cmd/podstead-monitor", never: ours("runtime probes hooks"),
		reason: "commands parse, call the client and print; internal does the work",
	},
	{
		from: "spec supervisor probes hooks api cmd internal", except: "cmd/containerd-shim-podstead-v1", never: "github.com/containerd/",
		reason: "only runtime imports containerd",
	},
	{
		from: "supervisor runtime probes hooks api cmd internal", never: "github.com/BurntSushi/ github.com/pelletier/",
		reason: "only spec imports TOML parsers",
	},
	{
		from: "spec supervisor runtime probes hooks api internal cmd", except: "internal/compose/converter",
		never:  "github.com/compose-spec/",
		reason: "only one package reads Compose files: the daemon takes pods",
	},
	{
		from: "spec supervisor runtime probes hooks api internal cmd", except: "cmd/podstead-compose",
		never:  ours("internal/compose/converter"),
		reason: "the library of Compose takes a third of the time in which podstead starts",
	},
}

// leaf is a package that all others may import.
const leaf = "internal/lazyregexp"

// daemon lists the packages that connect the others: the daemon, and what commands and the daemon share.
const daemon = "internal/config internal/daemon internal/server internal/view " + ofCommands

// ofCommands are those of them that run in commands only.
const ofCommands = "internal/bundle internal/compose internal/doctor internal/rootless internal/supportbundle"

// pure lists the packages that compute values from values, with all imports that they may have. They read no clock (forbidigo in
// .golangci.yml), no file and no environment.
var pure = map[string][]string{
	"supervisor/lifecycle": {
		"cmp", "errors", "fmt", "iter", "maps", "math", "reflect", "slices", "strconv", "strings", "time", module + "/spec",
	},
	"supervisor/admission": {
		"cmp", "fmt", "maps", "path", "slices", "strconv", "strings", module + "/spec", module + "/supervisor/lifecycle",
	},
}

func ours(directories string) string {
	return module + "/" + strings.ReplaceAll(directories, " ", " "+module+"/")
}

func TestImports(t *testing.T) {
	for _, s := range goFiles(t) {
		if s.isTest {
			continue
		}
		for _, imported := range s.imports {
			if reason := forbidden(s.dir, imported); reason != "" {
				t.Errorf("%s imports %s: %s", s.path, imported, reason)
			}
		}
	}
}

// forbidden returns why a package in dir must not import a path, or "".
func forbidden(dir, imported string) string {
	if imported == module+"/"+leaf {
		return ""
	}
	for _, rule := range importRules {
		if slices.ContainsFunc(strings.Fields(rule.except), func(except string) bool { return within(dir, except) }) {
			continue
		}
		for from := range strings.FieldsSeq(rule.from) {
			if !inRule(dir, from) || within(imported, module+"/"+from) {
				continue
			}
			for never := range strings.FieldsSeq(rule.never) {
				if reaches(imported, never) && imported != module+"/"+dir && !within(imported, module+"/"+dir) {
					return rule.reason
				}
			}
		}
	}
	return ""
}

func inRule(dir, from string) bool {
	if below, ok := strings.CutSuffix(from, "/"); ok {
		return dir != below && within(dir, below)
	}
	return within(dir, from)
}

func within(dir, tree string) bool {
	return dir == tree || strings.HasPrefix(dir, tree+"/")
}

func reaches(imported, pattern string) bool {
	if exact, ok := strings.CutSuffix(pattern, "$"); ok {
		return imported == exact
	}
	if strings.HasSuffix(pattern, "/") {
		return strings.HasPrefix(imported, pattern)
	}
	return within(imported, pattern)
}

// TestForbiddenImports checks the evaluation of importRules.
func TestForbiddenImports(t *testing.T) {
	for _, test := range []struct {
		dir, imported string
		want          bool
	}{
		{"spec", module + "/internal/guard", true},
		{"spec", module + "/" + leaf, false},
		{leaf, module + "/internal/guard", true},
		{"spec", "github.com/containerd/errdefs", true},
		{"runtime", "github.com/containerd/errdefs", false},
		{"runtime", module + "/runtime/volume", false},
		{"runtime/volume", module + "/runtime/oci", false},
		{"runtime/volume", module + "/runtime", true},
		{"runtime/cgroup/podcgroup", module + "/runtime", true},
		{"runtime/cgroup/podcgroup", module + "/runtime/cgroup", false},
		{"runtime/new/part", module + "/api", true},
		{"runtime", module + "/supervisor/lifecycle", false},
		{"runtime", module + "/supervisor", true},
		{"probes", module + "/hooks", true},
		{"hooks", module + "/probes", false},
		{"hooks", module + "/runtime", true},
		{"supervisor/state", module + "/supervisor", true},
		{"supervisor/explain", module + "/supervisor", false},
		{"supervisor/state", module + "/supervisor/lifecycle", false},
		{"supervisor/lifecycle/lifecycletest", module + "/supervisor/lifecycle", false},
		{"cmd/podstead", module + "/runtime", true},
		{"cmd/podstead/internal/connect", module + "/runtime/volume", true},
		{"cmd/podstead", module + "/internal/daemon", false},
		{"cmd/containerd-shim-podstead-v1", module + "/runtime/shim", false},
		{"internal/daemon/images", module + "/runtime/image", false},
		{"internal/plain", module + "/spec", true},
		{"internal/plain", module + "/internal/config", true},
		{"api", module + "/internal/daemon", true},
		{"supervisor/lifecycle", module + "/api", true},
		{"supervisor", module + "/api", false},
		{"supervisor", module + "/api/client", true},
		{"internal/server", module + "/api", false},
		{"internal/server", module + "/api/client", true},
		{"cmd/podstead", "github.com/BurntSushi/toml", true},
	} {
		if got := forbidden(test.dir, test.imported); (got != "") != test.want {
			t.Errorf("%s imports %s: forbidden %q, want %v", test.dir, test.imported, got, test.want)
		}
	}
}

func TestPurePackages(t *testing.T) {
	found := map[string]bool{}
	for _, s := range goFiles(t) {
		allowed, ok := pure[s.dir]
		if !ok || s.isTest {
			continue
		}
		found[s.dir] = true
		for _, imported := range s.imports {
			if !slices.Contains(allowed, imported) {
				t.Errorf("%s imports %s: the package may import only %s", s.path, imported, strings.Join(allowed, ", "))
			}
		}
	}
	for dir := range pure {
		if !found[dir] {
			t.Errorf("%s has no files", dir)
		}
	}
}

// dials are the ways to connect to a socket, or to open a session on one.
var dials = []string{"net.Dial", "net.DialTimeout", "net.DialUnix", "net.Dialer", "channel.Dial"}

// TestCommandsUseTheClient checks that commands reach the daemon by package api/client only: no package of commands connects to a
// socket or has a path of the API. That api/client itself has each of these shows that the check finds them.
func TestCommandsUseTheClient(t *testing.T) {
	inClient := map[string]bool{}
	for _, s := range goFiles(t) {
		isCommand := slices.ContainsFunc(strings.Fields("cmd/podstead "+ofCommands), func(dir string) bool { return within(s.dir, dir) })
		if s.isTest || !isCommand && !within(s.dir, "api/client") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			what := clientUse(n)
			switch {
			case what == "":
			case within(s.dir, "api/client"):
				inClient[what] = true
			default:
				t.Errorf("%s: %s: use api/client", fset.Position(n.Pos()), what)
			}
			return true
		})
	}
	for _, what := range []string{"net.Dialer", "channel.Dial", "unix", "/v1/"} {
		if !inClient[what] {
			t.Errorf("the check does not find %s in api/client", what)
		}
	}
}

// clientUse returns what only a client of the socket needs, or "".
func clientUse(n ast.Node) string {
	if selector, ok := n.(*ast.SelectorExpr); ok && slices.Contains(dials, selectorName(selector)) {
		return selectorName(selector)
	}
	literal, ok := n.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(literal.Value)
	switch {
	case err != nil:
	case text == "unix":
		return text
	case text == "/v1", strings.HasPrefix(text, "/v1/"), strings.Contains(text, "podstead/v1/"):
		return "/v1/"
	}
	return ""
}
