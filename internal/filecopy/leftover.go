package filecopy

import (
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// temporaryPrefix begins the names of temporary files. A random text follows.
	temporaryPrefix = ".podstead-cp-"
	// maxNames is the maximum number of names of a directory that are searched for leftovers: a container can create any number.
	maxNames = 1 << 16
)

// leftoverAge is the age from which a temporary file can be a leftover. A copy locks its file shortly after it has created it.
var leftoverAge = time.Minute

// removeLeftovers removes the temporary files of copies whose process was killed from a directory. A copy in progress holds a lock on its
// file. It reports no errors: the next copy tries again.
func removeLeftovers(dir *File) {
	f, err := dir.Read()
	if err != nil {
		return
	}
	defer f.Close()
	for searched := 0; searched < maxNames; {
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			if strings.HasPrefix(name, temporaryPrefix) {
				removeLeftover(dir, name)
			}
		}
		if searched += len(names); err != nil {
			return
		}
	}
}

func removeLeftover(dir *File, name string) {
	f, err := dir.Lookup(name)
	if err != nil {
		return
	}
	defer f.Close()
	if !f.IsRegular() || time.Since(time.Unix(f.Stat.Ctim.Unix())) < leftoverAge {
		return
	}
	locked, err := f.Read()
	if err != nil {
		return
	}
	defer locked.Close()
	if unix.Flock(int(locked.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		_ = unix.Unlinkat(int(dir.Fd()), name, 0)
	}
}
