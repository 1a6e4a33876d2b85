package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/daemon/bundleundo"
)

const (
	undoTimeout  = 30 * time.Second // for the daemon, which undoes an interrupted bundle
	undoInterval = 200 * time.Millisecond
)

// acquire locks the record of bundles. If an earlier bundle was interrupted, it waits until the daemon has undone it.
func (t *Transaction) acquire(ctx context.Context) (*bundleundo.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, undoTimeout)
	defer cancel()
	retry := time.NewTicker(undoInterval)
	defer retry.Stop()
	for {
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
		select {
		case <-retry.C:
		case <-ctx.Done():
			return nil, err
		}
	}
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
