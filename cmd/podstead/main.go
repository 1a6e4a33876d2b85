//go:build !manpages

// The Go runtime would read the CPU limit of the cgroup every second to adjust GOMAXPROCS. It is read at the start.
//
//go:debug updatemaxprocs=0

// Command podstead runs pods on a single host. It is the command line, the daemon and, if it is invoked as such, the cleanup after shims of
// earlier versions.
package main

import (
	"context"
	"os"

	"github.com/podstead/podstead/internal/daemon"
)

func main() {
	if exitCode, ran := daemon.OtherProgram(context.Background(), os.Args); ran {
		os.Exit(exitCode)
	}
	a := &app{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, hostRoot: "/", start: daemon.Containerd,
		idle: serviceIdle, hostStopping: daemon.HostStopping,
	}
	os.Exit(a.run(context.Background(), os.Args[1:]))
}
