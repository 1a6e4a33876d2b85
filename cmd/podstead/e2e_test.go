//go:build e2e

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podstead/podstead/test/suite"
)

func init() {
	wrapRun = func(run func() int) int {
		return suite.Main(run, suite.Options{
			Slow: []string{
				"TestE2EScripts/^errors-moments$", "TestE2EScripts/^errors-slow$", "TestE2EScripts/^bundle$", "TestHelpExamples",
			},
			Parts: map[string][]string{
				"TestE2EScripts":   exactly(baseNames("testdata/e2e/*.txtar", ".txtar")),
				"TestPages":        exactly(pageNames()),
				"TestHelpExamples": exampleGroups(),
			},
		})
	}
}

// exactly returns patterns of names.
func exactly(names []string) []string {
	patterns := make([]string, len(names))
	for i, name := range names {
		patterns[i] = "^" + regexp.QuoteMeta(name) + "$"
	}
	return patterns
}

// baseNames returns the names of the files that match a pattern, without a suffix.
func baseNames(pattern, suffix string) []string {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		panic(err) // the pattern is a constant
	}
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = strings.TrimSuffix(filepath.Base(path), suffix)
	}
	return names
}

// TestE2EScripts runs the scripts in testdata/e2e on real containers, with the programs of `make build`.
func TestE2EScripts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("containers need root")
	}
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(repo, "bin")
	for _, file := range []string{
		filepath.Join(bin, "podstead"), filepath.Join(bin, "podstead-compose"), filepath.Join(bin, "podstead-monitor"),
		filepath.Join(bin, "containerd-shim-podstead-v1"),
		"../../examples/images/busybox.tar",
	} {
		if _, err := os.Stat(file); err != nil {
			t.Fatalf("%v: run make build images first", err)
		}
	}
	runScripts(t, testscript.Params{
		Dir: "testdata/e2e", UpdateScripts: *update, RequireExplicitExec: true, Cmds: imageCommands,
		Setup: func(env *testscript.Env) error {
			if err := setupScript(env); err != nil {
				return err
			}
			env.Values[registriesKey{}] = map[string]func(){}
			env.Setenv("PATH", bin+":"+env.Getenv("PATH"))
			env.Defer(func() { // a script that failed may not have stopped its daemon
				stop := exec.Command(filepath.Join(bin, "podstead"), "daemon", "stop", "--pods")
				stop.Env = env.Vars
				if out, err := stop.CombinedOutput(); err != nil {
					t.Logf("stop the daemon: %v: %s", err, out)
				}
			})
			env.Setenv("EXAMPLES", filepath.Join(env.Getenv("REPO"), "examples"))
			return os.Chmod(env.Getenv("TESTDIR"), 0o755)
		},
	})
}
