package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// exitFile is in the bundle of a container whose first process has exited. containerd reads it with a package that brings its libraries
// for cgroups and eBPF.
const exitFile = "exit.json"

// Exit is what a shim has recorded of the first process of a container, with the names of the file.
type Exit struct {
	Timestamp time.Time
	Pid       int
	// Status is the exit code, or 128 plus the number of the signal that terminated the process.
	Status int
}

// ReadExit returns the exit of the container with this bundle. The error wraps [fs.ErrNotExist] if the container has not exited.
func ReadExit(bundle string) (Exit, error) {
	text, err := os.ReadFile(filepath.Join(bundle, exitFile))
	if err != nil {
		return Exit{}, err
	}
	var e Exit
	if err := json.Unmarshal(text, &e); err != nil {
		return Exit{}, fmt.Errorf("decode %s in %s: %w", exitFile, bundle, err)
	}
	if e.Pid <= 0 || e.Timestamp.IsZero() || e.Status < 0 {
		return Exit{}, fmt.Errorf("%s in %s is malformed: %s", exitFile, bundle, text)
	}
	return e, nil
}

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
