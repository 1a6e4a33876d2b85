package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
)

// versions are those of the program, of what is in it, and of the daemon that runs.
type versions struct {
	Version    string       `json:"version"`
	Containerd string       `json:"containerd"`
	Runtime    string       `json:"runtime"`
	Daemon     *api.Version `json:"daemon,omitempty"` // absent: none is running
}

func (a *app) versionCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of podstead, containerd and the OCI runtime",
		Long:  "No daemon is started for it; of one that runs, its version is shown too.",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.version(cmd, format) },
	}
	formats(cmd, &format, "json", "yaml")
	return cmd
}

func (a *app) version(cmd *cobra.Command, format string) error {
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	v := versions{Version: version, Containerd: containerdVersion(), Runtime: runtimeVersion(cmd.Context(), c.Engine.Runtime)}
	daemon, err := api.NewClient(c.Socket, cmd.CommandPath()).Version(cmd.Context())
	switch {
	case err == nil:
		v.Daemon = &daemon
	case !errors.Is(err, api.ErrUnavailable):
		return err
	}
	if format != "" {
		return a.encode(format, v)
	}
	fmt.Fprintf(a.out, "podstead    %s\ncontainerd  %s (embedded)\nruntime     %s\n", v.Version, v.Containerd, v.Runtime)
	if v.Daemon != nil {
		fmt.Fprintf(a.out, "daemon      %s, process %d\n", v.Daemon.Version, v.Daemon.PID)
	}
	return nil
}

// runtimeVersion asks the OCI runtime for its version.
func runtimeVersion(ctx context.Context, program string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return program + " (" + err.Error() + ")"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}
