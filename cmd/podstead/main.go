// Command podstead runs pods on one machine. See package documentation of its parts below internal, and docs/.
package main

import (
	"context"
	"os"

	"github.com/podstead/podstead/cmd/podstead/internal/daemon"
	"github.com/podstead/podstead/runtime/shim"
)

// version is set by the build.
var version = "devel"

func main() {
	if shim.Invoked(os.Args) {
		os.Exit(shim.Main(context.Background()))
	}
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, start: daemon.Containerd}
	os.Exit(a.run(context.Background(), os.Args[1:]))
}
