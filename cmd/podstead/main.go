//go:build !manpages

// The Go runtime would read the CPU limit of the cgroup every second to adjust GOMAXPROCS. It is read at the start.
//
//go:debug updatemaxprocs=0

// Command podstead runs pods on a single host. It is the command line, the daemon and, if it is invoked as such, a generator of systemd.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/internal/daemon/units"
)

// clientGCPercent makes most commands end before the first collection of garbage, at 16 MiB in the place of 4.
const clientGCPercent = 400

func main() {
	if units.InvokedAsGenerator(os.Args) {
		os.Exit(units.MainGenerator(os.Args, os.Stderr))
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(clientGCPercent) // the daemon sets its own
	}
	a := &app{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, hostRoot: "/", start: daemon.Containerd,
		idle: serviceIdle, hostStopping: daemon.HostStopping,
		converter: func() string { return daemon.Installed(compose.Program) },
	}
	os.Exit(a.run(context.Background(), os.Args[1:]))
}
