package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/connect"
	"github.com/podstead/podstead/cmd/podstead/internal/follow"
)

// debugFlags are the flags of debug.
type debugFlags struct {
	streams   streamFlags
	container connect.Debugger
	attach    bool
	copyTo    string
}

func (a *app) debugCommand() *cobra.Command {
	var f debugFlags
	cmd := &cobra.Command{
		Use:   "debug POD [flags] [-- COMMAND [ARG...]]",
		Short: "Add a debug container to a running pod",
		Long: `Add an ephemeral container to a running pod, attach to it when it runs, and return its exit code. It shares the network
of the pod, and with --target it sees the processes of another container, whose files are in /proc/1/root. So pods can be
examined whose images have no shell. The other containers keep running unchanged.

The image can be one of the pod, one of the archives of the pod, or one of a registry. On a host without a registry, name
an archive with --image-archive and its image with --image. Without --image, it is an image named busybox: one in an image
directory (put busybox.tar into /var/lib/podstead/images, without root into ~/.local/share/podstead/images), otherwise one
that is present, otherwise ` + connect.DebuggerImage + `, which is pulled.

A container whose image cannot be pulled three times is removed from the pod. One that runs is never restarted, and its log
and its state remain until the pod is deleted. It keeps running when this command is detached, interrupted or killed;
podstead attach attaches to it again.

Exit codes: that of the container, 0 if this command was detached. If the container did not run: 1 it could not start,
2 the command line is invalid, 3 no such pod, 4 the daemon is unavailable.`,
		Example: `  # Open a shell in a pod
  podstead debug -it web

  # See the processes and the files of a container without a shell
  podstead debug -it web --target app --image-archive busybox.tar --image localhost/podstead/busybox:1

  # Run one command in the network of a pod
  podstead debug web -- wget -qO- http://localhost:8080/healthz`,
		ValidArgsFunction: a.completeOnePod,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.debug(cmd, args, &f) },
	}
	cmd.Flags().StringVar(&f.container.Image, "image", "",
		"`image` of the container (default a busybox image of this host, otherwise "+connect.DebuggerImage+")")
	_ = cmd.RegisterFlagCompletionFunc("image", func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return a.completeImages(cmd, nil, prefix)
	})
	cmd.Flags().StringVar(&f.container.Archive, "image-archive", "",
		"`file` with the image, an OCI or Docker archive; with the system's daemon, requires root")
	cmd.Flags().StringVar(&f.container.Target, "target", "",
		"`name` of the container whose processes are visible; not supported by the daemon of a user")
	_ = cmd.RegisterFlagCompletionFunc("target", a.completeContainers)
	cmd.Flags().StringVarP(&f.container.Name, "name", "c", "", "`name` of the new container (default debugger- and five random characters)")
	cmd.Flags().StringArrayVar(&f.container.Env, "env", nil, "environment `variable` NAME=VALUE; repeatable")
	cmd.Flags().StringVar(&f.container.Profile, "profile", connect.DebuggerProfiles[0],
		"security `profile`: general (with --target, permits to trace its processes), baseline or restricted")
	cmd.Flags().BoolVar(&f.attach, "attach", true, "attach to the container; --attach=false returns when it runs")
	cmd.Flags().StringVar(&f.copyTo, "copy-to", "", "")
	_ = cmd.Flags().MarkHidden("copy-to")
	f.streams.flags(cmd)
	return cmd
}

func (a *app) debug(cmd *cobra.Command, args []string, f *debugFlags) error {
	pods := args
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		pods, f.container.Command = args[:dash], args[dash:]
	}
	if err := onePod(cmd, pods); err != nil {
		return err
	}
	switch {
	case cmd.Flags().Changed("copy-to"):
		return usage(cmd, "--copy-to is not supported: podstead debug adds a container to the pod itself")
	case f.streams.tty && !f.streams.stdin:
		return usage(cmd, "--tty requires --stdin")
	case f.container.Archive != "" && f.container.Image == "":
		return usage(cmd, "--image-archive requires --image, the name of an image in the archive")
	}
	f.container.Stdin, f.container.TTY = f.streams.stdin, f.streams.tty
	q, name, err := f.container.Request()
	if err != nil {
		return usage(cmd, "%w", err)
	}
	c, err := a.client(cmd)
	if err != nil {
		return err
	}
	if f.container.Image == "" {
		f.container.Name = name
		if f.container.Image, err = a.debugImage(cmd, c); err != nil {
			return err
		}
		if q, name, err = f.container.Request(); err != nil {
			return usage(cmd, "%w", err)
		}
	}
	created, err := c.AddEphemeral(cmd.Context(), podName(cmd, pods), q)
	if err != nil {
		return err
	}
	for _, w := range created.Warnings {
		a.problem(w)
	}
	pod := created.Pod.Metadata
	if !f.streams.quiet {
		a.note("added container %q to pod %q", name, pod.Name)
	}
	return a.attachDebugger(cmd, c, f, pod, name)
}

// attachDebugger attaches to an ephemeral container when it has started. Of one without input, and of one that has exited by then, it
// prints the log, which has all output: the monitor keeps none for clients that attach later.
func (a *app) attachDebugger(cmd *cobra.Command, daemon *client.Client, f *debugFlags, pod api.Metadata, name string) error {
	done := a.waiting("Waiting until container %q runs", name)
	state, err := connect.AwaitDebugger(cmd.Context(), daemon, pod.UID, name)
	done()
	if e, ok := errors.AsType[*connect.StartError](err); ok {
		c, problem := a.config(cmd)
		if problem != nil {
			return problem
		}
		failed := &failure{status: statusFailed, err: err}
		if hint := e.HintFor(c.Images.Dir); hint != "" {
			failed.hints = append(failed.hints, hint)
		}
		return failed
	}
	if err != nil || !f.attach {
		return err
	}
	if state.Running != nil && f.streams.stdin {
		o := client.AttachOptions{UID: pod.UID, Container: name, FromStart: true}
		err := a.attachSession(cmd, daemon, &f.streams, pod.Name, o)
		if e, ok := errors.AsType[*api.Error](err); !ok || e.Reason != api.ReasonNotRunning {
			return err
		}
	}
	return a.followDebugger(cmd.Context(), daemon, f, pod, name)
}

// followDebugger prints the log of an ephemeral container until it has exited, and returns its exit code.
func (a *app) followDebugger(ctx context.Context, c *client.Client, f *debugFlags, pod api.Metadata, name string) error {
	for l, err := range c.Output(ctx, pod.Name,
		client.OutputQuery{UID: pod.UID, Containers: []string{name}, Runs: api.NewestRun, Follow: true}) {
		if err != nil {
			return err
		}
		if err := follow.WriteLine(a.out, a.err, &l); err != nil {
			return err
		}
	}
	p, err := c.PodWithUID(ctx, pod.Name, pod.UID)
	if err != nil {
		return err
	}
	for _, s := range p.Status.EphemeralContainerStatuses {
		if s.Name == name && s.State.Terminated != nil {
			return a.attachEnd(&f.streams, pod.Name, name, s.State.Terminated.ExitCode, nil)
		}
	}
	return fmt.Errorf("container %q of pod %q has no exit code", name, pod.Name)
}

// debugImage returns the image of a debug container that names none.
func (a *app) debugImage(cmd *cobra.Command, daemon *client.Client) (string, error) {
	c, err := a.config(cmd)
	if err != nil {
		return "", err
	}
	return connect.FindDebuggerImage(cmd.Context(), daemon, c.Images.Dir, c.Images.SystemDir)
}
