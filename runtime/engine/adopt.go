package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/pkg/namespaces"
)

// recordsCopy is the copy of the records of containers and sandboxes. It is in State: a boot ends the containers that it is for.
func (e *Engine) recordsCopy() string { return filepath.Join(e.opt.State, "records.db") }

// copyRecords keeps a copy of the records of containers and sandboxes.
func (e *Engine) copyRecords(ctx context.Context) error {
	return e.records.Fill(namespaces.WithNamespace(ctx, Namespace), e.recordsCopy(), e.opt.Log)
}

// rebuildMetadata writes new metadata, with which containers can be adopted, to a file beside the damaged one. containerd must not run.
func (e *Engine) rebuildMetadata(ctx context.Context) (string, error) {
	path := e.metadataFile() + ".rebuilt"
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // of an engine that was killed
		return "", err
	}
	snapshotters, err := filepath.Glob(filepath.Join(e.opt.Root, "io.containerd.snapshotter.v1.*"))
	if err != nil {
		return "", err
	}
	return path, rebuildMetadata(namespaces.WithNamespace(ctx, Namespace), rebuildSources{
		Copy: e.recordsCopy(), Snapshotters: snapshotters, Needed: e.bundles(),
	}, path)
}

// bundles returns the IDs of containers and sandboxes that have a bundle. A bundle that containerd was deleting has none.
func (e *Engine) bundles() []string {
	var ids []string
	for _, dir := range bundleDirs(e.opt.State) {
		entries, _ := os.ReadDir(dir) // a directory may not exist
		for _, entry := range entries {
			ids = append(ids, entry.Name())
		}
	}
	return slices.DeleteFunc(ids, func(id string) bool { return strings.HasPrefix(id, ".") })
}
