package shim

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// oomFile is in the bundle of a container if the kernel OOM-killed one of its processes. It exists before the exit is reported.
const oomFile = "oom-killed"

// OOMKilled reports whether the shim recorded an OOM kill for the container with this bundle. The result is meaningless while the
// container runs.
func OOMKilled(bundle string) (bool, error) {
	_, err := os.Stat(filepath.Join(bundle, oomFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// MemoryPeak returns the peak memory usage of an OOM-killed container in bytes, by its bundle, 0 if unknown.
func MemoryPeak(bundle string) int64 {
	text, err := os.ReadFile(filepath.Join(bundle, oomFile))
	if err != nil {
		return 0
	}
	peak, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0 // written by an older version
	}
	return peak
}

// SessionFile is the file in which a shim records the session of a command's processes, unless the command itself leads it. It is in the
// bundle of the container and disappears with it.
func SessionFile(bundle, execID string) string { return filepath.Join(bundle, execID+".session") }
