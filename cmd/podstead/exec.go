package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/connect"
	"github.com/podstead/podstead/internal/lazyregexp"
)

// execFlags are the flags of exec.
type execFlags struct {
	streams   streamFlags
	container string
}

// streamFlags are the flags of commands that connect the terminal with a container.
type streamFlags struct {
	stdin, tty, quiet bool
	detachKeys        string
}

// flags adds the flags to a command.
func (f *streamFlags) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.stdin, "stdin", "i", false, "pass stdin to the container")
	cmd.Flags().BoolVarP(&f.tty, "tty", "t", false, "run in a terminal; requires --stdin")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print only the output of the container")
	cmd.Flags().StringVar(&f.detachKeys, "detach-keys", connect.DefaultDetachKeys,
		"`keys` that end the session in a terminal; empty for none")
}

// hasTerminal reports whether stdin is the terminal that the flags request, and prints it if not.
func (a *app) hasTerminal(f *streamFlags) bool {
	is := connect.IsTerminal(a.in)
	if !is && !f.quiet {
		a.note("cannot use a terminal: stdin is not a terminal")
	}
	return is
}

func (a *app) execCommand() *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use:   "exec POD [-c CONTAINER] [--] COMMAND [ARG...]",
		Short: "Run a command in a container",
		Long: `Run a command in a running container of a pod, and return its exit code. The command has the user, the environment,
the limits and the security profiles of the container. Without --container, it runs in the container that the
annotation kubectl.kubernetes.io/default-container names, or else in the first one.

With --stdin, the command reads the standard input of this command. With --tty as well, it runs in a terminal: keys such
as Ctrl-C and Ctrl-D reach the command, and the detach keys end the session.

The session ends with this command: if this command is interrupted, killed or detached, or the daemon stops, the command
in the container is killed with all processes that it has started.

Exit codes: that of the command; 127 if it was not found, 126 if it is not executable. If it was not run: 1 the
container is not running, 2 the command line is invalid, 3 no such pod or container, 4 the daemon is unavailable. An
interrupted session returns 128 plus the number of the signal, such as 130 for Ctrl-C.`,
		Example: `  # Run a command in the first container of a pod
  podstead exec web -- ls -l /tmp

  # Open a shell in a container
  podstead exec -it web -c app -- sh

  # Write standard input to a file in a container
  podstead exec -i web -- sh -c 'cat >/tmp/data' <data`,
		ValidArgsFunction: a.completeExec,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.exec(cmd, args, &f) },
	}
	cmd.Flags().SetInterspersed(false) // the flags after the command are its own
	cmd.Flags().StringVarP(&f.container, "container", "c", "", "`name` of the container (default: see above)")
	_ = cmd.RegisterFlagCompletionFunc("container", a.completeContainers)
	f.streams.flags(cmd)
	return cmd
}

// completeExec completes the pod, and a container after it: cobra does not see the flags between the pod and the command.
func (a *app) completeExec(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completePods(cmd, args, prefix)
	}
	last := len(a.args) - 2 // before the prefix; cobra removes the flag from args
	if last < 0 || !containerFlag.MatchString(a.args[last]) {
		return nil, cobra.ShellCompDirectiveDefault
	}
	// a flag of the command
	if slices.ContainsFunc(args[1:], func(arg string) bool { return arg == "--" || !strings.HasPrefix(arg, "-") }) {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return a.completeContainers(cmd, args[:1], prefix)
}

// containerFlag matches the flag --container without its value, also after other flags with one letter.
var containerFlag = lazyregexp.New(`^(--container|-[itq]*c)$`)

func (a *app) exec(cmd *cobra.Command, args []string, f *execFlags) error {
	if len(args) == 0 {
		return usage(cmd, "exec requires a pod and a command")
	}
	var pods selection
	if err := pods.read(cmd, args[:1]); err != nil {
		return err
	}
	if len(pods.names) != 1 {
		return usage(cmd, "exec requires a pod and a command")
	}
	if err := cmd.Flags().Parse(args[1:]); err != nil { // the flags between the pod and the command
		return usage(cmd, "%w", err)
	}
	if help, err := cmd.Flags().GetBool("help"); err == nil && help {
		return cmd.Help()
	}
	command := cmd.Flags().Args()
	if len(command) == 0 {
		return usage(cmd, "exec requires a command")
	}
	o := client.ExecOptions{Container: f.container, Command: command}
	c, err := a.client(cmd)
	if err != nil {
		return err
	}
	return a.inSession(cmd, &f.streams, func(ctx context.Context, s client.Streams) (int, error) {
		o.Streams = s
		return c.Exec(ctx, pods.names[0], o)
	})
}

// inSession calls run with the streams of this command, and returns an error with the exit code that run returns.
func (a *app) inSession(cmd *cobra.Command, f *streamFlags, run func(context.Context, client.Streams) (int, error)) error {
	keys, err := connect.ParseKeys(f.detachKeys)
	if err != nil {
		return usage(cmd, "--detach-keys: %w", err)
	}
	if f.tty && !f.stdin {
		return usage(cmd, "--tty requires --stdin")
	}
	tty := f.tty && a.hasTerminal(f)
	o := connect.TerminalOptions{Raw: tty, DetachKeys: keys}
	if f.stdin {
		o.In = a.in
	}
	var code int
	err = connect.Terminal(cmd.Context(), o, func(ctx context.Context, s connect.Session) (err error) {
		code, err = run(ctx, client.Streams{Stdin: s.In, Stdout: a.out, Stderr: a.err, TTY: tty, Size: s.Size, Resize: s.Resize})
		return err
	})
	return a.sessionEnd(f, code, err)
}

// sessionEnd returns the error of a finished session, with its exit code.
func (a *app) sessionEnd(f *streamFlags, code int, err error) error {
	start, notStarted := errors.AsType[*api.CommandError](err)
	interrupted, signalled := errors.AsType[*connect.SignalError](err)
	switch {
	case errors.Is(err, connect.ErrDetached):
		if !f.quiet {
			fmt.Fprintln(a.err) // the cursor is in a line of the session
			a.note("detached, the command was killed")
		}
		return nil
	case signalled:
		return &failure{status: interrupted.ExitCode(), err: err}
	case notStarted:
		return &failure{status: start.Code, err: err}
	case err != nil:
		return err
	case code != 0 && f.quiet:
		return &failure{status: code, err: errExited}
	case code != 0:
		return &failure{status: code, err: fmt.Errorf("command terminated with exit code %d", code)}
	}
	return nil
}
