package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/core/metadata/boltutil"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/core/snapshots/storage"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	bolt "go.etcd.io/bbolt"
)

// rebuildSources are the files that metadata is rebuilt from. No process may use them.
type rebuildSources struct {
	Copy         string   // file of a [recordCopy]
	Snapshotters []string // directories of snapshotters, named io.containerd.snapshotter.v1.<name>
	Needed       []string // IDs of containers and sandboxes that must have a record
}

// rebuildMetadata writes new metadata with the records of containers, sandboxes and snapshots to a file that does not exist. Images and
// content have no records in it. The namespace is that of ctx. An error means that running containers cannot be adopted; the file does not
// exist then.
func rebuildMetadata(ctx context.Context, s rebuildSources, path string) (err error) {
	if err := checkDatabase(s.Copy, checkRecord); err != nil {
		return fmt.Errorf("copy of records: %w", err)
	}
	copied, records, err := open(ctx, s.Copy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	if err := records.contain(ctx, s.Needed); err != nil {
		return err
	}
	db, rebuilt, err := open(ctx, path)
	if err != nil {
		return err
	}
	err = records.write(ctx, db, rebuilt)
	for _, dir := range s.Snapshotters {
		if err == nil {
			err = rebuildSnapshots(ctx, db, dir)
		}
	}
	err = errors.Join(err, db.Sync(), db.Close())
	if err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// contain returns an error if one of the IDs has no record.
func (r recordStores) contain(ctx context.Context, ids []string) error {
	for _, id := range ids {
		_, err := r.Containers.Get(ctx, id)
		if err != nil {
			_, err = r.Sandboxes.Get(ctx, id)
		}
		if err != nil {
			return fmt.Errorf("copy of records: %w", err)
		}
	}
	return nil
}

// rebuildSnapshots writes the records of the snapshots of a snapshotter, which itself has records under names that contain theirs.
func rebuildSnapshots(ctx context.Context, db *bolt.DB, dir string) error {
	path := filepath.Join(dir, "metadata.db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil // never used
	}
	if err := checkDatabase(path, nil); err != nil {
		return err
	}
	store, err := storage.NewMetaStore(path)
	if err != nil {
		return err
	}
	reading, transaction, err := store.TransactionContext(ctx, false)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	namespace, _ := namespaces.Namespace(ctx)
	name := strings.TrimPrefix(filepath.Ext(dir), ".")
	err = db.Update(func(tx *bolt.Tx) error {
		all, err := createBuckets(tx, "v1", namespace, "snapshots", name)
		if err != nil {
			return err
		}
		return storage.WalkInfo(reading, func(_ context.Context, i snapshots.Info) error { return writeSnapshot(all, namespace, i) })
	})
	return errors.Join(err, transaction.Rollback(), store.Close())
}

// writeSnapshot writes the record of a snapshot as containerd does (core/metadata/buckets.go). Of its labels, the snapshotter has only
// those that it inherited. A view has no container that refers to it, so it gets the label that keeps it until it is removed.
func writeSnapshot(all *bolt.Bucket, namespace string, i snapshots.Info) error {
	n, key, ours := splitName(namespace, i.Name)
	if !ours {
		return nil
	}
	if n > all.Sequence() {
		if err := all.SetSequence(n); err != nil {
			return err
		}
	}
	b, err := all.CreateBucketIfNotExists([]byte(key)) // a child may have created it
	if err != nil {
		return err
	}
	if err := b.Put([]byte("name"), []byte(i.Name)); err != nil {
		return err
	}
	if i.Parent != "" {
		_, parent, ours := splitName(namespace, i.Parent)
		if !ours {
			return fmt.Errorf("snapshot %q has the unknown parent %q", i.Name, i.Parent)
		}
		children, err := createBuckets(all, parent, "children")
		if err == nil {
			err = children.Put([]byte(key), nil)
		}
		if err == nil {
			err = b.Put([]byte("parent"), []byte(parent))
		}
		if err != nil {
			return err
		}
	}
	labels := snapshots.FilterInheritedLabels(i.Labels)
	if i.Kind == snapshots.KindView {
		if labels == nil {
			labels = map[string]string{}
		}
		labels["containerd.io/gc.root"] = time.Now().UTC().Format(time.RFC3339)
	}
	return errors.Join(boltutil.WriteLabels(b, labels), boltutil.WriteTimestamps(b, i.Created, i.Updated))
}

// splitName splits the name of a snapshot in the records of a snapshotter: namespace/number/key.
func splitName(namespace, name string) (number uint64, key string, ours bool) {
	rest, ours := strings.CutPrefix(name, namespace+"/")
	digits, key, found := strings.Cut(rest, "/")
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, key, ours && found && err == nil && key != ""
}

// buckets are a transaction or a bucket.
type buckets interface {
	CreateBucketIfNotExists(name []byte) (*bolt.Bucket, error)
}

// createBuckets creates buckets that contain each other, unless they exist, and returns the innermost.
func createBuckets(in buckets, names ...string) (b *bolt.Bucket, err error) {
	for _, name := range names {
		if b, err = in.CreateBucketIfNotExists([]byte(name)); err != nil {
			return nil, err
		}
		in = b
	}
	return b, nil
}
