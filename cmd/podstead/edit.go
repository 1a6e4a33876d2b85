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

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

func (a *app) editCommand() *cobra.Command {
	var ready readiness
	cmd := &cobra.Command{
		Use:   "edit POD",
		Short: "Edit the file of a pod",
		Long: `Open a copy of a pod's file in the pods directory with the editor of the environment variable KUBE_EDITOR, VISUAL or
EDITOR, or vi. When the editor exits, check the copy and apply it like podstead apply. If it is invalid, the editor opens again with the
errors at the top of the file. A file that was not changed is not applied.

Pods of podstead run have no file in the pods directory: edit the file that they were started from.`,
		Example: `  # Edit a pod
  podstead edit web

  # Edit a pod with another editor, and wait until it is ready
  EDITOR=nano podstead edit web --wait`,
		Args:              onePod,
		ValidArgsFunction: a.completeOnePod,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.edit(cmd, args, &ready) },
	}
	ready.waitFlags(cmd)
	return cmd
}

func (a *app) edit(cmd *cobra.Command, args []string, ready *readiness) error {
	if err := ready.check(cmd); err != nil {
		return err
	}
	w, err := a.watcher(cmd)
	if err != nil {
		return err
	}
	pod, err := w.Client.Pod(cmd.Context(), podName(cmd, args))
	if err != nil {
		return err
	}
	name, file := pod.Metadata.Name, pod.Status.File
	if file == "" {
		return &failure{
			status: statusFailed, err: fmt.Errorf("pod %q has no file in the pods directory: %s created it", name, pod.Status.Owner),
			hints: []string{"edit the file that it was created from"},
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	own, err := spec.Own(file, text, name)
	if err != nil {
		return err
	}
	var result api.Applied
	err = a.editText(cmd.Context(), filepath.Base(file), string(own), func(ctx context.Context, edited string) (err error) {
		if now, err := os.ReadFile(file); err != nil || string(now) != string(text) {
			return errors.Join(fmt.Errorf("the file %s has been changed since", file), err)
		}
		result, err = applyEdited(ctx, w.Client, name, api.ApplyRequest{File: file, Text: edited})
		return err
	})
	if errors.Is(err, errUnchanged) {
		a.note("%v, nothing was applied", err)
		return nil
	}
	if err != nil {
		err = fmt.Errorf("edit pod %q: %w", name, err)
		if _, ok := errors.AsType[*invalidEdit](err); ok {
			return &failure{status: statusUsage, err: err}
		}
		return err
	}
	fmt.Fprintln(a.out, plain.Text(view.Applied(&result)))
	if !ready.wait {
		a.noteRolledBack(cmd.Context(), w.Client, &result)
		return nil
	}
	err = a.rolledBack(cmd, w.Client, &result)
	return errors.Join(err, a.awaitReady(cmd, w, goalsOf([]api.Applied{result}, []api.Pod{pod}), ready))
}

// applyEdited applies an edited pod file. The error is *invalidEdit if the file is to be corrected.
func applyEdited(ctx context.Context, c *client.Client, name string, q api.ApplyRequest) (api.Applied, error) {
	q.DryRun = true
	planned, err := c.Apply(ctx, q)
	if problems := problemsOf(err); len(problems) > 0 {
		invalid := &invalidEdit{}
		for _, p := range problems {
			invalid.problems = append(invalid.problems, plain.Text(spec.Problem(p).String()))
		}
		return planned, invalid
	}
	if err != nil {
		return planned, err
	}
	if planned.Pod != name {
		return planned, &invalidEdit{
			problems: []string{fmt.Sprintf("name: must remain %q: a pod cannot be renamed, apply a new file instead", name)},
		}
	}
	q.DryRun = false
	return c.Apply(ctx, q)
}

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
