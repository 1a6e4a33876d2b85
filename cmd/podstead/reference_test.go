package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

const referencePage = "../../docs/reference/commands.md"

// TestReference holds the page of the commands against their help. With -update it writes the page.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Commands\n\nMade from the program by `go test ./cmd/podstead -run TestReference -update`.\n\n" +
		"Exit status, everywhere: 0 done; 1 it failed; 2 the command line, the configuration or a pod file is wrong; 3 no such pod or\n" +
		"container; 4 the daemon or the engine cannot be reached; 5 timed out. Every flag of a path has an environment variable and a key of\n" +
		"`/etc/podstead/podstead.toml` too: the flag goes before the variable, that before the file.\n")
	root := (&app{}).root()
	describeCommands(&b, root)
	want := b.String()
	if *update {
		if err := os.WriteFile(referencePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the program says: run the test with -update", referencePage)
	}
}

func describeCommands(b *strings.Builder, cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		fmt.Fprintf(b, "\n## %s\n\n%s\n\n```text\n%s\n", c.CommandPath(), c.Long, c.UseLine())
		if flags := c.LocalNonPersistentFlags(); flags.HasAvailableFlags() {
			fmt.Fprintf(b, "\n%s", flags.FlagUsages())
		}
		b.WriteString("```\n")
		describeCommands(b, c)
	}
	if !cmd.HasParent() {
		fmt.Fprintf(b, "\n## Flags of all commands\n\n```text\n%s```\n", cmd.PersistentFlags().FlagUsages())
		b.WriteString("\n`podstead completion bash|zsh|fish` prints a completion script; names of pods are completed from the daemon.\n")
	}
}
