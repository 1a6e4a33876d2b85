package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/cmd/podstead/internal/connect"
)

// cpFlags are the flags of cp.
type cpFlags struct {
	container  string
	noPreserve bool
	quiet      bool
}

func (a *app) cpCommand() *cobra.Command {
	var f cpFlags
	cmd := &cobra.Command{
		Use:   "cp SRC DST",
		Short: "Copy files from and to containers",
		Long: `Copy files and directories between the host and a container. One of SRC and DST is POD:PATH or POD:CONTAINER:PATH,
the other one a path of the host or "-", which stands for a tar archive on standard input or output. The container
needs no tar, and need not be running. A relative path in a container starts at its working directory.

As with cp, a copy to an existing directory is created in that directory, and a copy to another name gets that name. A
SRC that ends with "/." stands for the content of the directory. Symbolic links are copied as links, and no link below
DST is followed. Devices, FIFOs and sockets are left out. Files from a container get the owner and the umask of the
caller, and no setuid bit.`,
		Example: `  # Copy a file to a container, and a directory from it
  podstead cp site.conf web:/etc/nginx/conf.d/
  podstead cp web:/var/log/nginx ./logs

  # Copy from a container of a pod with several containers
  podstead cp -c db shop:/var/lib/db/dump.sql .

  # List the files of a directory in a container without tar
  podstead cp web:/etc - | tar -t`,
		ValidArgsFunction: a.completeCopy,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.cp(cmd, args, &f) },
	}
	cmd.Flags().StringVarP(&f.container, "container", "c", "", "`name` of the container (default the first one of the pod)")
	_ = cmd.RegisterFlagCompletionFunc("container", a.completeCopyContainer)
	cmd.Flags().BoolVar(&f.noPreserve, "no-preserve", false,
		"create files as new files: of the user of the container, with the current time, without setuid bits")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "do not show progress")
	return cmd
}

// completeCopy completes the pods for the source and the destination, with a colon, and files where no pod matches.
func (a *app) completeCopy(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) >= 2 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if len(args) == 1 {
		if p, err := connect.ParsePlace(args[0]); err == nil && p.Pod != "" { // the other one is on the host
			return nil, cobra.ShellCompDirectiveDefault
		}
	}
	pods, directive := a.completePods(cmd, nil, prefix)
	if directive == cobra.ShellCompDirectiveError {
		return nil, directive
	}
	for i := range pods {
		pods[i] += ":"
	}
	return pods, cobra.ShellCompDirectiveNoSpace
}

// completeCopyContainer completes the containers of the pod in the arguments.
func (a *app) completeCopyContainer(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	for _, arg := range args {
		if p, err := connect.ParsePlace(arg); err == nil && p.Pod != "" {
			return a.completeContainersOf(cmd, p.Pod, prefix)
		}
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// places returns the source and the destination of a copy.
func (f *cpFlags) places(cmd *cobra.Command, args []string) (from, to connect.Place, err error) {
	if len(args) != 2 {
		return from, to, usage(cmd, "cp requires SRC and DST")
	}
	if from, err = connect.ParsePlace(args[0]); err == nil {
		to, err = connect.ParsePlace(args[1])
	}
	switch {
	case err != nil:
		return from, to, usage(cmd, "%w", err)
	case from.Pod == "" && to.Pod == "":
		return from, to, usage(cmd, "one of SRC and DST must be in a container: POD:PATH")
	case from.Pod != "" && to.Pod != "":
		return from, to, usage(cmd, "files cannot be copied between containers: copy them to the host first")
	}
	remote := &from
	if to.Pod != "" {
		remote = &to
	}
	if f.container != "" && remote.Container != "" && f.container != remote.Container {
		return from, to, usage(cmd, "--container %s and %s are different containers", f.container, remote.Container)
	}
	if f.container != "" {
		remote.Container = f.container
	}
	return from, to, nil
}

func (a *app) cp(cmd *cobra.Command, args []string, f *cpFlags) error {
	from, to, err := f.places(cmd, args)
	if err != nil {
		return err
	}
	if out, ok := a.out.(*os.File); ok && to.Stream && out != nil && a.isTerminal() {
		return usage(cmd, "an archive cannot be written to a terminal: redirect standard output")
	}
	client, err := a.client(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if !to.Stream { // an incomplete file is removed; a signal must end a write to standard output, which may block
		var stop context.CancelFunc
		ctx, stop = untilSignal(ctx)
		defer stop()
	}
	pod := from.Pod + to.Pod
	p, err := client.Pod(ctx, pod)
	if err != nil {
		return err
	}
	c := &connect.Copy{
		Client: client, UID: p.Metadata.UID, Preserve: !f.noPreserve, In: a.in, Out: a.out,
		Warn: func(text string) { a.note("warning: %s", text) },
	}
	done := func() {}
	if !f.quiet && a.width() != nil {
		done = c.ShowProgress(ctx, a.err)
	}
	if from.Pod != "" {
		err = c.Get(ctx, from, to)
	} else {
		err = c.Put(ctx, from, to)
	}
	done()
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return errors.New("copy: interrupted")
	}
	if _, ok := errors.AsType[*connect.SourceError](err); ok {
		return argumentError(err)
	}
	return err
}
