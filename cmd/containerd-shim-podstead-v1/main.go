// Command containerd-shim-podstead-v1 cleans up after a dead shim of a pod that a version before 2026-11-29 has started; see package shim.
// containerd executes it with the action delete, and with -info for a description of the OCI runtime.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/manager"
	containerdshim "github.com/containerd/containerd/v2/pkg/shim"

	"github.com/podstead/podstead/runtime/shim"
)

// runtimeName is the name of the shim in its logs.
const runtimeName = "io.containerd.podstead.v1"

func main() {
	if err := check(os.Args); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", shim.Name, err)
		os.Exit(2)
	}
	containerdshim.RunShim(context.Background(), cleaner{manager.NewShimManager(runtimeName)}) // exits the process on errors
}

// check returns an error for other requests than those that containerd sends for a shim that exists.
func check(args []string) error {
	if n := len(args); n < 2 || args[n-1] != "delete" && args[1] != "-info" && args[1] != "-v" {
		return errors.New("the podstead daemon runs this program to clean up after a pod of an earlier version; it starts no pod")
	}
	return nil
}
