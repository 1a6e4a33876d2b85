// Command podstead-monitor is the parent of all containers of a host, and the keeper that starts it again. The podstead daemon starts one
// keeper; see package monitor. Under other names it is a process of pods or of a daemon without root; see package applet. It also forwards
// the host ports of such a daemon, see package forwarder.
package main

import (
	"context"
	"os"
	"runtime"

	"github.com/podstead/podstead/runtime/applet"
	"github.com/podstead/podstead/runtime/forwarder"
	"github.com/podstead/podstead/runtime/monitor"
)

// The first thread runs nothing but the main goroutine, which never waits for a disk: the keeper takes a monitor that was killed for one
// that cannot exit when its first thread has exited and others have not.
func init() { runtime.LockOSThread() }

// version is set with -ldflags -X main.version=...; empty: that of the build information.
var version string

func main() {
	if code, invoked := applet.Main(os.Args); invoked {
		os.Exit(code)
	}
	if forwarder.Invoked(os.Args) {
		os.Exit(forwarder.Main(context.Background(), os.Args))
	}
	os.Exit(monitor.Main(context.Background(), version, os.Args))
}
