package engine

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/metadata"
	"github.com/containerd/containerd/v2/core/metadata/boltutil"
	"github.com/containerd/containerd/v2/core/sandbox"
	bolt "go.etcd.io/bbolt"

	"github.com/podstead/podstead/internal/order"
)

// recordStores are the records of containers and sandboxes.
type recordStores struct {
	Containers containers.Store
	Sandboxes  sandbox.Store
}

// recordCopy is a copy of records. A change that cannot be copied deletes it, since containers must not be adopted with records that are
// out of date: there is no copy until [recordCopy.Fill]. It is safe for concurrent use.
type recordCopy struct {
	records recordStores
	log     *slog.Logger

	mu     sync.Mutex // held while a record is changed in the original and in the copy, so that both have the same order
	path   string
	db     *bolt.DB // nil: there is no copy
	copied recordStores
}

// newRecordCopy returns a copy of records that contains nothing before [recordCopy.Fill]. The caller must close it.
func newRecordCopy(r recordStores) *recordCopy { return &recordCopy{records: r} }

// Fill creates the copy in a file, which it replaces. If a change cannot be copied later, the copy is deleted, which is logged: running
// containers cannot be adopted then.
func (c *recordCopy) Fill(ctx context.Context, path string, log *slog.Logger) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := errors.Join(c.close(), remove(path)); err != nil {
		return err
	}
	db, copied, err := open(ctx, path)
	if err != nil {
		return errors.Join(err, remove(path))
	}
	if err := c.records.write(ctx, db, copied); err != nil {
		return errors.Join(err, db.Close(), remove(path))
	}
	c.db, c.copied, c.path, c.log = db, copied, path, log
	return nil
}

// Close closes the file.
func (c *recordCopy) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.close()
}

// close closes the file. The caller holds the lock.
func (c *recordCopy) close() error {
	if c.db == nil {
		return nil
	}
	db := c.db
	c.db = nil
	return db.Close()
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Records returns the original records. Changes that are made to them are copied.
func (c *recordCopy) Records() recordStores {
	return recordStores{copiedContainers{c.records.Containers, c}, copiedSandboxes{c.records.Sandboxes, c}}
}

// change makes a change to the original, and if it succeeds, to the copy.
func (c *recordCopy) change(ctx context.Context, id string, original func() error, copied func(context.Context, recordStores) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := original(); err != nil || c.db == nil {
		return err
	}
	if err := copied(context.WithoutCancel(ctx), c.copied); err != nil {
		err = errors.Join(err, c.close(), remove(c.path))
		c.log.WarnContext(ctx, "cannot copy a record of the container engine, the copy is deleted", slog.String("record", id),
			slog.Any("error", err))
	}
	return nil
}

// open opens a database of containerd. It does not wait for the disk: a boot clears the directory.
func open(ctx context.Context, path string) (*bolt.DB, recordStores, error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: openTimeout, NoSync: true})
	if err != nil {
		return nil, recordStores{}, err
	}
	m := metadata.NewDB(db, nil, nil)
	if err := m.Init(ctx); err != nil {
		return nil, recordStores{}, errors.Join(err, db.Close())
	}
	return db, recordStores{metadata.NewContainerStore(m), metadata.NewSandboxStore(m)}, nil
}

// write writes the records to a database. Their times of creation are new ones in the same order.
func (r recordStores) write(ctx context.Context, db *bolt.DB, to recordStores) error {
	list, err := r.Containers.List(ctx)
	if err != nil {
		return err
	}
	sandboxes, err := r.Sandboxes.List(ctx)
	if err != nil {
		return err
	}
	order.Sort(list, func(a, b containers.Container) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return db.Update(func(tx *bolt.Tx) error {
		ctx := boltutil.WithTransaction(ctx, tx)
		for _, s := range sandboxes {
			if _, err := to.Sandboxes.Create(ctx, s); err != nil {
				return err
			}
		}
		for _, c := range list {
			if _, err := to.Containers.Create(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// copiedContainers are the original records of containers.
type copiedContainers struct {
	containers.Store
	copy *recordCopy
}

func (s copiedContainers) Create(ctx context.Context, r containers.Container) (created containers.Container, err error) {
	err = s.copy.change(ctx, r.ID, func() error {
		created, err = s.Store.Create(ctx, r)
		return err
	}, func(ctx context.Context, copied recordStores) error {
		_, err := copied.Containers.Create(ctx, r)
		return err
	})
	return created, err
}

func (s copiedContainers) Update(ctx context.Context, r containers.Container, fields ...string) (updated containers.Container, err error) {
	err = s.copy.change(ctx, r.ID, func() error {
		updated, err = s.Store.Update(ctx, r, fields...)
		return err
	}, func(ctx context.Context, copied recordStores) error {
		_, err := copied.Containers.Update(ctx, r, fields...)
		return err
	})
	return updated, err
}

func (s copiedContainers) Delete(ctx context.Context, id string) error {
	return s.copy.change(ctx, id, func() error { return s.Store.Delete(ctx, id) }, func(ctx context.Context, copied recordStores) error {
		return copied.Containers.Delete(ctx, id)
	})
}

// copiedSandboxes are the original records of sandboxes.
type copiedSandboxes struct {
	sandbox.Store
	copy *recordCopy
}

func (s copiedSandboxes) Create(ctx context.Context, r sandbox.Sandbox) (created sandbox.Sandbox, err error) {
	err = s.copy.change(ctx, r.ID, func() error {
		created, err = s.Store.Create(ctx, r)
		return err
	}, func(ctx context.Context, copied recordStores) error {
		_, err := copied.Sandboxes.Create(ctx, r)
		return err
	})
	return created, err
}

func (s copiedSandboxes) Update(ctx context.Context, r sandbox.Sandbox, fields ...string) (updated sandbox.Sandbox, err error) {
	err = s.copy.change(ctx, r.ID, func() error {
		updated, err = s.Store.Update(ctx, r, fields...)
		return err
	}, func(ctx context.Context, copied recordStores) error {
		_, err := copied.Sandboxes.Update(ctx, r, fields...)
		return err
	})
	return updated, err
}

func (s copiedSandboxes) Delete(ctx context.Context, id string) error {
	return s.copy.change(ctx, id, func() error { return s.Store.Delete(ctx, id) }, func(ctx context.Context, copied recordStores) error {
		return copied.Sandboxes.Delete(ctx, id)
	})
}
