package applet

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// HolderName is the program name (argv[0]) that selects the holder, which keeps the namespaces of a daemon without root: a user, a mount
// and a network namespace exist as long as a process is in them, and daemons come and go. It holds no file, answers nothing and starts
// nothing. Package rootless starts and finds it.
const HolderName = "podstead-holder"

const (
	// HolderMapped is an argument of a holder that runs with the rights of root in its namespaces.
	HolderMapped = "mapped"
	// holderWaitFD is a descriptor from which a holder without [HolderMapped] reads one byte when its IDs are mapped. At the end of the
	// file it exits.
	holderWaitFD = 3
	// holderReadyFD is a descriptor to which a holder writes one byte when the namespaces can be used, or its error.
	holderReadyFD = 4
)

// HolderReady is what a holder writes when the namespaces can be used.
const HolderReady = "."

// isHolder reports whether a process with these arguments is a holder.
func isHolder(args []string) bool {
	return (len(args) == 1 || len(args) == 2 && args[1] == HolderMapped) && filepath.Base(args[0]) == HolderName
}

// hold is the main function of the holder. It returns the exit code, and otherwise runs until it is killed.
func hold() int {
	ready := os.NewFile(holderReadyFD, "ready")
	if ready == nil {
		return 2
	}
	err := os.WriteFile("/proc/self/comm", []byte(HolderName), 0) // a process that was executed as /proc/self/exe is named exe
	if err == nil {
		err = prepareHolder(len(os.Args) == 1)
	}
	if err != nil {
		_, _ = fmt.Fprint(ready, err) // the starter reads an error or the end of the file
		return 1
	}
	if _, err := ready.WriteString(HolderReady); err != nil {
		return 1
	}
	_ = ready.Close()
	for {
		_ = unix.Pause()
	}
}

// prepareHolder waits until the IDs are mapped and executes this program again, which gives it all capabilities in its namespaces. The
// second program sets the loopback up.
func prepareHolder(first bool) error {
	if !first {
		return UpLoopback()
	}
	wait := os.NewFile(holderWaitFD, "wait")
	if wait == nil {
		return errors.New("the descriptor to wait on is missing")
	}
	if _, err := io.ReadFull(wait, make([]byte, 1)); err != nil {
		return errors.New("the starter has exited")
	}
	_ = wait.Close()
	if _, err := unix.FcntlInt(holderReadyFD, unix.F_SETFD, 0); err != nil {
		return err
	}
	return fmt.Errorf("execute the holder again: %w", syscall.Exec("/proc/self/exe", []string{HolderName, HolderMapped}, nil))
}
