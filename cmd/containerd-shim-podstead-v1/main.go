// Command containerd-shim-podstead-v1 is the containerd shim of a pod. The podstead daemon starts one for each pod; see package shim.
package main

import (
	"context"
	"os"

	"github.com/podstead/podstead/runtime/shim"
)

func main() { os.Exit(shim.Main(context.Background())) }
