package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/errdefs"
	"github.com/google/uuid"
)

// Layers are the layers of images and containers.
type Layers struct {
	Snapshots snapshots.Snapshotter
	Dir       string // has a directory for each layer
}

// left returns how many layers have a directory but no record. A layer that is being created may be counted.
func (l Layers) left(ctx context.Context) (int, error) {
	entries, err := os.ReadDir(l.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	left := len(entries)
	err = l.Snapshots.Walk(ctx, func(context.Context, snapshots.Info) error {
		left--
		return nil
	})
	return max(0, left), err
}

// touch creates and removes a layer. The engine deletes layers without records only after the removal of one, and does not try again if
// the disk refuses.
func (l Layers) touch(ctx context.Context) error {
	key := "podstead-gc-" + uuid.NewString()
	_, err := l.Snapshots.Prepare(ctx, key, "")
	if e := l.Snapshots.Remove(ctx, key); e != nil && !errdefs.IsNotFound(e) {
		err = errors.Join(err, e)
	}
	if err != nil {
		return fmt.Errorf("remove layers: %w", err)
	}
	return nil
}
