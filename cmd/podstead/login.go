package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
)

// maxPassword is the maximum size of a password on standard input. Some registries use keys of several KiB.
const maxPassword = 64 << 10

func (a *app) loginCommand() *cobra.Command {
	var username string
	var fromStdin bool
	cmd := &cobra.Command{
		Use:   "login REGISTRY",
		Short: "Log in to a registry",
		Long: `Check credentials with a registry, and save them for all pulls of the daemon: in the file images.authFile of the
configuration, or in the credential helper that this file names for the registry. The default is /etc/podstead/auth.json, which
only root can read, and without root ~/.config/podstead/auth.json, which only the user can read.

The password is read from the terminal or, with --password-stdin, from standard input. Pods can have credentials of their own in
imagePullSecrets.`,
		Example: `  # Log in with a password from a file
  podstead login registry.example.com -u robot --password-stdin <token

  # Log in with a password from another program
  pass show registry | podstead login registry.example.com -u robot --password-stdin`,
		Args:              oneArgument("registry"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if fromStdin && username == "" {
				return usage(cmd, "--password-stdin requires --username")
			}
			return a.login(cmd, api.LoginRequest{Registry: args[0], Username: username}, fromStdin)
		},
	}
	cmd.Flags().StringVarP(&username, "username", "u", "", "user `name` (default typed on the terminal)")
	cmd.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")
	return cmd
}

func (a *app) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "logout REGISTRY",
		Short: "Log out of a registry",
		Long: `Delete the credentials for a registry from the credentials file of the daemon, or from the credential helper that the file
names for the registry. Images that are present stay.`,
		Example: `  # Log out of a registry
  podstead logout registry.example.com

  # Log out of Docker Hub
  podstead logout docker.io`,
		Args:              oneArgument("registry"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.withClient(func(cmd *cobra.Command, c *client.Client, args []string) error {
			r, err := c.Logout(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(a.out, "registry/%s logged out\n", r.Name)
			return nil
		}),
	}
}

func (a *app) login(cmd *cobra.Command, q api.LoginRequest, fromStdin bool) error {
	if fromStdin {
		text, err := io.ReadAll(io.LimitReader(a.in, maxPassword+1))
		if err != nil {
			return fmt.Errorf("read password: %w", err)
		}
		if len(text) > maxPassword {
			return fmt.Errorf("read password: longer than %d bytes", maxPassword)
		}
		q.Password = strings.TrimRight(string(text), "\r\n")
	} else if err := a.promptLogin(cmd, &q); err != nil {
		return err
	}
	if q.Username == "" || q.Password == "" {
		return usage(cmd, "log in to %q: the user name and the password must not be empty", q.Registry)
	}
	c, err := a.client(cmd)
	if err != nil {
		return err
	}
	defer a.waiting("Logging in to %s", q.Registry)()
	r, err := c.Login(cmd.Context(), q)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "registry/%s logged in (user %s)\n", r.Name, q.Username)
	return nil
}

// promptLogin reads what is missing from the terminal. The password is not shown.
func (a *app) promptLogin(cmd *cobra.Command, q *api.LoginRequest) error {
	f, ok := a.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return usage(cmd, "standard input is not a terminal: use --username and --password-stdin")
	}
	state, err := term.GetState(int(f.Fd()))
	if err != nil {
		return fmt.Errorf("read password: %w", err)
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	read := make(chan error, 1)
	var username, password string
	go func() { // it cannot be interrupted: after a signal, the program exits
		var err error
		if username = q.Username; username == "" {
			fmt.Fprint(a.err, "Username: ")
			username, err = bufio.NewReader(f).ReadString('\n')
		}
		if err == nil {
			fmt.Fprint(a.err, "Password: ")
			var text []byte
			text, err = term.ReadPassword(int(f.Fd()))
			password = string(text)
			fmt.Fprintln(a.err)
		}
		read <- err
	}()
	select {
	case err := <-read:
		if err != nil {
			return fmt.Errorf("read password: %w", err)
		}
		q.Username, q.Password = strings.TrimSpace(username), password
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), term.Restore(int(f.Fd()), state))
	}
}
