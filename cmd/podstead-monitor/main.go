// Command podstead-monitor is the parent of all containers of a host, and the keeper that starts it again. The podstead daemon starts one
// keeper; see package monitor.
package main

import (
	"context"
	"os"

	"github.com/podstead/podstead/runtime/monitor"
)

func main() { os.Exit(monitor.Main(context.Background(), os.Args)) }
