package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// errUnchanged is returned if the text was not changed.
var errUnchanged = errors.New("the file was not changed")

// editorComment starts the lines with the errors of the previous attempt. They are not part of the text.
const editorComment = "#! "

// editorCommand returns the command of the editor: the first of KUBE_EDITOR (as in kubectl), VISUAL and EDITOR that is set, else vi.
func editorCommand() string {
	return cmp.Or(os.Getenv("KUBE_EDITOR"), os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
}

// editText lets a person edit a copy of a text in a file with the given base name. It calls accept with each new text, and opens the editor
// again with the error until the text is accepted. It returns errUnchanged if the text is still the same, and an error that names the copy
// if the editor fails or the text was not changed after an error of accept.
func (a *app) editText(ctx context.Context, base, text string, accept func(ctx context.Context, text string) error) error {
	dir, err := os.MkdirTemp("", "podstead-edit-") // only the user can read it: pod files may contain secrets
	if err != nil {
		return fmt.Errorf("create a copy of the file: %w", err)
	}
	path := filepath.Join(dir, base)
	keep := false
	defer func() {
		if !keep {
			_ = os.RemoveAll(dir)
		}
	}()
	last, note := text, ""
	var invalid error
	for {
		if err := os.WriteFile(path, []byte(note+last), 0o600); err != nil {
			return fmt.Errorf("write a copy of the file: %w", err)
		}
		openErr := a.openEditor(ctx, path)
		data, err := os.ReadFile(path)
		edited := withoutNote(string(data), note)
		if openErr != nil {
			keep = err == nil && edited != text // what the user has saved
			return keptCopy(keep, path, fmt.Errorf("run editor %q: %w", editorCommand(), openErr))
		}
		if err != nil {
			return fmt.Errorf("read the edited file: %w", err)
		}
		switch edited {
		case text:
			return errUnchanged
		case last:
			keep = true
			return keptCopy(true, path, fmt.Errorf("%w: %w", errNotCorrected, invalid))
		}
		if invalid = accept(ctx, edited); invalid == nil {
			return nil
		}
		last, note = edited, noteOf(base, invalid)
		if note == "" {
			keep = true
			return keptCopy(true, path, invalid)
		}
	}
}

// errNotCorrected is the error of a text that the user did not correct.
var errNotCorrected = errors.New("the file is invalid and was not changed again")

// keptCopy adds the path of the copy to an error.
func keptCopy(keep bool, path string, err error) error {
	if !keep {
		return err
	}
	return fmt.Errorf("%w; the edited copy is %s", err, path)
}

// invalidEdit is an error that a change of the text can correct. Other errors end the editing.
type invalidEdit struct {
	problems []string // a line each
}

// Error returns the problems.
func (e *invalidEdit) Error() string { return strings.Join(e.problems, "; ") }

// noteOf returns the comment with an error; empty: editing again does not help, or the format has no comments.
func noteOf(base string, err error) string {
	e, ok := errors.AsType[*invalidEdit](err)
	if !ok || filepath.Ext(base) == ".json" {
		return ""
	}
	var b strings.Builder
	b.WriteString(editorComment + "The file is invalid and was not applied. Correct it, or close it without a change. " +
		"These lines are removed.\n")
	for _, p := range e.problems {
		for line := range strings.SplitSeq(p, "\n") {
			b.WriteString(editorComment + line + "\n")
		}
	}
	return b.String()
}

// withoutNote removes the lines of a note that the user has left, changed or not.
func withoutNote(text, note string) string {
	for range strings.Count(note, "\n") {
		if !strings.HasPrefix(text, editorComment) {
			break
		}
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

// openEditor runs the editor. Meanwhile the keys that send SIGINT and SIGQUIT are the editor's.
func (a *app) openEditor(ctx context.Context, path string) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT)
	defer signal.Stop(signals)
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", editorCommand()+` "$@"`, "sh", path) // the variable may have arguments, as for git
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.in, a.out, a.err
	return cmd.Run()
}
