package damage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childName is the name of the process that checks a database. Its arguments are the file and the [Depth].
const childName = "podstead-check-database"

// Limits of the child. A page that refers to others without end needs memory or time without end.
const (
	maxMemory = 128 << 20 // for the check of a database of 5 GiB
	maxStack  = 32 << 20
	maxTime   = 2 * time.Minute
	maxOutput = 64 << 10
)

// An answer is what the child writes when its check is complete. A child that crashes writes none.
type answer struct {
	Damage *Error `json:"damage,omitempty"`
	Error  string `json:"error,omitempty"`
}

// init is the main function of the child. The check is needed wherever an engine starts, which is also in many test programs, and a child
// that ran their tests instead would start children of its own.
func init() {
	if len(os.Args) == 3 && os.Args[0] == childName {
		os.Exit(childMain(os.Args[1], Depth(os.Args[2])))
	}
}

func childMain(path string, depth Depth) int {
	debug.SetMaxStack(maxStack)
	var a answer
	err := limitMemory(maxMemory)
	if err == nil {
		err = check(path, depth)
	}
	if bad, is := errors.AsType[*Error](err); is {
		a.Damage = bad
	} else if err != nil {
		a.Error = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(a); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// limitMemory limits the memory that this process may allocate from now on. It fails if the host does not have as much, so that a check
// that exceeds the limit is due to the database.
func limitMemory(size uint64) error {
	reserved, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err == nil {
		err = unix.Munmap(reserved)
	}
	if err != nil {
		return fmt.Errorf("allocate memory: %w", err)
	}
	var text []byte
	if text, err = os.ReadFile("/proc/self/statm"); err != nil {
		return err
	}
	var total, resident, shared, code, library, data uint64
	if _, err := fmt.Sscan(string(text), &total, &resident, &shared, &code, &library, &data); err != nil {
		return fmt.Errorf("read /proc/self/statm: %w", err)
	}
	limit := data*uint64(os.Getpagesize()) + size
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
		return fmt.Errorf("limit memory: %w", err)
	}
	return nil
}

// checkInChild runs a check in a child process.
func checkInChild(ctx context.Context, path string, depth Depth) error {
	limited, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	cmd := exec.CommandContext(limited, "/proc/self/exe")
	cmd.Args = []string{childName, path, string(depth)}
	cmd.Env = []string{"GOTRACEBACK=none"}
	var stdout, stderr limitedBuffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// A signal from the terminal of a daemon in the foreground is not for the child, which ends with the daemon.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig applies to the thread, not to the process
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if cmd.ProcessState == nil {
		return fmt.Errorf("check %s: start: %w", path, err)
	}
	if crashed(cmd.ProcessState) {
		return &Error{path, ReasonPage, "the check crashed: " + firstLine(stderr.String())}
	}
	if limited.Err() != nil {
		if cmd.ProcessState.UserTime() > maxTime/2 { // it did not wait for the disk
			return &Error{path, ReasonPage, fmt.Sprintf("the check did not end within %s", maxTime)}
		}
		return fmt.Errorf("check %s: %w", path, limited.Err())
	}
	if err != nil {
		return fmt.Errorf("check %s: %w: %s", path, err, firstLine(stderr.String()))
	}
	var a answer
	if err := json.Unmarshal(stdout.Bytes(), &a); err != nil {
		return fmt.Errorf("check %s: answer of the child process: %w", path, err)
	}
	if a.Error != "" {
		return fmt.Errorf("check %s: %s", path, a.Error)
	}
	if a.Damage != nil {
		return a.Damage
	}
	return nil
}

// crashed reports whether a process was ended by what it did: an uncaught panic, a fault, or an exceeded limit of its memory or stack.
// SIGKILL is not among these. It may come from the out-of-memory killer or from an administrator.
func crashed(p *os.ProcessState) bool {
	const exitOfPanic = 2 // also of a fault and of the limits, which the Go runtime handles
	status, ok := p.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return p.ExitCode() == exitOfPanic
	}
	switch status.Signal() {
	case syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGABRT, syscall.SIGILL, syscall.SIGFPE, syscall.SIGTRAP:
		return true
	}
	return false
}

// readable reports whether a file can be read completely.
func readable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(io.Discard, struct{ io.Reader }{f}); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// limitedBuffer keeps the first [maxOutput] bytes.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	_, err := b.Buffer.Write(p[:min(len(p), max(0, maxOutput-b.Len()))])
	return len(p), err
}
