package shim

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// errLost has the text by which containerd's task service recognises that runc does not know a container. It cannot recognise that of crun,
// and could never delete the container.
var errLost = errors.New("container does not exist")

// checkLost returns errLost for a run of an OCI runtime that would kill or delete a container of which it has no state. The state was
// damaged, and the daemon has removed it.
func checkLost(c *exec.Cmd) error {
	acts := slices.Contains(c.Args, "kill") || slices.Contains(c.Args, "delete") && !slices.Contains(c.Args, "--force")
	root := slices.Index(c.Args, "--root") + 1
	if !acts || root == 0 || root == len(c.Args) {
		return nil
	}
	for _, arg := range c.Args[root+1:] { // one of them is the container
		if _, err := os.Lstat(filepath.Join(c.Args[root], arg)); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return errLost
}
