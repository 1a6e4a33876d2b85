package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/daemon/bundleundo"
	"github.com/podstead/podstead/internal/guard"
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
	client  *client.Client
	pod     string
	uid     string // empty: not known, the file was rejected, or the pod is started by its schedule
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
		_, err := u.client.Delete(ctx, u.pod, client.StopOptions{UID: u.uid})
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

const (
	undoTimeout  = 30 * time.Second // for the daemon, which undoes an interrupted bundle
	undoInterval = 200 * time.Millisecond
)

// acquire locks the record of bundles. If an earlier bundle was interrupted, it waits until the daemon has undone it.
func (t *Transaction) acquire(ctx context.Context) (*bundleundo.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, undoTimeout)
	defer cancel()
	var last error
	for range guard.Poll(ctx, undoInterval) {
		lock, err := bundleundo.Acquire(t.config.StateDir)
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil, &Error{Err: err, Hint: "run the command as root"}
		case err != nil && !errors.Is(err, bundleundo.ErrBusy):
			return nil, err
		case err == nil:
			var pending *bundleundo.Record
			if pending, err = lock.Pending(); pending == nil && err == nil {
				return lock, nil
			}
			if pending != nil {
				err = fmt.Errorf("bundle %q was interrupted, and the daemon has not undone it", pending.Bundle)
			}
			err = &Error{
				Err:  err,
				Hint: "read the log of the daemon. Remove " + bundleundo.Path(t.config.StateDir) + " to keep what that bundle has changed",
			}
			_ = lock.Close()
		}
		last = err
	}
	return nil, last
}

// begin writes the record of what was there before the bundle.
func (t *Transaction) begin(plans []api.Applied, earlier []*api.ApplyRequest) error {
	record := &bundleundo.Record{Bundle: t.file.Name(), Began: t.began}
	for _, i := range t.Bundle.Images {
		record.Images = append(record.Images, i.Name)
	}
	for i, p := range t.Bundle.Pods {
		pod := bundleundo.Pod{Name: p.Name, File: plans[i].File, Digest: bundleundo.Digest(t.Bundle.Text[p.File])}
		if e := earlier[i]; e != nil {
			info, err := os.Stat(e.File)
			if err != nil {
				return err
			}
			pod.Earlier = &bundleundo.File{Path: e.File, Text: []byte(e.Text), Mode: info.Mode().Perm(), Owner: bundleundo.OwnerOf(info)}
		}
		record.Pods = append(record.Pods, pod)
	}
	for _, o := range t.Bundle.Objects() {
		dir, _, mode := t.objectDir(o)
		values, existed, err := t.earlierValues(o)
		if err != nil {
			return fmt.Errorf("%s %q: %w", o.Kind, o.Name, err)
		}
		owners, err := bundleundo.OwnersOf(dir, maps.Keys(values))
		if err != nil {
			return fmt.Errorf("%s %q: %w", o.Kind, o.Name, err)
		}
		object := bundleundo.Object{Dir: dir, Existed: existed, Mode: mode, Earlier: values, Owners: owners, Digests: map[string]string{}}
		for _, key := range o.Keys {
			object.Digests[key] = bundleundo.Digest(t.Bundle.Value(o, key))
		}
		record.Objects = append(record.Objects, object)
	}
	t.record = record
	return t.lock.Begin(record)
}

// giveUp undoes what was done. The daemon undoes what remains.
func (t *Transaction) giveUp(ctx context.Context) error {
	if err := t.restore(ctx); err != nil {
		return errors.Join(err, errors.New("the daemon undoes the bundle"))
	}
	if t.record != nil {
		if err := t.record.RestoreOwners(); err != nil {
			return err
		}
	}
	return t.lock.End()
}
