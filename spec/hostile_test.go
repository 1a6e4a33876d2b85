package spec

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestHostileFiles checks that the memory of a parse is bounded for hostile files
// of the maximum size.
func TestHostileFiles(t *testing.T) {
	const limit = 512 << 20 // total bytes allocated
	many := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < maxFileBytes-100; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	const manifest = "apiVersion: v1\nkind: Pod\nspec:\n"
	for name, file := range map[string]string{
		"keys.toml":        many("k%d = 1\n"),
		"long keys.toml":   "[" + strings.Repeat("a", 1000) + "]\n" + many("k%d = 1\n"),
		"containers.toml":  many("[[containers]]\nx%d = 1\n"),
		"one line.toml":    "a = [" + many("%d, ") + "]\n",
		"dots.toml":        strings.Repeat("a.", maxFileBytes/2-10) + "a = 1\n",
		"brackets.toml":    "a = " + strings.Repeat("[", maxFileBytes-10),
		"aliases.yaml":     manifest + aliases(12),
		"self alias.yaml":  manifest + "  volumes: &a [*a]\n",
		"deep.yaml":        manifest + "  volumes: " + strings.Repeat("[", 9000),
		"below.toml":       "[" + strings.Repeat("a", 1000) + "]\n" + firstLines(many("k%d = 1\n"), maxNodes-10),
		"documents.yaml":   strings.Repeat("---\n", maxFileBytes/4),
		"merges.yaml":      "a: &a\n" + firstLines(many("  k%d:\n"), 15000) + "b:\n" + many("- <<: *a # %d\n"),
		"keys.yaml":        manifest + many("  k%d: 1\n"),
		"one string.toml":  "name = \"" + strings.Repeat("x", maxFileBytes-20) + "\"\n",
		"many breaks.toml": strings.Repeat("\n", maxFileBytes-20) + "x",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			pod, problems := Parse(name, []byte(file[:min(len(file), maxFileBytes)]))
			runtime.ReadMemStats(&after)
			if pod != nil || len(problems) == 0 {
				t.Error("the file was accepted")
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > limit {
				t.Errorf("%d MiB were allocated", used>>20)
			}
			t.Logf("%d problems, %d MiB", len(problems), (after.TotalAlloc-before.TotalAlloc)>>20)
		})
	}
}

// aliases is a YAML bomb: each line has eight aliases of the line before.
func aliases(lines int) string {
	var b strings.Builder
	b.WriteString("  l0: &l0 [x, x, x, x, x, x, x, x]\n")
	for i := 1; i < lines; i++ {
		fmt.Fprintf(&b, "  l%d: &l%d [%s]\n", i, i, repeat(fmt.Sprintf("*l%d", i-1), 8))
	}
	return b.String()
}

func firstLines(s string, n int) string {
	return strings.Join(strings.SplitAfterN(s, "\n", n+1)[:n], "")
}
