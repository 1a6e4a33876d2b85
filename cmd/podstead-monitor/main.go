// Command podstead-monitor is the parent of all containers of a host, and the keeper that starts it again. The podstead daemon starts one
// keeper; see package monitor. In pods whose containers share a PID namespace it is also the pause process; see package pause.
package main

import (
	"context"
	"os"

	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/pause"
)

func main() {
	if pause.Invoked(os.Args) {
		os.Exit(pause.Main())
	}
	os.Exit(monitor.Main(context.Background(), os.Args))
}
