package bundleundo

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/atomicfile"
)

// Digest returns the digest of a file's content.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Undo restores the files. It may be interrupted and repeated. A file that has been changed since, by another, is kept.
func (r *Record) Undo() error {
	var errs []error
	for i := range r.Objects { // before the pods, which read them
		if err := r.Objects[i].undo(); err != nil {
			errs = append(errs, fmt.Errorf("restore %s: %w", r.Objects[i].Dir, err))
		}
	}
	for i := range r.Pods {
		if err := r.Pods[i].undo(); err != nil {
			errs = append(errs, fmt.Errorf("restore the file of pod %q: %w", r.Pods[i].Name, err))
		}
	}
	return errors.Join(errs...)
}

func (p *Pod) undo() error {
	now, err := read(p.File)
	if err != nil || now == nil || Digest(now) != p.Digest {
		return err
	}
	if p.Earlier == nil {
		return atomicfile.Remove(p.File)
	}
	if p.Earlier.Path != p.File {
		other, err := read(p.Earlier.Path)
		if err != nil || other != nil && !bytes.Equal(other, p.Earlier.Text) {
			return err
		}
	}
	if err := p.Earlier.write(); err != nil {
		return err
	}
	if p.Earlier.Path == p.File {
		return nil
	}
	return atomicfile.Remove(p.File) // last: it shows that the file is not restored
}

func (o *Object) undo() error {
	keys := map[string]bool{}
	for key := range o.Earlier {
		keys[key] = true
	}
	for key := range o.Digests {
		keys[key] = true
	}
	var errs []error
	for key := range keys {
		errs = append(errs, o.undoKey(key), atomicfile.SweepOf(filepath.Join(o.Dir, key)))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if o.Existed {
		return nil
	}
	err := os.Remove(o.Dir)
	switch {
	case err == nil:
		return atomicfile.SyncDir(filepath.Dir(o.Dir))
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTEMPTY): // another has put something there
		return nil
	}
	return err
}

func (o *Object) undoKey(key string) error {
	path := filepath.Join(o.Dir, key)
	now, err := read(path)
	if err != nil {
		return err
	}
	earlier, existed := o.Earlier[key]
	digest, bundled := o.Digests[key]
	isBundled := now != nil && bundled && Digest(now) == digest || now == nil && !bundled
	switch {
	case !isBundled:
		return nil
	case !existed:
		return atomicfile.Remove(path)
	}
	if _, err := os.Stat(o.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil // another has removed it
	}
	return write(path, earlier, o.Mode, o.Owners[key])
}

func (f *File) write() error { return write(f.Path, f.Text, f.Mode, f.Owner) }

// write writes a file with its owner and its mode, if these are known.
func write(path string, text []byte, mode fs.FileMode, owner *Owner) error {
	if owner == nil {
		return atomicfile.Write(path, text, mode)
	}
	return atomicfile.WriteAs(path, text, cmp.Or(owner.Mode, mode), owner.UID, owner.GID)
}

// RestoreOwners restores the owners and modes of the files whose content was restored in another way than with [Record.Undo].
func (r *Record) RestoreOwners() error {
	var errs []error
	for i := range r.Pods {
		if f := r.Pods[i].Earlier; f != nil {
			errs = append(errs, f.restoreOwner())
		}
	}
	for i := range r.Objects {
		o := &r.Objects[i]
		for key, text := range o.Earlier {
			f := File{filepath.Join(o.Dir, key), text, o.Mode, o.Owners[key]}
			errs = append(errs, f.restoreOwner())
		}
	}
	return errors.Join(errs...)
}

func (f *File) restoreOwner() error {
	now, err := read(f.Path)
	if err != nil || now == nil || !bytes.Equal(now, f.Text) || f.Owner == nil {
		return err
	}
	info, err := os.Stat(f.Path)
	if err != nil {
		return err
	}
	if owner := OwnerOf(info); owner != nil && *owner == *f.Owner {
		return nil
	}
	return f.write()
}

// read returns the content of a file, not nil; nil: there is no file.
func read(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if data == nil && err == nil {
		data = []byte{}
	}
	return data, err
}
