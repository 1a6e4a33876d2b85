package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/ui"
)

func (a *app) uiCommand() *cobra.Command {
	var listen string
	var allowActions bool
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show pods in a browser",
		Long: `Serve a page with the pods of this host, and print its URL: states and restarts, why pods are in their state, timelines,
last exits, logs, CPU and memory, and the disk and memory of the host. It works over the read-only socket. The page changes
nothing, unless --allow-actions is given: then it can restart, stop and start pods, which it asks before, and open a shell
in a container.

The page listens on a loopback address only. Its URL has a random token, without which nothing is shown. To reach it from
another host, forward the port with ssh -L and the same port number, and with ExitOnForwardFailure=yes: another user of that host
may listen on the port. If the daemon stops, the page waits for the next one, and starts none.

The command runs until Ctrl-C, or until no page was open for ` + fmt.Sprintf("%.0f minutes", ui.IdleTimeout.Minutes()) + `.`,
		Example: `  # Print the URL of the page
  podstead ui

  # Use a fixed port, for ssh -o ExitOnForwardFailure=yes -L 127.0.0.1:8088:127.0.0.1:8088 HOST
  podstead ui --listen 127.0.0.1:8088

  # Let the page restart, stop and start pods, and open shells in containers
  podstead ui --allow-actions`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "`address` to listen on, 127.0.0.1 or ::1; port 0 is a free port")
	cmd.Flags().BoolVar(&allowActions, "allow-actions", false, "let the page restart, stop and start pods, and open shells")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		address, err := ui.ParseAddress(listen)
		if err != nil {
			return usage(cmd, "--listen %q: %w", listen, err)
		}
		c, err := a.client(cmd)
		if err != nil {
			return err
		}
		ctx, cancel := untilSignal(cmd.Context())
		defer cancel()
		page := a.running(client.New(c.Socket(), commandPath(cmd))) // a page that stays open starts no daemon
		defer page.Close()
		s, err := ui.Listen(ctx, page, address)
		if err != nil {
			return err
		}
		if allowActions {
			s.AllowActions()
		}
		fmt.Fprintln(a.out, s.URL())
		switch err := s.Serve(ctx); {
		case ctx.Err() != nil: // the user has requested it
			return cmd.Context().Err()
		case errors.Is(err, ui.ErrIdle):
			a.note("%v", err)
			return nil
		default:
			return err
		}
	}
	return cmd
}
