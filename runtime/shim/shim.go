// Package shim is the process between the engine and a pod's containers. It is containerd's shim for runc, built from
// containerd's packages, with four differences.
//
//   - It implements the sandbox API and is itself the sandbox. All containers of a pod share one shim, which lives as long as the
//     pod, with or without containers. There is a pause process only if the containers share a PID namespace (see package pause).
//   - It writes the log files of containers (see [LogURI]), so logging continues while the daemon is not running.
//   - It serves clients that attach to containers (see package attach), independently of the daemon.
//   - It keeps an exited container until the container is deleted, so a restarted daemon can read its exit code.
//
// The package owns the shim process. It has no notion of pods. The engine's process uses only its constants and [Retire],
// [LogURI] and [OOMKilled].
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

// Name is the name of the shim binary, and of a link to a multi-call binary that acts as the shim.
const Name = "containerd-shim-podstead-v1"

// runtimeName is the name of the shim in its logs.
const runtimeName = "io.containerd.podstead.v1"

// Invoked reports whether a process with these arguments (os.Args) is meant to be the shim: by its name, or by the arguments that
// containerd and the shim pass to a shim of any name.
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

// Main is the main function of the shim binary. Depending on os.Args it starts a shim, cleans up after a dead one, runs as shim,
// or runs as the pause process of a sandbox. It returns the exit code of the process or does not return. It must be called before
// anything else.
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
		// Actions start and delete, and flags -info and -v: containerd's own code, which exits the process on errors.
		containerdshim.RunShim(ctx, launcher{manager.NewShimManager(runtimeName)})
		return 0
	}
	if err := server.run(namespaces.WithNamespace(ctx, server.namespace)); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s: %v\n", Name, server.id, err)
		return 1
	}
	return 0
}

// parseServer reads the arguments of a shim that serves requests. It returns nil for other actions.
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
