package daemon

import (
	"os"
	"runtime/debug"
)

// limitMemory sets the soft memory limit of the Go runtime to half of the memory limit of the daemon: the rest is for the kernel, for example
// for volumes in memory that the daemon writes. The environment variable GOMEMLIMIT has precedence.
func limitMemory(limit int64) {
	if limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit / 2)
	}
}
