package volume

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// place is where the OCI runtime mounts something.
type place struct {
	path   string // in the container, without links of the image
	parent int    // the index of the mount that contains it; -1: none
}

// places returns where the OCI runtime mounts each of these in a root file system, one after the other. Links of the image are followed as in
// runc. Links in what is mounted are not.
func places(root string, mounts []specs.Mount) ([]place, error) {
	list := make([]place, 0, len(mounts))
	for _, m := range mounts {
		name, err := securejoin.SecureJoinVFS(root, m.Destination, uncovered{root, list})
		if err != nil {
			return nil, err
		}
		p := place{inRoot(root, name), -1}
		for i := range list { // the last of the deepest ones
			if isBelow(p.path, list[i].path) && (p.parent < 0 || isBelow(list[i].path, list[p.parent].path)) {
				p.parent = i
			}
		}
		list = append(list, p)
	}
	return list, nil
}

// inRoot returns a path on the host as a path in a root file system.
func inRoot(root, name string) string { return path.Join("/", strings.TrimPrefix(name, root)) }

// uncovered is a root file system without what is below the mount points in it.
type uncovered struct {
	root string
	over []place
}

func (u uncovered) Lstat(name string) (os.FileInfo, error) {
	if slices.ContainsFunc(u.over, func(p place) bool { return isBelow(inRoot(u.root, name), p.path) }) {
		return nil, fs.ErrNotExist
	}
	return os.Lstat(name)
}

func (uncovered) Readlink(name string) (string, error) { return os.Readlink(name) }
