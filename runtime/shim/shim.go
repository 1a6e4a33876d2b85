// Package shim is the program that stands between the engine and a pod's containers: containerd's shim for runc, made
// of containerd's own packages, with three differences.
//
//   - It serves the sandbox API, and is itself the sandbox: one process for each pod, which all containers of the pod
//     share and which lives while the pod does, with or without containers. There is a pause process only where the
//     containers share a PID namespace (see package pause).
//   - It writes the containers' logs itself (see [LogURI]), so that they go on while the daemon is away.
//   - An exited container stays known to it until it is deleted, so that a daemon which comes back still learns its
//     exit status.
//
// The package owns the shim's process. It knows nothing of pods, and the engine's process uses only its constants and
// the cgroup functions.
package shim

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/manager"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	containerdshim "github.com/containerd/containerd/v2/pkg/shim"

	"github.com/podstead/podstead/runtime/pause"
)

// Name is the name of the shim's program, and of any link to a program that is to act as one.
const Name = "containerd-shim-podstead-v1"

// runtimeName is what the shim calls itself in its logs.
const runtimeName = "io.containerd.podstead.v1"

// Invoked reports whether a process with these arguments, os.Args, is meant to be the shim: by its name, or by the
// arguments that containerd and the shim itself pass to a shim whatever its name is.
func Invoked(args []string) bool {
	if len(args) == 0 {
		return false
	}
	if pause.Invoked(args) {
		return true
	}
	if strings.HasPrefix(filepath.Base(args[0]), "containerd-shim-podstead") {
		return true
	}
	return len(args) > 1 && (args[1] == "-namespace" || args[1] == "-info")
}

// Main is the shim's program: it starts a shim, cleans up after a dead one, is one or is a sandbox's pause, as os.Args says. It returns the
// exit status of the process, or does not return, and expects a process that has done nothing else.
func Main(ctx context.Context) int {
	if pause.Invoked(os.Args) {
		return pause.Main()
	}
	server, err := parseServer(os.Args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", Name, err)
		return 2
	}
	if server == nil {
		// «start», «delete», -info and -v: containerd's own handling, which ends the process where it fails.
		containerdshim.RunShim(ctx, launcher{manager.NewShimManager(runtimeName)})
		return 0
	}
	if err := server.run(namespaces.WithNamespace(ctx, server.namespace)); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s: %v\n", Name, server.id, err)
		return 1
	}
	return 0
}

// parseServer reads the arguments of a shim that is to serve, and returns nil for any other task.
func parseServer(args []string) (*server, error) {
	var (
		s     server
		other bool
		skip  string
	)
	set := flag.NewFlagSet(Name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&s.namespace, "namespace", "", "")
	set.StringVar(&s.id, "id", "", "")
	set.BoolVar(&s.debug, "debug", false, "")
	set.StringVar(&skip, "address", "", "")
	set.StringVar(&skip, "bundle", "", "")
	set.StringVar(&skip, "publish-binary", "", "")
	for _, name := range []string{"info", "v", "version"} {
		set.BoolVar(&other, name, false, "")
	}
	if err := set.Parse(args[1:]); err != nil {
		return nil, err
	}
	if other || set.NArg() > 0 {
		return nil, nil
	}
	if s.namespace == "" || s.id == "" {
		return nil, fmt.Errorf("this program is started by the podstead daemon: -namespace and -id are required")
	}
	return &s, nil
}
