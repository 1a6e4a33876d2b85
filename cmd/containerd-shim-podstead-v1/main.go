// Command containerd-shim-podstead-v1 is the process that each pod's containers run under. The podstead daemon starts
// it; see package shim.
package main

import (
	"context"
	"os"

	"github.com/podstead/podstead/runtime/shim"
)

func main() { os.Exit(shim.Main(context.Background())) }
