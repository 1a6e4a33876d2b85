package applet

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// PauseName is the program name (argv[0]) that selects the pause process: PID 1 of a PID namespace that the containers of a pod share
// (shareProcessNamespace). It reaps orphaned processes and keeps the namespace alive. When it exits, the kernel kills every process in the
// namespace, which the caller creates.
const PauseName = "pause"

// PauseTrial is an argument with which the pause process exits at once.
const PauseTrial = "trial"

// aloneInterval is the interval at which a terminating pause checks whether other processes remain.
const aloneInterval = 100 * time.Millisecond

// isPause reports whether a process with these arguments is a pause process.
func isPause(args []string) bool {
	return (len(args) == 1 || len(args) == 2 && args[1] == PauseTrial) && filepath.Base(args[0]) == PauseName
}

// pause is the main function of the pause process. It returns the exit code.
//
// On SIGTERM and SIGINT it exits once it is the only process in its namespace. systemd signals the whole cgroup of a pod at
// shutdown, and the pause process must not shorten the containers' termination. SIGKILL from outside terminates it and them at
// once.
func pause() int {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGCHLD, unix.SIGTERM, unix.SIGINT)
	if os.Getpid() != 1 {
		return 2 // not PID 1: it would reap nothing and keep no namespace
	}
	if len(os.Args) == 2 && os.Args[1] == PauseTrial {
		return 0
	}
	var check <-chan time.Time
	for {
		select {
		case sig := <-signals:
			if sig == unix.SIGCHLD {
				reap(0)
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

// isAlone reports whether no other process can be signalled, with or without permission.
func isAlone() bool { return errors.Is(unix.Kill(-1, 0), unix.ESRCH) }
