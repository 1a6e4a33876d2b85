package converter

import (
	"os"
	"strings"
	"testing"
)

const composePage = "../../../docs/reference/compose.md"

// TestComposePage compares docs/reference/compose.md with the table of keys. With -update it writes the page.
func TestComposePage(t *testing.T) {
	var b strings.Builder
	head, err := os.ReadFile("testdata/keys.md")
	if err != nil {
		t.Fatal(err)
	}
	b.Write(head)
	for _, k := range Keys {
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
