// Package shim is what remains of the shims of versions before 2026-11-29, in which each pod has a process between the engine and its
// containers. They keep running after an upgrade until their pods get a new sandbox, with the program that they have in memory. containerd
// connects to them, and executes the program of this name to clean up after a dead one.
//
// The package recognizes shims, and reads what they have left in the bundles of containers. The engine finds and kills them. No code starts
// a shim.
package shim

import (
	"errors"
	"path/filepath"
	"strings"
)

// Name is the name of the program that cleans up after shims, and of the shims themselves.
const Name = "containerd-shim-podstead-v1"

// ErrMissing is the error for a bundle of an earlier version if [Name] is not installed.
var ErrMissing = errors.New("the program " + Name + " is not installed, but pods of an earlier version exist")

// Invoked reports whether a process with these arguments (os.Args) is a shim: by its name, or by the arguments that containerd and shims
// pass to a shim of any name. Versions before 2026-11-30 used podstead where [Name] was not installed.
func Invoked(args []string) bool {
	if len(args) == 0 {
		return false
	}
	if strings.HasPrefix(filepath.Base(args[0]), "containerd-shim-podstead") {
		return true
	}
	return len(args) > 1 && (args[1] == "-namespace" || args[1] == "-info")
}
