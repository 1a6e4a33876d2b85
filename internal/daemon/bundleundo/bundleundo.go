// Package bundleundo keeps the record that makes podstead bundle apply atomic. The client writes it before its first change and removes it
// after its last one. Until then it holds a lock, which the kernel releases if the client is killed or the host loses power. A daemon that
// finds the record without the lock undoes the changes. The package restores files only: it neither deletes pods nor changes images.
package bundleundo

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/statefile"
)

// Format is the format of the record.
var Format = statefile.Format{Version: 1}

// ErrBusy means that another process applies a bundle, or undoes one.
var ErrBusy = errors.New("another bundle is being applied")

// Record has what was there before a bundle.
type Record struct {
	Bundle  string   `json:"bundle"` // its path, for people
	Pods    []Pod    `json:"pods,omitempty"`
	Objects []Object `json:"objects,omitempty"`
	// Images are the names that the bundle may have moved since Began. The daemon moves them back.
	Images []string  `json:"images,omitempty"`
	Began  time.Time `json:"began,omitzero"`
}

// Pod is the file of a pod.
type Pod struct {
	Name    string `json:"name"`
	File    string `json:"file"`              // the path that the bundle writes
	Digest  string `json:"digest"`            // of what the bundle writes, see [Digest]
	Earlier *File  `json:"earlier,omitempty"` // nil: the pod is new
}

// File is a file before the bundle.
type File struct {
	Path  string      `json:"path"` // may differ from that of the bundle
	Text  []byte      `json:"text"`
	Mode  fs.FileMode `json:"mode"`
	Owner *Owner      `json:"owner,omitempty"` // nil: not recorded by an earlier version
}

// Owner is the owner of a file, with what others may do with it.
type Owner struct {
	UID  int         `json:"uid"`
	GID  int         `json:"gid"`
	Mode fs.FileMode `json:"mode,omitempty"` // 0: not recorded by an earlier version
}

// OwnerOf returns the owner of a file.
func OwnerOf(info fs.FileInfo) *Owner {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return &Owner{int(stat.Uid), int(stat.Gid), info.Mode().Perm()}
}

// OwnersOf returns the owners of the files of a directory.
func OwnersOf(dir string, keys iter.Seq[string]) (map[string]*Owner, error) {
	owners := map[string]*Owner{}
	for key := range keys {
		info, err := os.Stat(filepath.Join(dir, key))
		if err != nil {
			return nil, err
		}
		owners[key] = OwnerOf(info)
	}
	return owners, nil
}

// Object is the directory of a config map or a secret.
type Object struct {
	Dir     string            `json:"dir"`
	Existed bool              `json:"existed"`
	Mode    fs.FileMode       `json:"mode"`              // of files without an owner
	Earlier map[string][]byte `json:"earlier,omitempty"` // values by key
	Owners  map[string]*Owner `json:"owners,omitempty"`  // of the files of these values; an earlier version does not record them
	Digests map[string]string `json:"digests,omitempty"` // of the values of the bundle, by key
}

// Path returns the path of the record in a state directory.
func Path(stateDir string) string { return filepath.Join(stateDir, "bundle-undo.json") }

// Lock is held by the process that applies or undoes a bundle. It is not safe for concurrent use.
type Lock struct {
	path string
	file *os.File
}

// Acquire locks the record of a state directory, which must exist. It does not wait: the error is [ErrBusy] if the lock is held.
func Acquire(stateDir string) (*Lock, error) {
	f, err := os.OpenFile(filepath.Join(stateDir, "bundle.lock"), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrBusy
		}
		return nil, errors.Join(err, f.Close())
	}
	if err := atomicfile.SweepOf(Path(stateDir)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Lock{Path(stateDir), f}, nil
}

// Sweep removes what a crash has left of a record that was being written: it has values of secrets. It does nothing while a bundle is
// applied.
func Sweep(stateDir string) error {
	if left, err := atomicfile.HasTemporary(Path(stateDir)); !left {
		return err
	}
	l, err := Acquire(stateDir)
	if errors.Is(err, ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	return l.Close()
}

// Close releases the lock. It keeps the record.
func (l *Lock) Close() error { return l.file.Close() }

// Begin writes the record. What it describes may be changed when Begin returns.
func (l *Lock) Begin(r *Record) error { return Format.Write(l.path, r, statefile.Unknown{}) }

// Pending returns the record of a bundle that was interrupted; nil: there is none.
func (l *Lock) Pending() (*Record, error) {
	var r Record
	_, err := Format.Read(l.path, &r)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", l.path, err)
	}
	return &r, nil
}

// End removes the record: from here on, the bundle is applied, or undone.
func (l *Lock) End() error { return atomicfile.Remove(l.path) }
