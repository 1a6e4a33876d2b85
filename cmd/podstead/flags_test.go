package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// flagNames matches a flag in the help: the short name, which may be empty, and the long one.
var flagNames = regexp.MustCompile(`(?m)^ +(?:(-[a-z]), )?--([a-z-]+)`)

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
	for _, name := range []string{"apply", "plan", "run", "stop", "start", "restart", "delete", "wait", "ps", "down", "kill", "rm"} {
		cmd, _, err := root.Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		for _, flag := range flagNames.FindAllStringSubmatch(cmd.LocalNonPersistentFlags().FlagUsages(), -1) {
			pattern := "podstead " + name + " .*--" + flag[2] + `\b`
			if flag[1] != "" {
				pattern += "|podstead " + name + " (.* )?" + flag[1] + `\b`
			}
			used := regexp.MustCompile(pattern)
			if flag[2] != "help" && !slices.ContainsFunc(lines, used.MatchString) {
				t.Errorf("no script uses --%s of %s", flag[2], name)
			}
		}
	}
}
