// Package mounts registers containerd's mount manager with a database that is not written through to the disk. The database records mounts,
// which a boot ends, so it only has to survive the daemon. Each garbage collection writes to it.
package mounts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/containerd/containerd/v2/core/metadata"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/core/mount/manager"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/plugin"
	"github.com/containerd/plugin/registry"
	bolt "go.etcd.io/bbolt"
)

// openTimeout bounds the wait for the lock of the database, which no other process uses.
const openTimeout = 10 * time.Second

// Register registers the plug-in. It must be called once, before the engine starts.
func Register() {
	registry.Register(&plugin.Registration{
		Type:     plugins.MountManagerPlugin,
		ID:       "bolt", // as containerd's: the name of its directory
		Requires: []plugin.Type{plugins.MetadataPlugin},
		InitFn: func(ic *plugin.InitContext) (any, error) {
			db, err := ic.GetSingle(plugins.MetadataPlugin)
			if err != nil {
				return nil, err
			}
			m, ok := db.(*metadata.DB)
			if !ok {
				return nil, fmt.Errorf("metadata have the unexpected type %T", db)
			}
			manager, err := open(ic.Properties[plugins.PropertyStateDir], filepath.Dir(ic.Properties[plugins.PropertyRootDir]))
			if err != nil {
				return nil, err
			}
			if collected, ok := manager.(metadata.Collector); ok {
				m.RegisterCollectibleResource(metadata.ResourceMount, collected)
			}
			return manager, nil
		},
	})
}

// open returns a mount manager with its files in a directory. It makes mounts below root.
func open(dir, root string) (mount.Manager, error) {
	targets := filepath.Join(dir, "t")
	if err := os.MkdirAll(targets, 0o700); err != nil {
		return nil, err
	}
	db, err := bolt.Open(filepath.Join(dir, "mounts.db"), 0o600, &bolt.Options{Timeout: openTimeout, NoStatistics: true, NoSync: true})
	if err != nil {
		return nil, fmt.Errorf("open records of mounts: %w", err)
	}
	m, err := manager.NewManager(db, targets, manager.WithAllowedRoot(root))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start mount manager: %w", err), db.Close())
	}
	return m, nil
}
