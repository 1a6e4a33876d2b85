// Command reach prints which suites of CI a change can affect: those whose tests, or the programs that they run, depend on a changed
// package, or which read a changed file.
//
//	go run ./test/reach BASE
//
// BASE is a commit. It prints a line "name yes|no reason" for each suite. If BASE is unknown in this clone, each suite is affected.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"slices"
	"strings"
	"syscall"
)

// suite is a suite of CI that runs only if a change can affect it.
type suite struct {
	name     string
	packages []string // patterns of the go command
	programs []string // packages that it runs without their tests: programs, for example
	files    []string // files, or directories with a slash at the end
}

var suites = []suite{
	{
		name: "crun", packages: []string{"./runtime", "./test/hostile"}, programs: programs,
		files: []string{"test/images/", "test/purecgroup/"},
	},
	{name: "mutate", packages: []string{"./supervisor/lifecycle", "./test/mutate"}, files: []string{"docs/mutants.md"}},
	{name: "packages", programs: programs, files: packaged},
	{
		name: "vm", packages: []string{"./test/vm/..."}, programs: programs,
		files: append([]string{"test/faults/testdata/stack/", "test/images/", "test/upgrade/previous"}, packaged...),
	},
	// Tests of runtime. What they import besides is no reason to run them in a virtual machine.
	{name: "vm-runtime", programs: append([]string{"./runtime"}, programs[2:]...), files: []string{"runtime/", "test/"}},
	// What these packages need of the kernel, udev and a TPM. Other tests have the rest of the daemon.
	{
		name: "vm-devices", programs: []string{"./runtime/container", "./runtime/configsource"},
		files: []string{"runtime/", "supervisor/device.go", "test/internal/", "test/vm/"},
	},
}

// packaged are files that packages contain, or that build them.
var packaged = []string{"packaging/", "examples/", "tools/", "CHANGELOG.md", "LICENSE", "README.md"}

// programs are those of make build. The last two run containers.
var programs = []string{"./cmd/podstead", "./cmd/podstead-compose", "./cmd/containerd-shim-podstead-v1", "./cmd/podstead-monitor"}

// everywhere are files that can affect each suite.
var everywhere = []string{".ci/", "go.mod", "go.sum", "Makefile"}

// checked has the commit of the last run of all suites, which is usually BASE. It affects nothing.
const checked = ".ci/checked"

const module = "github.com/podstead/podstead"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "reach:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: reach BASE")
	}
	base := args[0]
	if _, err := output(ctx, "git", "rev-parse", "--verify", "--quiet", base+"^{commit}"); err != nil {
		for _, s := range suites {
			fmt.Fprintf(out, "%s yes commit %q is not in this clone\n", s.name, base)
		}
		return nil
	}
	changed, err := changedSince(ctx, base)
	if err != nil {
		return err
	}
	for _, s := range suites {
		packages, err := s.reached(ctx)
		if err != nil {
			return err
		}
		affected, reason := s.affectedBy(changed, packages)
		word := "no"
		if affected {
			word = "yes"
		}
		fmt.Fprintf(out, "%s %s %s\n", s.name, word, reason)
	}
	return nil
}

// changedSince returns the files that differ from a commit, with those that git does not track.
func changedSince(ctx context.Context, base string) ([]string, error) {
	changed, err := output(ctx, "git", "diff", "-z", "--name-only", "--no-renames", base)
	if err != nil {
		return nil, err
	}
	untracked, err := output(ctx, "git", "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	files := strings.FieldsFunc(changed+untracked, func(r rune) bool { return r == 0 })
	return slices.DeleteFunc(files, func(file string) bool { return file == checked }), nil
}

// reached are the directories of the packages of the module that a suite depends on.
type reached struct {
	code  map[string]bool
	tests map[string]bool // the suite runs their tests
}

func (s suite) reached(ctx context.Context) (reached, error) {
	tests, err := packageDirs(ctx, s.packages)
	if err != nil {
		return reached{}, err
	}
	code, err := packageDirs(ctx, s.packages, "-deps", "-test")
	if err != nil {
		return reached{}, err
	}
	ofPrograms, err := packageDirs(ctx, s.programs, "-deps")
	maps.Copy(code, ofPrograms)
	return reached{code, tests}, err
}

// packageDirs returns what go list prints for patterns of packages, as directories of the module.
func packageDirs(ctx context.Context, patterns []string, flags ...string) (map[string]bool, error) {
	dirs := map[string]bool{}
	if len(patterns) == 0 {
		return dirs, nil
	}
	const format = "{{if not .Standard}}{{.ImportPath}}{{end}}"
	args := slices.Concat([]string{"list", "-tags", "e2e,vm,grpcnotrace", "-f", format}, flags, patterns)
	text, err := output(ctx, "go", args...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ") // "p [p.test]"
		if dir, ok := strings.CutPrefix(name, module); ok {
			dirs[cmp.Or(strings.TrimPrefix(dir, "/"), ".")] = true
		}
	}
	return dirs, nil
}

// affectedBy reports whether changed files affect the suite, and why.
func (s suite) affectedBy(changed []string, r reached) (bool, string) {
	for _, file := range changed {
		for _, pattern := range slices.Concat(everywhere, s.files) {
			if file == pattern || strings.HasSuffix(pattern, "/") && strings.HasPrefix(file, pattern) {
				return true, file + " was changed"
			}
		}
		if r.has(file) {
			return true, file + " was changed, in a package that it depends on"
		}
	}
	return false, fmt.Sprintf("none of the %d changed files is in the %d packages that it depends on", len(changed), len(r.code))
}

// has reports whether a file belongs to a package: that of its directory or, for a file such as one of testdata, of the nearest one above.
// Documentation belongs to none.
func (r reached) has(file string) bool {
	if path.Ext(file) == ".md" {
		return false
	}
	dirs := r.code
	if strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/testdata/") {
		dirs = r.tests
	}
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if dirs[dir] {
			return true
		}
		if path.Ext(file) == ".go" {
			return false // of another package
		}
	}
	return false
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(out), nil
}
