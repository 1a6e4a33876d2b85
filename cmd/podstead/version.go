package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/spec"
)

// version is set by the linker.
var version = "devel"

// versions are the versions of the program and of its parts.
type versions struct {
	Version    string       `json:"version"`
	Kubernetes string       `json:"kubernetes"` // whose pod semantics the program follows
	Containerd string       `json:"containerd"`
	Runtime    string       `json:"runtime"`
	Daemon     *api.Version `json:"daemon,omitempty"` // nil: no daemon is running
}

func (a *app) versionCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show version information",
		Long: `Show the versions of Podstead, the embedded containerd, the OCI runtime and, if it is running, the daemon. "Kubernetes
semantics" is the Kubernetes release whose pod semantics Podstead follows. No daemon is started.`,
		Example: `  # Show all versions
  podstead version

  # Print the Kubernetes release whose pod semantics Podstead follows
  podstead version -o json | jq -r .kubernetes`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.version(cmd, format) },
	}
	formats(cmd, &format, "json", "yaml")
	return cmd
}

func (a *app) version(cmd *cobra.Command, format string) error {
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	daemon, _ := newClient(cmd, c)
	v, err := versionsOf(cmd.Context(), c, a.running(daemon))
	if err != nil {
		return err
	}
	if format != "" {
		return a.encode(format, v)
	}
	rows := [][]string{
		{"podstead", v.Version},
		{"Kubernetes semantics", v.Kubernetes},
		{"containerd", v.Containerd + " (embedded)"},
		{"OCI runtime", v.Runtime},
	}
	if v.Daemon != nil {
		rows = append(rows, []string{"daemon", fmt.Sprintf("%s, pid %d", v.Daemon.Version, v.Daemon.PID)})
	}
	return a.screen().Table(rows)
}

// versionsOf returns the versions. With an error, those of the daemon are missing.
func versionsOf(ctx context.Context, c *config.Config, daemon *client.Client) (versions, error) {
	v := versions{
		Version: version, Kubernetes: "v" + spec.KubernetesVersion, Containerd: containerdVersion(),
	}
	program := c.Engine.Runtime
	running, err := daemon.Version(ctx)
	switch {
	case err == nil:
		v.Daemon, program = &running, running.Runtime
	case errors.Is(err, api.ErrUnavailable):
		err = nil
	}
	v.Runtime = runtimeVersion(ctx, program)
	return v, err
}

// runtimeVersion returns the first line that the OCI runtime prints for --version, or its name with the error. Without a daemon, that of
// auto is not known.
func runtimeVersion(ctx context.Context, program string) string {
	if program == config.RuntimeAuto {
		return program + " (selected when the daemon starts)"
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return program + " (" + err.Error() + ")"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

// containerdVersion returns the version of the embedded containerd.
func containerdVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "github.com/containerd/containerd/v2" {
				return m.Version
			}
		}
	}
	return "unknown"
}
