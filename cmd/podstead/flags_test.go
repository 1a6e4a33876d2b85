package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestFlagsInScripts checks that a script, which runs the binary, uses every flag of the commands for pods that stay.
func TestFlagsInScripts(t *testing.T) {
	var lines []string
	scripts, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Split(string(text), "\n")...)
	}
	root := (&app{}).root()
	for _, name := range []string{"apply", "plan", "run", "stop", "start", "restart", "delete"} {
		cmd, _, err := root.Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			pattern := "podstead " + name + " .*--" + f.Name + `\b`
			if f.Shorthand != "" {
				pattern += "|podstead " + name + " (.* )?-" + f.Shorthand + `\b`
			}
			used := regexp.MustCompile(pattern)
			for _, line := range lines {
				if used.MatchString(line) {
					return
				}
			}
			if f.Name != "help" {
				t.Errorf("no script uses --%s of %s", f.Name, name)
			}
		})
	}
}
