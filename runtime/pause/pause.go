// Package pause is PID 1 of a PID namespace that the containers of a pod share (shareProcessNamespace). It reaps orphaned
// processes and keeps the namespace alive. When it exits, the kernel kills every process in the namespace.
//
// It is the monitor's binary under another name, so that its code takes no additional memory. The package must have few imports and
// has no notion of containers. The caller creates the namespace.
package pause

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Name is the program name (argv[0]) that selects the pause process.
const Name = "pause"

// Trial is an argument with which the process exits at once.
const Trial = "trial"

// aloneInterval is the interval at which a terminating pause checks whether other processes remain.
const aloneInterval = 100 * time.Millisecond

// Invoked reports whether a process with these arguments (os.Args) is a pause process.
func Invoked(args []string) bool {
	return (len(args) == 1 || len(args) == 2 && args[1] == Trial) && filepath.Base(args[0]) == Name
}

// Main is the main function. It returns the exit code.
//
// On SIGTERM and SIGINT it exits once it is the only process in its namespace. systemd signals the whole cgroup of a pod at
// shutdown, and the pause process must not shorten the containers' termination. SIGKILL from outside terminates it and them at
// once.
func Main() int {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGCHLD, unix.SIGTERM, unix.SIGINT)
	if os.Getpid() != 1 {
		return 2 // not PID 1: it would reap nothing and keep no namespace
	}
	if len(os.Args) == 2 && os.Args[1] == Trial {
		return 0
	}
	var check <-chan time.Time
	for {
		select {
		case sig := <-signals:
			if sig == unix.SIGCHLD {
				reap()
			} else if check == nil {
				tick := time.NewTicker(aloneInterval)
				defer tick.Stop()
				check = tick.C
			}
		case <-check:
			if isAlone() {
				return 0
			}
		}
	}
}

// reap reaps all exited children.
func reap() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if !errors.Is(err, unix.EINTR) && (err != nil || pid <= 0) {
			return
		}
	}
}

// isAlone reports whether no other process can be signalled, with or without permission.
func isAlone() bool { return errors.Is(unix.Kill(-1, 0), unix.ESRCH) }
