package applet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// initName is the program name (argv[0]) that selects the first process of a container with an init process. It starts the command of the
// container as its child, forwards signals to it, reaps orphaned processes, and exits when the command exits. The kernel then kills what is
// left in the PID namespace of the container.
const initName = "podstead-init"

// The exit codes of a shell for a command that cannot be started.
const (
	exitFailed        = 125
	exitNotExecutable = 126
	exitNotFound      = 127
	// exitSignal is added to the number of the signal that ended the command.
	exitSignal = 128
)

// isInit reports whether a process with these arguments is an init process.
func isInit(args []string) bool { return len(args) > 1 && filepath.Base(args[0]) == initName }

// initialize is the main function of the init process. It returns the exit code.
func initialize(args []string) int {
	signals := make(chan os.Signal, 64)
	signal.Notify(signals) // before the command starts, so that none is lost
	// In a PID namespace that containers share, orphaned processes have this parent too.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fail(exitFailed, err)
	}
	program, err := exec.LookPath(args[1])
	if err != nil {
		return fail(codeOf(err), err)
	}
	child, err := os.StartProcess(program, args[1:], &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: attributes(),
	})
	if err != nil {
		return fail(codeOf(err), err)
	}
	for {
		if code, exited := reap(child.Pid); exited {
			return code
		}
		forward(child.Pid, <-signals)
	}
}

// attributes puts the command into a process group of its own, as shells do, so that it can signal its group. If standard input is a
// terminal, the group is the one in the foreground.
func attributes() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if _, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err == nil {
		attributes.Foreground, attributes.Ctty = true, 0
	}
	return attributes
}

// forward sends a signal to the command. SIGCHLD is for this process, and SIGURG is used by the Go runtime.
func forward(pid int, s os.Signal) {
	number, is := s.(syscall.Signal)
	if !is || number == unix.SIGCHLD || number == unix.SIGURG {
		return
	}
	_ = unix.Kill(pid, number) // it may have exited; that is seen next
}

// reap reaps all children that have exited, and returns the exit code of the command if it is one of them; 0: there is no command.
func reap(command int) (code int, exited bool) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || pid <= 0:
			return code, exited
		case pid == command && status.Signaled():
			code, exited = exitSignal+int(status.Signal()), true
		case pid == command:
			code, exited = status.ExitStatus(), true
		}
	}
}

func codeOf(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return exitNotFound
	}
	return exitNotExecutable
}

// fail writes the cause of an error to the output of the container, which is logged. The name of the program stays out of the log, because
// it may be the value of a secret: command = ["$(TOKEN)"].
func fail(code int, err error) int {
	if lookup, is := errors.AsType[*exec.Error](err); is {
		err = lookup.Err
	}
	if call, is := errors.AsType[*fs.PathError](err); is {
		err = call.Err
	}
	fmt.Fprintln(os.Stderr, initName+": "+err.Error())
	return code
}
