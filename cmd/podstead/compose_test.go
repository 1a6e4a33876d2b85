package main

import (
	"os"
	"strings"
	"testing"

	"github.com/podstead/podstead/cmd/podstead/internal/compose"
)

const composePage = "../../docs/reference/compose.md"

// TestComposePage compares docs/reference/compose.md with the table of keys. With -update it writes the page.
func TestComposePage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Keys of Compose files\n\n```console\n$ podstead convert compose.yaml --short >shop.toml\n$ podstead up -d --wait\n```\n\n" +
		"`convert` prints a Compose file as a pod file, and all commands that read pod files take it as it is. Each service becomes a pod.\n" +
		"[Coming from Docker Compose](../howto/coming-from-docker-compose.md) has an example. This page lists what becomes of each key. It is\n" +
		"generated from the table in `cmd/podstead/internal/compose/keys.go`, and a test compares that with the types of the library of Compose.\n\n" +
		"| Verdict | Meaning |\n| --- | --- |\n" +
		"| taken | the key has the same effect |\n" +
		"| dropped | a warning: the application behaves the same without it |\n" +
		"| lost | an error, and a warning with `--allow-loss`: the application behaves differently without it |\n" +
		"| refused | an error: the project does not work without it |\n\n" +
		"Keys that begin with `x-` have no effect. Files that the project names (`include`, `extends`, `env_file`, `label_file`) are read if they\n" +
		"are below the directory of the first Compose file, or of `--allow-dir`, also after symbolic links. A process with limits of time and\n" +
		"memory reads them, and the kernel denies it all other files (Landlock, Linux 5.13).\n\n" +
		"| Key | Verdict | What becomes of it, or why it is not taken |\n| --- | --- | --- |\n")
	for _, k := range compose.Keys {
		note := k.Note
		if k.Hint != "" {
			note += ". Instead, " + k.Hint
		}
		b.WriteString("| `" + k.Path + "` | " + string(k.Verdict) + " | " + note + " |\n")
	}
	want := b.String()
	if *update {
		if err := os.WriteFile(composePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(composePage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s differs from the table: run the test with -update", composePage)
	}
}
