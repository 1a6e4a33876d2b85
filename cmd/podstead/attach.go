package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/connect"
	"github.com/podstead/podstead/cmd/podstead/internal/follow"
	"github.com/podstead/podstead/spec"
)

// attachFlags are the flags of attach.
type attachFlags struct {
	streams   streamFlags
	container string
}

func (a *app) attachCommand() *cobra.Command {
	var f attachFlags
	cmd := &cobra.Command{
		Use:   "attach POD [-c CONTAINER]",
		Short: "Attach to the main process of a container",
		Long: `Print the output of the main process of a running container, from now on, until the container exits. Earlier output is
in podstead logs. Without --container, attach to the container that the annotation
kubectl.kubernetes.io/default-container names, or else to the first one.

With --stdin, the process reads the standard input of this command. This requires stdin = true for the container in the
pod file. With --tty as well, and tty = true in the pod file, keys such as Ctrl-C reach the process, and the detach keys
end this command.

The container keeps running when this command is detached, interrupted or killed, and when the daemon stops. It waits
for a client that does not read its output for 5 seconds at most, then the client is disconnected.

Exit codes: that of the container if it exited, 0 if this command was detached. If it was not attached: 1 the container
is not running, 2 the command line is invalid, 3 no such pod or container, 4 the daemon is unavailable. An interrupted
command returns 128 plus the number of the signal, such as 130 for Ctrl-C.`,
		Example: `  # Print the output of a container from now on
  podstead attach web

  # Use the terminal of a container; Ctrl-P Ctrl-Q detaches
  podstead attach -it console

  # Send a file to the standard input of a container
  podstead attach -i db -c import <data.sql`,
		Args:              onePod,
		ValidArgsFunction: a.completeOnePod,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.attach(cmd, args, &f) },
	}
	cmd.Flags().StringVarP(&f.container, "container", "c", "", "`name` of the container (default: see above)")
	_ = cmd.RegisterFlagCompletionFunc("container", a.completeContainers)
	f.streams.flags(cmd)
	return cmd
}

func (a *app) attach(cmd *cobra.Command, args []string, f *attachFlags) error {
	daemon, err := a.client(cmd)
	if err != nil {
		return err
	}
	pod, err := daemon.Pod(cmd.Context(), podName(cmd, args))
	if err != nil {
		return err
	}
	c := attachable(&pod, f.container)
	o := client.AttachOptions{UID: pod.Metadata.UID, Container: f.container}
	if c != nil { // otherwise the daemon returns an error
		o.Container = c.Name
		a.checkStreams(c, &f.streams)
	}
	return a.attachSession(cmd, daemon, &f.streams, pod.Metadata.Name, o)
}

// attachable returns the container of a pod to attach to, nil if there is none of this name.
func attachable(p *api.Pod, name string) *spec.Container {
	all := slices.Concat(p.Spec.Containers, p.Spec.InitContainers, p.Spec.EphemeralContainers)
	if name == "" && len(all) > 0 {
		name = all[0].Name
		if annotated := p.Metadata.Annotations["kubectl.kubernetes.io/default-container"]; slices.ContainsFunc(all, named(annotated)) {
			name = annotated
		}
	}
	if i := slices.IndexFunc(all, named(name)); i >= 0 {
		return &all[i]
	}
	return nil
}

func named(name string) func(spec.Container) bool {
	return func(c spec.Container) bool { return c.Name == name }
}

// checkStreams warns about flags that a container does not support, and clears them, as kubectl does.
func (a *app) checkStreams(c *spec.Container, f *streamFlags) {
	warn := func(format string) {
		if !f.quiet {
			a.note(format, c.Name)
		}
	}
	if f.stdin && !c.Stdin {
		f.stdin = false
		warn("unable to use stdin: container %q did not allocate it (stdin = true in the pod file)")
	}
	if f.tty && !c.TTY {
		f.tty = false
		warn("unable to use a TTY: container %q did not allocate one (tty = true in the pod file)")
	}
}

// attachSession attaches the streams of this command to a container. An exit code other than 0 is an error with this code.
func (a *app) attachSession(cmd *cobra.Command, c *client.Client, f *streamFlags, pod string, o client.AttachOptions) error {
	keys, err := connect.ParseKeys(f.detachKeys)
	if err != nil {
		return usage(cmd, "--detach-keys: %w", err)
	}
	raw := f.tty && f.stdin && a.hasTerminal(f)
	t := connect.TerminalOptions{Raw: raw, DetachKeys: keys}
	if f.stdin {
		t.In = a.in
	}
	if raw && !f.quiet {
		a.note("the output of this session is in the log of the container; if you do not see a command prompt, press enter")
	}
	o.Incomplete = func() { a.noteIncomplete(f, raw, pod, o.Container) }
	var code int
	err = connect.Terminal(cmd.Context(), t, func(ctx context.Context, s connect.Session) (err error) {
		o.Streams = client.Streams{Stdin: s.In, Stdout: a.out, Stderr: a.err, TTY: f.tty, Size: s.Size, Resize: s.Resize}
		code, err = c.Attach(ctx, pod, o)
		return err
	})
	return a.attachEnd(f, pod, o.Container, code, err)
}

// noteIncomplete prints that a session does not have all output. A terminal in raw mode needs a carriage return.
func (a *app) noteIncomplete(f *streamFlags, raw bool, pod, container string) {
	if f.quiet {
		return
	}
	a.note("%s", follow.Incomplete(pod, container))
	if raw {
		fmt.Fprint(a.err, "\r")
	}
}

// attachEnd returns the error of a finished attach session.
func (a *app) attachEnd(f *streamFlags, pod, container string, code int, err error) error {
	interrupted, signalled := errors.AsType[*connect.SignalError](err)
	switch {
	case errors.Is(err, connect.ErrDetached), signalled:
		if !f.quiet {
			a.note("detached, container %q of pod %q keeps running", container, pod)
		}
		if signalled {
			return &failure{status: interrupted.ExitCode(), err: errExited}
		}
		return nil
	case errors.Is(err, api.ErrUnavailable):
		return fmt.Errorf("container %q of pod %q may keep running: %w", container, pod, err)
	case err != nil:
		return err
	case code != 0 && f.quiet:
		return &failure{status: code, err: errExited}
	case code != 0:
		return &failure{status: code, err: fmt.Errorf("container %q of pod %q exited with code %d", container, pod, code)}
	}
	return nil
}
