// Package pause is the first process of a PID namespace that the containers of a pod share (shareProcessNamespace of
// Kubernetes). It reaps the processes that containers orphan, and is all that keeps the namespace: with it every process
// in there ends, by the kernel's hand.
//
// It is the shim's own program under another name, so that it takes no memory of its own for its code. The package must import
// next to nothing, and knows nothing of containers: whoever runs it makes the namespace.
package pause

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Name is by what name the program is to be started to be a pause.
const Name = "pause"

// alone is how often a pause that is to end looks whether it is the last one.
const alone = 100 * time.Millisecond

// Invoked reports whether a process with these arguments, os.Args, is meant to be a pause.
func Invoked(args []string) bool { return len(args) == 1 && filepath.Base(args[0]) == Name }

// Main is the program. It returns the exit status.
//
// SIGTERM and SIGINT end it, once it is the only process in its namespace: whoever stops a pod's cgroup as a whole, like
// systemd at shutdown, signals it together with the containers, whose last moments it must not cut short. SIGKILL from outside
// ends it, and them, at once.
func Main() int {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGCHLD, unix.SIGTERM, unix.SIGINT)
	if os.Getpid() != 1 {
		return 2 // it would reap nobody, and end with nobody
	}
	var look <-chan time.Time
	for {
		select {
		case sig := <-signals:
			if sig == unix.SIGCHLD {
				reap()
			} else if look == nil {
				tick := time.NewTicker(alone)
				defer tick.Stop()
				look = tick.C
			}
		case <-look:
			if isAlone() {
				return 0
			}
		}
	}
}

// reap takes leave of every child that has ended.
func reap() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if !errors.Is(err, unix.EINTR) && (err != nil || pid <= 0) {
			return
		}
	}
}

// isAlone asks whether there is any other process that could be signalled, allowed or not.
func isAlone() bool { return errors.Is(unix.Kill(-1, 0), unix.ESRCH) }
