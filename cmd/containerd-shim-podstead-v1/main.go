// Command containerd-shim-podstead-v1 cleans up after the shim of a pod that a version before 2026-11-29 has started; see package shim.
package main

import (
	"context"
	"os"

	"github.com/podstead/podstead/runtime/shim"
)

func main() { os.Exit(shim.Main(context.Background())) }
