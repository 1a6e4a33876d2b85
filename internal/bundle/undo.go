package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/atomicfile"
)

// readEarlier returns the files of the pods before the bundle; nil: the pod is new. The error says why a failure could not be undone.
func (t *Transaction) readEarlier(ctx context.Context, plans []api.Applied) ([]*api.ApplyRequest, error) {
	earlier := make([]*api.ApplyRequest, len(plans))
	for i := range plans {
		file, err := t.earlierFile(ctx, &plans[i])
		if err != nil {
			return nil, fmt.Errorf("pod %q: %w", plans[i].Pod, err)
		}
		earlier[i] = file
	}
	return earlier, nil
}

// earlierFile returns the file that a pod has now, which may have another name than that of the bundle.
func (t *Transaction) earlierFile(ctx context.Context, plan *api.Applied) (*api.ApplyRequest, error) {
	var found []*api.ApplyRequest
	for _, path := range slices.Concat([]string{plan.File}, plan.Replaced) {
		text, err := os.ReadFile(path)
		switch {
		case err == nil:
			found = append(found, &api.ApplyRequest{File: path, Text: string(text)})
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	if len(found) > 1 {
		var names []string
		for _, f := range found {
			names = append(names, f.File)
		}
		return nil, &Error{
			Err:  fmt.Errorf("it has the files %s: a failure could not be undone", strings.Join(names, " and ")),
			Hint: "remove all but one of these files",
		}
	}
	planned := *found[0]
	planned.DryRun = true
	if _, err := t.client.Apply(ctx, planned); err != nil {
		return nil, &Error{
			Err:  fmt.Errorf("a failure could not be undone: %s cannot be applied again: %w", planned.File, err),
			Hint: "repair or remove " + planned.File + " first",
		}
	}
	return found[0], nil
}

// podUndo undoes the application of a pod file.
type podUndo struct {
	client  *api.Client
	pod     string
	uid     string // empty: not known, or the file was rejected
	outcome api.Outcome
	earlier *api.ApplyRequest // the file before; nil: there was none
}

// run restores the file of the pod with its name, or deletes a pod that is new.
func (u *podUndo) run(ctx context.Context) error {
	switch {
	case u.earlier != nil:
		result, err := u.client.Apply(ctx, *u.earlier)
		if err != nil {
			return fmt.Errorf("pod %q: %w", u.pod, err)
		}
		if result.File == u.earlier.File {
			return nil
		}
		if err := os.Rename(result.File, u.earlier.File); err != nil {
			return fmt.Errorf("pod %q: %w", u.pod, err)
		}
		return atomicfile.SyncDir(filepath.Dir(u.earlier.File))
	case u.outcome == api.PodCreated:
		_, err := u.client.Delete(ctx, u.pod, api.StopOptions{UID: u.uid})
		if e, ok := errors.AsType[*api.Error](err); ok && e.Reason == api.ReasonNotFound {
			return nil
		}
		return err
	}
	return fmt.Errorf("pod %q: it existed without a file, and is that of the bundle now", u.pod)
}

// restore undoes what was done, the last first.
func (t *Transaction) restore(ctx context.Context) error {
	errs := []error{t.restoreImages(ctx)} // before the pods, which use them
	for _, undo := range slices.Backward(t.undo) {
		if err := undo(ctx); err != nil {
			errs = append(errs, fmt.Errorf("restore: %w", err))
		}
	}
	err := errors.Join(errs...)
	if len(t.undo) > 0 && err == nil {
		t.Note("nothing of the bundle was applied: the pod files and the configuration are as they were before")
	}
	return err
}
