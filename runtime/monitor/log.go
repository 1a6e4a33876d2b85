package monitor

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// LogFile is the name of the file in the state directory that has the messages of keeper and monitor. Their starter connects it to their
// standard error.
const LogFile = "log"

// maxLog bounds the log, which is in memory: the state directory is on tmpfs.
const maxLog = 256 << 10

// logf writes a line to standard error, which the starter has connected to a log.
func logf(format string, args ...any) {
	trimLog(os.Stderr)
	fmt.Fprintf(os.Stderr, Name+": "+format+"\n", args...)
}

// trimLog removes the older half of a log that is too large. Keeper and monitor have it open for appending. A line that the other one
// writes meanwhile may be lost.
func trimLog(f *os.File) {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() < maxLog {
		return
	}
	read, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return
	}
	defer read.Close()
	newer := make([]byte, maxLog/2)
	n, err := read.ReadAt(newer, info.Size()-int64(len(newer)))
	if err != nil && !errors.Is(err, io.EOF) || f.Truncate(0) != nil {
		return
	}
	_, _ = f.Write(newer[:n]) // there is no log to report this to
}
