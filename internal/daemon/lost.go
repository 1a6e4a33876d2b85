package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/podstead/podstead/internal/guard"
)

// errLost is the cause of the end of a daemon whose directories were removed or replaced.
var errLost = errors.New("the directory was removed or replaced, the next daemon creates it again")

// lostInterval is the time between two looks at the directories.
const lostInterval = 5 * time.Second

// watchDirs calls lost if a directory that only this daemon may use is removed or replaced while it runs: clients cannot reach it any more,
// it can start no container, and another daemon may start. It returns when ctx ends.
func (o *Options) watchDirs(ctx context.Context, lost func(error)) {
	was := identify(filepath.Join(o.Config.RunDir, "engine"), filepath.Join(o.Config.StateDir, "engine", "lock"))
	for range guard.Every(ctx, lostInterval) {
		if path := was.lost(); path != "" {
			lost(fmt.Errorf("%s: %w", path, errLost))
			return
		}
	}
}

// identities are files by path.
type identities map[string]fs.FileInfo

// identify returns the files at the paths that exist.
func identify(paths ...string) identities {
	was := identities{}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			was[path] = info
		}
	}
	return was
}

// lost returns the path of a file that was removed or replaced; "": there is none.
func (was identities) lost() string {
	for path, before := range was {
		now, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(before, now) {
			return path
		}
	}
	return ""
}
