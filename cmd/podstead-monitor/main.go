// Command podstead-monitor is the parent of all containers of a host, and the keeper that starts it again. The podstead daemon starts one
// keeper; see package monitor. In pods whose containers share a PID namespace it is also the pause process; see package pause.
// In containers with an init process it is that process; see package containerinit. It also holds the namespaces of a daemon without root,
// see package holder, and forwards its host ports, see package forwarder.
package main

import (
	"context"
	"os"
	"runtime"

	"github.com/podstead/podstead/runtime/containerinit"
	"github.com/podstead/podstead/runtime/forwarder"
	"github.com/podstead/podstead/runtime/holder"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/pause"
)

// The first thread runs nothing but the main goroutine, which never waits for a disk: the keeper takes a monitor that was killed for one
// that cannot exit when its first thread has exited and others have not.
func init() { runtime.LockOSThread() }

// version is set with -ldflags -X main.version=...; empty: that of the build information.
var version string

func main() {
	if pause.Invoked(os.Args) {
		os.Exit(pause.Main())
	}
	if containerinit.Invoked(os.Args) {
		os.Exit(containerinit.Main(os.Args))
	}
	if holder.Invoked(os.Args) {
		os.Exit(holder.Main())
	}
	if forwarder.Invoked(os.Args) {
		os.Exit(forwarder.Main(context.Background(), os.Args))
	}
	os.Exit(monitor.Main(context.Background(), version, os.Args))
}
