package repo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// podstead builds podstead. It returns its path, and the dependencies of functions and types that its linker found.
func podstead(t *testing.T) (binary, dependencies string) {
	t.Helper()
	// In a directory that stays, with the flags of make build: only the main package is compiled twice. Go keeps what the linker prints
	// with the compiled main package, and prints it again at each build that uses that.
	const own = "-gcflags=./cmd/podstead=-dwarf=false"
	binary, err := filepath.Abs(".cache/repo/podstead")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		build := exec.CommandContext(t.Context(),
			"go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags=-dumpdep", own, "-o", binary, "./cmd/podstead")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := build.CombinedOutput()
		if err != nil {
			t.Fatalf("go build: %v\n%s", err, out[max(0, len(out)-4096):])
		}
		if dependencies = string(out); strings.Contains(dependencies, " -> main.main\n") {
			return binary, dependencies
		}
		// The program is up to date, and Go has lost the output of the linker.
		if err := os.Remove(binary); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("the linker printed no dependencies:\n%s", dependencies[:min(4096, len(dependencies))])
	return "", ""
}

// byName returns the first function that calls methods by names which the linker does not know, after those through which main reaches it.
// It is empty if there is none. Further ones may be methods that the linker keeps because of the first.
func byName(dependencies string) string {
	users := map[string]string{}
	for line := range strings.Lines(dependencies) {
		user, used, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " -> ")
		if !ok {
			continue
		}
		name, flags, _ := strings.Cut(used, " <")
		if users[name] == "" {
			users[name], _, _ = strings.Cut(user, " <")
		}
		if !strings.Contains(flags, "ReflectMethod>") {
			continue
		}
		path := []string{name}
		for name != "main.main" && users[name] != "" {
			name = users[name]
			path = append(path, name)
		}
		slices.Reverse(path)
		return strings.Join(path, " -> ")
	}
	return ""
}

// TestMethodsByName checks that podstead calls no method by its name, as text/template and html/template do. The linker then keeps all
// exported methods of all types, which are 6.6 MB. docs/dependencies.md tells what else to use.
func TestMethodsByName(t *testing.T) {
	if _, dependencies := podstead(t); byName(dependencies) != "" {
		t.Errorf("a method is called by its name: %s", byName(dependencies))
	}
}

// TestByName checks the evaluation of the linker's output.
func TestByName(t *testing.T) {
	const used = `# github.com/podstead/podstead/cmd/podstead
_ -> runtime.main
runtime.main -> main.main
main.main -> main.usage
main.usage -> type:main.page <UsedInIface>
main.usage -> text/template.(*Template).Execute
`
	const found = `text/template.(*Template).Execute -> text/template.(*state).evalField <ReflectMethod>
text/template.(*state).evalField <ReflectMethod> -> reflect.Value.MethodByName
type:main.page <UsedInIface> -> main.page.Call <UsedInIface><ReflectMethod>
`
	const want = "main.main -> main.usage -> text/template.(*Template).Execute -> text/template.(*state).evalField"
	if got := byName(used + found); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := byName(used); got != "" {
		t.Errorf("%q, want none", got)
	}
}
