package main

import (
	"regexp"
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

// TestCommandHints checks that hints name only commands that exist, and that no hint replaces a command.
func TestCommandHints(t *testing.T) {
	exists := func(name string) bool {
		return slices.ContainsFunc((&app{}).root().Commands(), func(c *cobra.Command) bool { return c.Name() == name && !c.Hidden })
	}
	command := regexp.MustCompile(`podstead ([a-z]+)`)
	for _, h := range commandHints {
		for _, match := range command.FindAllStringSubmatch(h.hint, -1) {
			if !exists(match[1]) {
				t.Errorf("hint %q: there is no command %s", h.hint, match[1])
			}
		}
		for _, name := range h.names {
			if exists(name) {
				t.Errorf("%s is a command and has a hint", name)
			}
		}
	}
}
