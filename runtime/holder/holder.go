// Package holder is the process that keeps the namespaces of a daemon without root: a user, a mount and a network namespace exist as long
// as a process is in them, and daemons come and go. It is the program of the monitor under another name, so that its code takes no
// additional memory. It holds no file, answers nothing and starts nothing. Package rootless starts and finds it.
package holder

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/loopback"
)

// Name is the program name (argv[0]) that selects the holder.
const Name = "podstead-holder"

const (
	// Mapped is an argument of a holder that runs with the rights of root in its namespaces.
	Mapped = "mapped"
	// WaitFD is a descriptor from which a holder without [Mapped] reads one byte when its IDs are mapped. At the end of the file it exits.
	WaitFD = 3
	// ReadyFD is a descriptor to which a holder writes one byte when the namespaces can be used, or its error.
	ReadyFD = 4
)

// Ready is what a holder writes when the namespaces can be used.
const Ready = "."

// Invoked reports whether a process with these arguments (os.Args) is a holder.
func Invoked(args []string) bool {
	return (len(args) == 1 || len(args) == 2 && args[1] == Mapped) && filepath.Base(args[0]) == Name
}

// Main is the main function. It returns the exit code, and otherwise runs until it is killed.
func Main() int {
	ready := os.NewFile(ReadyFD, "ready")
	if ready == nil {
		return 2
	}
	err := os.WriteFile("/proc/self/comm", []byte(Name), 0) // a process that was executed as /proc/self/exe is named exe
	if err == nil {
		err = prepare(len(os.Args) == 1)
	}
	if err != nil {
		_, _ = fmt.Fprint(ready, err) // the starter reads an error or the end of the file
		return 1
	}
	if _, err := ready.WriteString(Ready); err != nil {
		return 1
	}
	_ = ready.Close()
	for {
		_ = unix.Pause()
	}
}

// prepare waits until the IDs are mapped and executes this program again, which gives it all capabilities in its namespaces. The second
// program sets the loopback up.
func prepare(first bool) error {
	if !first {
		return loopback.Up()
	}
	wait := os.NewFile(WaitFD, "wait")
	if wait == nil {
		return errors.New("the descriptor to wait on is missing")
	}
	if _, err := io.ReadFull(wait, make([]byte, 1)); err != nil {
		return errors.New("the starter has exited")
	}
	_ = wait.Close()
	if _, err := unix.FcntlInt(ReadyFD, unix.F_SETFD, 0); err != nil {
		return err
	}
	return fmt.Errorf("execute the holder again: %w", syscall.Exec("/proc/self/exe", []string{Name, Mapped}, nil))
}
