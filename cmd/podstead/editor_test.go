package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// scriptedEditor sets an editor that runs a script with the path of the file as $1, and collects temporary files in an own directory.
func scriptedEditor(t *testing.T, script string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	path := filepath.Join(dir, "editor")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nset -e\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	tmp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("VISUAL", "sh "+path)
	t.Setenv("TMPDIR", tmp)
	return dir
}

// readIfPresent returns the content of a file; empty: it does not exist.
func readIfPresent(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}

// editedCopies returns the copies that are left.
func editedCopies(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "tmp", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestEditor checks what is accepted, how often the editor opens, the error, and whether the copy is kept.
func TestEditor(t *testing.T) {
	const note = "#! The file is invalid and was not applied. Correct it, or close it without a change. These lines are removed.\n#! " +
		"web.toml:1:1: wrong\n"
	for _, test := range []struct {
		name, file, script string
		accepted           string
		seen               string // by the editor, the last time
		err                string
		kept               string
	}{
		{"changed", "web.toml", `echo b > "$1"`, "b\n", "a\n", "", ""},
		{"unchanged", "web.toml", ":", "", "a\n", "the file was not changed", ""},
		{"editor fails", "web.toml", "exit 3", "", "a\n", "exit status 3", ""},
		{"editor fails after it has saved", "web.toml", `echo b > "$1"; exit 3`, "", "a\n", "exit status 3; the edited copy is ", "b\n"},
		{"comment that looks like the note", "web.toml", `sed -i '1i #! mine' "$1"`, "#! mine\na\n", "a\n", "", ""},
		{
			"corrected", "web.toml", `if grep -q '^#!' "$1"; then sed -i s/wrong$/right/ "$1"; else echo wrong > "$1"; fi`, "right\n",
			note + "wrong\n", "", "",
		},
		{
			"undone after an error", "web.toml", `if grep -q '^#!' "$1"; then echo a > "$1"; else echo wrong > "$1"; fi`, "",
			note + "wrong\n", "the file was not changed", "",
		},
		{
			"not corrected", "web.toml", `grep -q '^#!' "$1" || echo wrong > "$1"`, "", note + "wrong\n",
			"the file is invalid and was not changed again: web.toml:1:1: wrong; the edited copy is ", note + "wrong\n",
		},
		{
			"editor fails after an error", "web.toml", `if grep -q '^#!' "$1"; then exit 3; fi; echo wrong > "$1"`, "", note + "wrong\n",
			"the edited copy is ", note + "wrong\n",
		},
		{"format without comments", "web.json", `echo wrong > "$1"`, "", "a\n", "web.toml:1:1: wrong; the edited copy is ", "wrong\n"},
		{"not accepted for another reason", "web.toml", `echo gone > "$1"`, "", "a\n", "daemon is gone; the edited copy is ", "gone\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := scriptedEditor(t, `cp "$1" "$TMPDIR/../seen"`+"\n"+test.script)
			accepted := ""
			err := (&app{}).editText(t.Context(), test.file, "a\n", func(_ context.Context, text string) error {
				switch {
				case strings.HasPrefix(text, "wrong"):
					return &invalidEdit{problems: []string{"web.toml:1:1: wrong"}}
				case strings.HasPrefix(text, "gone"):
					return errors.New("daemon is gone")
				}
				accepted = text
				return nil
			})
			if accepted != test.accepted {
				t.Errorf("accepted %q, want %q", accepted, test.accepted)
			}
			if seen := readIfPresent(t, filepath.Join(dir, "seen")); seen != test.seen {
				t.Errorf("the editor showed:\n%swant:\n%s", seen, test.seen)
			}
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			left := editedCopies(t, dir)
			if test.kept == "" && len(left) > 0 ||
				test.kept != "" && (len(left) != 1 || readIfPresent(t, left[0]) != test.kept || !strings.Contains(err.Error(), left[0])) {
				t.Errorf("copies %v, want one with %q, named in %v", left, test.kept, err)
			}
		})
	}
}

// TestEditedCopyIsPrivate: other users cannot read the copy, which may contain secrets, and its name has the extension of the file.
func TestEditedCopyIsPrivate(t *testing.T) {
	dir := scriptedEditor(t, `stat -c %a "$1" "$(dirname "$1")" > "$TMPDIR/../modes"; basename "$1" >> "$TMPDIR/../modes"`)
	if err := (&app{}).editText(t.Context(), "web.yaml", "a", nil); !errors.Is(err, errUnchanged) {
		t.Fatal(err)
	}
	if got := readIfPresent(t, filepath.Join(dir, "modes")); got != "600\n700\nweb.yaml\n" {
		t.Errorf("modes of the file and its directory, and its name:\n%s", got)
	}
}

// TestEditorCommand: KUBE_EDITOR takes precedence over VISUAL, and that over EDITOR.
func TestEditorCommand(t *testing.T) {
	t.Setenv("KUBE_EDITOR", "ed")
	t.Setenv("VISUAL", "code --wait")
	t.Setenv("EDITOR", "nano")
	if got := editorCommand(); got != "ed" {
		t.Errorf("command %q", got)
	}
	t.Setenv("KUBE_EDITOR", "")
	if got := editorCommand(); got != "code --wait" {
		t.Errorf("command %q", got)
	}
	t.Setenv("VISUAL", "")
	if got := editorCommand(); got != "nano" {
		t.Errorf("command %q", got)
	}
	t.Setenv("EDITOR", "")
	if got := editorCommand(); got != "vi" {
		t.Errorf("command %q", got)
	}
}
