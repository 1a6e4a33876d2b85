package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/internal/statefile"
)

const (
	// crashFile gets the output of the Go runtime when the daemon crashes. It is empty otherwise, also after a SIGKILL.
	crashFile = "crash"
	// lifeFile exists while the daemon runs.
	lifeFile = "daemon.json"
	// maxCrash is how much of the output of a crash is read, in bytes.
	maxCrash = 64 << 10
	// maxKernelLog is the maximum number of entries of the kernel's log that are read.
	maxKernelLog = 1 << 17
)

// LifeFormat is the format of the file of a running daemon.
var LifeFormat = statefile.Format{Version: 1, Unversioned: true, Loss: statefile.Volatile}

// life identifies a daemon that runs, or that has not exited on its own.
type life struct {
	PID     int           `json:"pid"`
	Boot    string        `json:"boot"`
	Started time.Duration `json:"started"` // since the boot
}

// watchCrashes returns why the last daemon crashed, and records a crash of this one until the returned function is called. The cause is
// empty if the last daemon exited on its own or was killed. Errors are only logged.
func watchCrashes(ctx context.Context, dir string, log *slog.Logger) (cause string, end func()) {
	cause = lastCrash(dir)
	if err := recordLife(dir); err != nil {
		log.LogAttrs(ctx, slog.LevelWarn, "a crash of the daemon would not be recorded", slog.Any("error", err))
	}
	return cause, func() {
		_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
		_ = os.Remove(filepath.Join(dir, crashFile)) // a file that is left is empty
		_ = os.Remove(filepath.Join(dir, lifeFile))
	}
}

func recordLife(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, crashFile), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(debug.SetCrashOutput(f, debug.CrashOptions{}), f.Close())
	boot, bootErr := proc.BootID()
	l := life{os.Getpid(), boot, sinceBoot()}
	return errors.Join(err, bootErr, LifeFormat.Write(filepath.Join(dir, lifeFile), l, statefile.Unknown{}))
}

// sinceBoot reads the clock of the kernel's log.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

func lastCrash(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, crashFile))
	if err == nil {
		if line := crashLine(text[:min(len(text), maxCrash)]); line != "" {
			return line
		}
	}
	var last life
	_, err = LifeFormat.Read(filepath.Join(dir, lifeFile), &last)
	boot, bootErr := proc.BootID()
	if errors.Join(err, bootErr) != nil || last.Boot != boot {
		return ""
	}
	if oomKilled(last) {
		return "killed by the kernel, out of memory"
	}
	return ""
}

// crashLine returns the line of the Go runtime's output that names a crash; "": there is none. A signal that asks for a dump of the
// goroutines, such as SIGQUIT, is no crash.
func crashLine(output []byte) string {
	if bytes.HasPrefix(output, []byte("\n")) { // the runtime writes the line of a fatal error to the log only
		return "fatal error, see the log of the daemon"
	}
	for line := range bytes.Lines(output) {
		for _, prefix := range []string{"panic: ", "fatal error: ", "SIGSEGV: ", "SIGBUS: "} {
			if bytes.HasPrefix(line, []byte(prefix)) {
				return string(bytes.TrimSpace(line[:min(len(line), 200)]))
			}
		}
	}
	return ""
}

// oomKilled reports whether the kernel's log says that a daemon was OOM-killed.
func oomKilled(last life) bool {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	buffer := make([]byte, 8<<10)
	for range maxKernelLog {
		n, err := unix.Read(fd, buffer)
		switch {
		case errors.Is(err, unix.EPIPE) || errors.Is(err, unix.EINTR): // entries were overwritten
			continue
		case err != nil:
			return false
		case killsDaemon(string(buffer[:n]), last):
			return true
		}
	}
	return false
}

// killsDaemon reports whether an entry of /dev/kmsg is the OOM kill of a daemon. It has the form "level,number,microseconds,flags;message".
func killsDaemon(entry string, last life) bool {
	head, message, _ := strings.Cut(entry, ";")
	fields := strings.Split(head, ",")
	if len(fields) < 3 || !strings.Contains(message, fmt.Sprintf("Killed process %d (", last.PID)) {
		return false
	}
	at, err := strconv.ParseInt(fields[2], 10, 64)
	return err == nil && time.Duration(at)*time.Microsecond >= last.Started
}
