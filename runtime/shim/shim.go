// Package shim is what remains of the shims of versions before 2026-11-29, in which each pod has a process between the engine and its
// containers. They keep running after an upgrade until their pods get a new sandbox, with the program that they have in memory. containerd
// connects to them, and executes the program of this package to clean up after a dead one.
//
// It reads what shims have left in the bundles of containers. The engine finds and kills them. No code starts a shim.
package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/manager"
	containerdshim "github.com/containerd/containerd/v2/pkg/shim"
)

// Name is the name of the shim binary, and of a link to a multi-call binary that acts as the shim.
const Name = "containerd-shim-podstead-v1"

// runtimeName is the name of the shim in its logs.
const runtimeName = "io.containerd.podstead.v1"

// Invoked reports whether a process with these arguments (os.Args) is meant to be a shim: by its name, or by the arguments that containerd
// and shims pass to a shim of any name.
func Invoked(args []string) bool {
	if len(args) == 0 {
		return false
	}
	if strings.HasPrefix(filepath.Base(args[0]), "containerd-shim-podstead") {
		return true
	}
	return len(args) > 1 && (args[1] == "-namespace" || args[1] == "-info")
}

// Main is the main function of the shim binary. It cleans up after a dead shim (action delete) and describes the OCI runtime (flag -info),
// as containerd requests by os.Args. It returns the exit code of the process or does not return.
func Main(ctx context.Context) int {
	if err := check(os.Args); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", Name, err)
		return 2
	}
	containerdshim.RunShim(ctx, cleaner{manager.NewShimManager(runtimeName)}) // exits the process on errors
	return 0
}

// check returns an error for other requests than those that containerd sends for a shim that exists.
func check(args []string) error {
	if n := len(args); n < 2 || args[n-1] != "delete" && args[1] != "-info" && args[1] != "-v" {
		return errors.New("the podstead daemon runs this program to clean up after a pod of an earlier version; it starts no pod")
	}
	return nil
}
