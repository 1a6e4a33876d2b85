package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// reserveStep is the unit in which space is allocated if there is not enough for the whole reserve.
const reserveStep = 64 << 10

// Reserve is a reserve of disk space. Its methods may block for as long as the disk does. It is safe for concurrent use. The nil Reserve
// has no space.
type Reserve struct {
	path string
	size int64

	mu   sync.Mutex
	held int64 // allocated
	lent int   // how many operations use the space
}

// NewReserve returns a reserve of a size in the file at path, and allocates it as far as there is space. A file system without
// preallocation has no reserve.
func NewReserve(path string, size int64) (*Reserve, error) {
	r := &Reserve{path: path, size: size}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.allocate(); err != nil {
		return nil, fmt.Errorf("reserve disk space: %w", err)
	}
	return r, nil
}

// Do calls op. If the disk is full, it calls op again while the space of the reserve is free. Op must be repeatable.
func (r *Reserve) Do(op func() error) error {
	err := op()
	if r == nil || err != nil && !isFull(err) {
		return err
	}
	if err == nil {
		r.refill()
		return nil
	}
	if r.lend() != nil {
		return err
	}
	defer r.giveBack()
	return op()
}

// isFull reports whether an operation failed because the disk is full. Errors of other processes arrive as text.
func isFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || strings.Contains(err.Error(), unix.ENOSPC.Error())
}

// lend frees the space for an operation.
func (r *Reserve) lend() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lent++
	if r.held == 0 {
		return nil
	}
	err := r.free()
	if err != nil {
		r.lent--
	}
	return err
}

// free frees the space. It syncs the file: some file systems reuse blocks only then.
func (r *Reserve) free() error {
	f, err := os.OpenFile(r.path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		r.held = 0
		return nil
	}
	if err != nil {
		return err
	}
	err = f.Truncate(0)
	if err == nil {
		r.held = 0
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// giveBack ends an operation that lend has begun.
func (r *Reserve) giveBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lent--
	if r.lent == 0 {
		_ = r.allocate() // repeated by refill
	}
}

// refill allocates what an earlier operation has left free because there was no space. It does not wait for another operation, because the
// disk may hang.
func (r *Reserve) refill() {
	if !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	if r.held < r.size && r.lent == 0 {
		_ = r.allocate()
	}
}

// allocate allocates as much of the reserve as there is space for. A full disk is no error.
func (r *Reserve) allocate() error {
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE, 0o600)
	switch {
	case err != nil && isFull(err):
		return nil
	case err != nil:
		return err
	}
	for size := r.size; size > r.held; size -= max(reserveStep, size/4) {
		err = unix.Fallocate(int(f.Fd()), 0, 0, size)
		if err == nil {
			r.held = size
			break
		}
		if !isFull(err) {
			break
		}
		err = f.Truncate(r.held) // a part may be allocated
	}
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
