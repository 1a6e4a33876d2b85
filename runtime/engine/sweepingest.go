package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/v2/plugins/content/local"
	digest "github.com/opencontainers/go-digest"
)

// sweepIngests removes content that was being received and cannot be resumed. containerd does not sync the files that describe it, so a
// power failure leaves empty ones. The garbage collector finds content by these files and would never remove it. No engine may be running.
func sweepIngests(ctx context.Context, root string) error {
	dirs, err := filepath.Glob(filepath.Join(root, contentDir, "ingest", "*"))
	if err != nil || len(dirs) == 0 {
		return err
	}
	store, err := local.NewStore(filepath.Join(root, contentDir))
	if err != nil {
		return fmt.Errorf("sweep content: %w", err)
	}
	var errs []error
	for _, dir := range dirs {
		ref, err := os.ReadFile(filepath.Join(dir, "ref"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
			continue
		}
		if digest.FromBytes(ref).Encoded() == filepath.Base(dir) {
			if _, err := store.Status(ctx, string(ref)); err == nil {
				continue
			}
		}
		errs = append(errs, os.RemoveAll(dir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sweep content: %w", err)
	}
	return nil
}
