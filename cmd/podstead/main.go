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
	"time"

	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/internal/daemon/units"
)

// clientGCPercent makes most commands exit before the first collection of garbage, at 16 MiB in the place of 4. Those that run for longer
// than clientGCTime save memory.
const (
	clientGCPercent = 400
	clientGCTime    = 10 * time.Second
)

func main() {
	if units.InvokedAsGenerator(os.Args) {
		os.Exit(units.MainGenerator(os.Args, os.Stderr))
	}
	if os.Getenv("GOGC") == "" {
		usual := debug.SetGCPercent(clientGCPercent)
		go func() {
			<-time.After(clientGCTime)
			if percent := debug.SetGCPercent(usual); percent != clientGCPercent { // the daemon has set its own
				debug.SetGCPercent(percent)
			}
		}()
	}
	a := &app{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, hostRoot: "/", start: daemon.Containerd,
		idle: serviceIdle, hostStopping: daemon.HostStopping,
		converter: func() string { return daemon.Installed(compose.Program) },
	}
	os.Exit(a.run(context.Background(), os.Args[1:]))
}
