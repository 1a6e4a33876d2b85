// Package layers deletes the record of a container and that of its writable layer in one transaction, which waits for the disk half as often as
// containerd's client does. It must not read or write other records. The directory of the layer is removed by the next garbage collection, as always.
package layers

import (
	"context"
	"fmt"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/metadata"
	"github.com/containerd/containerd/v2/core/metadata/boltutil"
	"github.com/containerd/errdefs"
	bolt "go.etcd.io/bbolt"
)

// Collector is the garbage collection of the metadata.
type Collector interface {
	// TryHold delays collections until release is called, unless one is running.
	TryHold() (release func(), held bool)
}

// Containers are the records of containers. Delete also deletes the record of the writable layer, if there is one.
type Containers struct {
	containers.Store
	Metadata  *metadata.DB
	Collector Collector
}

// Delete implements [containers.Store].
//
// A snapshotter of containerd locks itself for reading, and then begins a transaction. Here the transaction is the first. Both together cannot wait for
// each other unless a garbage collection waits for the lock for writing, so that nobody can lock for reading any more. Therefore there is one transaction
// only while there is no collection.
func (c Containers) Delete(ctx context.Context, id string) error {
	r, err := c.Get(ctx, id)
	if err != nil {
		return err
	}
	layer := func(ctx context.Context) error {
		if r.SnapshotKey == "" {
			return nil
		}
		s := c.Metadata.Snapshotter(r.Snapshotter)
		if s == nil {
			return fmt.Errorf("remove layer of container %s: there is no snapshotter %q", id, r.Snapshotter)
		}
		if err := s.Remove(ctx, r.SnapshotKey); err != nil && !errdefs.IsNotFound(err) {
			return fmt.Errorf("remove layer of container %s: %w", id, err)
		}
		return nil
	}
	release, held := c.Collector.TryHold()
	if !held {
		if err := layer(ctx); err != nil {
			return err
		}
		return c.Store.Delete(ctx, id)
	}
	defer release()
	return c.Metadata.Update(func(tx *bolt.Tx) error {
		ctx := boltutil.WithTransaction(ctx, tx)
		if err := layer(ctx); err != nil {
			return err
		}
		return metadata.NewContainerStore(c.Metadata).Delete(ctx, id)
	})
}
