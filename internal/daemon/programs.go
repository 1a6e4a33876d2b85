package daemon

import (
	"context"
	"os"

	"github.com/podstead/podstead/internal/generator"
	"github.com/podstead/podstead/runtime/shim"
)

// OtherProgram runs the program that the arguments of this process ask for, if it is not podstead: the shim of a pod, its pause process, or
// the generator of systemd. It returns its exit code, and whether there was one.
func OtherProgram(ctx context.Context, args []string) (exitCode int, ran bool) {
	switch {
	case shim.Invoked(args):
		return shim.Main(ctx), true
	case generator.Invoked(args):
		return generator.Main(args, os.Stderr), true
	}
	return 0, false
}
