package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

const referencePage = "../../docs/reference/commands.md"

// introduction is the part of the reference page before the commands.
const introduction = `
Generated from the help of the commands by ` + "`go test ./cmd/podstead -run TestReference -update`" + `.

| exit code | meaning |
| --- | --- |
| 0 | success |
| 1 | failure |
| 2 | the command line, the configuration or a pod file is invalid |
| 3 | no such pod or container |
| 4 | the daemon or the container engine is unavailable |
| 5 | timed out |
| 6 | podstead plan --exit-code: apply would change something |

Flags that show an environment variable can also be set by that variable, or by a key of ` + "`podstead.toml`" + ` in
` + "`/etc/podstead`" + ` or, for the daemon of a user, in ` + "`~/.config/podstead`" + `. The flag takes precedence over the variable,
and the variable over the file. ` + "`podstead daemon`" + ` has a flag and a variable for each of the
[other keys](configuration.md#keys).

All commands use the [API](api.md) of the daemon. [Access](api.md#access) describes who may use which command.
`

// TestReference compares the reference page of the commands with their help. With -update it writes the page.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Commands\n\n```console\n$ podstead --help\n")
	a := &app{out: &b, err: &b}
	if code := a.run(t.Context(), []string{"--help"}); code != 0 {
		t.Fatalf("podstead --help: exit code %d", code)
	}
	b.WriteString("$ podstead help all\n")
	if code := a.run(t.Context(), []string{"help", "all"}); code != 0 {
		t.Fatalf("podstead help all: exit code %d", code)
	}
	b.WriteString("```\n" + introduction)
	writeOtherNames(&b, a.root())
	writeCommands(&b, a.root())
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
		t.Errorf("%s differs from the help of the commands: run the test with -update", referencePage)
	}
}

// TestHelp checks that every command has a description and examples with comments, and that short descriptions have no full stop.
func TestHelp(t *testing.T) {
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			check(c)
		}
		if cmd.Hidden {
			return
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: short description %q, want a phrase without full stop", cmd.CommandPath(), cmd.Short)
		}
		if !strings.HasSuffix(cmd.Long, ".") {
			t.Errorf("%s: description %q, want sentences", cmd.CommandPath(), cmd.Long)
		}
		if n := strings.Count(cmd.Example, "  # "); n < 2 {
			t.Errorf("%s: %d examples with comments, want at least 2", cmd.CommandPath(), n)
		}
	}
	check((&app{}).root())
}

// writeOtherNames writes a table of the commands and aliases that the help does not list.
func writeOtherNames(b *strings.Builder, root *cobra.Command) {
	b.WriteString("\n## Other names\n\n" +
		"Words of kubectl, docker, podman and docker compose for what another command does. The help does not list them.\n\n| command | " +
		"what it does |\n| --- | --- |\n")
	eachCommand(root, func(cmd *cobra.Command) {
		if strings.HasPrefix(cmd.Short, "As podstead ") {
			fmt.Fprintf(b, "| `%s` | %s |\n", cmd.CommandPath(), cmd.Short)
		}
		for _, alias := range cmd.Aliases {
			if !cmd.Hidden {
				fmt.Fprintf(b, "| `%s %s` | As %s |\n", cmd.Parent().CommandPath(), alias, cmd.CommandPath())
			}
		}
	})
	b.WriteString("\nNor does it list flags that repeat another one or change nothing: `-f FILE` of apply, plan and bundle create (the\n" +
		"arguments), `delete --now` (`--grace-period 1`), `run --detach` (apply), also with `--wait`, `events --watch` (`--follow`),\n" +
		"`events --for POD` (the argument), `image ls -q` (`-o name`), `--version` (version), `logs --all-containers`,\n" +
		"`--namespace default`, and `--all-namespaces`, with which get adds a column.\n")
}

func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		fmt.Fprintf(b, "\n## %s\n\n%s\n\n```sh\n%s\n```\n\n```text\n%s\n", c.CommandPath(), c.Long, unindent(c.Example), c.UseLine())
		if flags := c.LocalNonPersistentFlags(); flags.HasAvailableFlags() {
			fmt.Fprintf(b, "\n%s", flags.FlagUsages())
		}
		b.WriteString("```\n")
		writeCommands(b, c)
	}
	if !cmd.HasParent() {
		b.WriteString("\n## podstead completion\n\nPrint a completion script for bash, zsh, fish or powershell. Names of pods are " +
			"completed from the daemon.\n\n" +
			"```sh\n# Load completions for bash\nsource <(podstead completion bash)\n```\n")
	}
}

// unindent removes the indentation of examples.
func unindent(example string) string {
	return strings.TrimPrefix(strings.ReplaceAll(example, "\n  ", "\n"), "  ")
}
