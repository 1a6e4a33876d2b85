package connect

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
)

const (
	// toolbox is the last part of the repository of the image that a debug container has by default.
	toolbox = "busybox"
	// importTimeout bounds the wait for an archive in an image directory that the daemon has not imported yet.
	importTimeout  = 30 * time.Second
	importInterval = 200 * time.Millisecond
)

// imageLister are the images of a host. [*api.Client] implements it.
type imageLister interface {
	Images(ctx context.Context) (api.ImageList, error)
}

// FindDebuggerImage returns the image of a debug container that names none: a busybox image in an archive of an image directory, otherwise one that
// is present, otherwise [DebuggerImage]. It waits for the import of busybox.tar in one of the directories.
func FindDebuggerImage(ctx context.Context, images imageLister, dirs ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	for {
		list, err := images.Images(ctx)
		if err != nil {
			return "", err
		}
		name, held := choose(list.Items)
		if held || !archived(dirs) {
			return name, nil
		}
		select {
		case <-time.After(importInterval):
		case <-ctx.Done():
			return name, nil // the archive may be damaged, or have another image
		}
	}
}

// choose returns an image, and whether it is in an archive of an image directory.
func choose(list []api.Image) (name string, held bool) {
	name = DebuggerImage
	for i := range list {
		img := &list[i]
		if img.Foreign || img.Archive || img.Damaged || !isToolbox(img.Name) {
			continue
		}
		if img.File != "" {
			return img.Name, true
		}
		if img.Name == DebuggerImage || name == DebuggerImage && !isPresent(list, DebuggerImage) {
			name = img.Name
		}
	}
	return name, false
}

func isPresent(list []api.Image, name string) bool {
	for i := range list {
		if list[i].Name == name && !list[i].Foreign && !list[i].Archive {
			return true
		}
	}
	return false
}

// isToolbox reports whether the last part of a repository is busybox.
func isToolbox(name string) bool {
	repo, _, _ := strings.Cut(path.Base(name), "@")
	repo, _, _ = strings.Cut(repo, ":")
	return repo == toolbox
}

// archived reports whether a directory has an archive named busybox.
func archived(dirs []string) bool {
	for _, dir := range dirs {
		for _, extension := range []string{".tar", ".tar.gz", ".tgz", ".tar.zst"} {
			if _, err := os.Stat(filepath.Join(dir, toolbox+extension)); err == nil {
				return true
			}
		}
	}
	return false
}
