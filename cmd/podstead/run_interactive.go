package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/foreground"
	"github.com/podstead/podstead/cmd/podstead/internal/interactive"
	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
	"github.com/podstead/podstead/cmd/podstead/internal/terminal"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/admission"
)

// isInteractive reports whether run attaches to a container, or has flags for that.
func (f *runFlags) isInteractive(cmd *cobra.Command) bool {
	return f.streams.stdin || f.streams.tty || cmd.Flags().Changed("container") || cmd.Flags().Changed("detach-keys")
}

// checkInteractive checks the flags and the arguments of an interactive run.
func (f *runFlags) checkInteractive(cmd *cobra.Command, paths []string) error {
	if !f.streams.stdin {
		for _, name := range []string{"tty", "container", "detach-keys"} {
			if cmd.Flags().Changed(name) {
				return usage(cmd, "--%s requires --stdin", name)
			}
		}
	}
	for _, name := range []string{"quiet", "output"} {
		if cmd.Flags().Changed(name) {
			return usage(cmd, "--%s cannot be combined with --stdin", name)
		}
	}
	switch {
	case len(paths) != 1 || isDirectory(paths[0]):
		return usage(cmd, "--stdin requires exactly one pod file")
	case paths[0] == spec.Stdin:
		return usage(cmd, "--stdin cannot be combined with a pod file from standard input")
	}
	return nil
}

// runInteractive runs the pod of a file, and attaches to one of its containers.
func (a *app) runInteractive(cmd *cobra.Command, paths []string, f *runFlags, level admission.Level) error {
	if err := f.checkInteractive(cmd, paths); err != nil {
		return err
	}
	keys, err := terminal.ParseKeys(f.streams.detachKeys)
	if err != nil {
		return usage(cmd, "--detach-keys: %w", err)
	}
	tty := f.streams.tty
	if tty && !terminal.IsTerminal(a.in) {
		a.note("cannot use a terminal: stdin is not a terminal")
		tty = false
	}
	request, err := a.readInteractive(cmd, paths[0], f, tty, level)
	if err != nil {
		return err
	}
	return a.runAttached(cmd, f, request, a.in, keys)
}

// runAttached runs a pod, and attaches to a container from its start. It returns the exit code of the container.
func (a *app) runAttached(cmd *cobra.Command, f *runFlags, request api.CreateRequest, in io.Reader, keys []byte) error {
	screen, tty := &interactive.Screen{Writer: a.err}, request.Interactive.TTY
	o := interactive.Options{
		Container: request.Interactive.Container, In: in, Out: a.out, Err: a.err, Screen: screen, TTY: tty, DetachKeys: keys,
	}
	// The output of the other containers is no part of that of the command.
	printer := &view.Text{Out: screen, Err: screen, Colour: a.colour(), Escape: a.isTerminal(), Width: a.width()}
	var result interactive.Result
	err := a.inForeground(cmd, f, printer, func(ctx context.Context, s *ondemand.Starter, run foreground.Options) (err error) {
		o.Daemon = s.Client
		result, err = interactive.Run(ctx, o, run, request)
		return err
	})
	err = interactiveEnd(o.Container, result, err)
	if f, ok := errors.AsType[*failure](err); ok && request.Interactive.Name != "" {
		f.hints = nil // the next pod has another name
	}
	return err
}

// readInteractive reads and checks a pod file, and selects the container to attach to.
func (a *app) readInteractive(cmd *cobra.Command, path string, f *runFlags, tty bool, level admission.Level) (q api.CreateRequest, err error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return q, err
	}
	text, err := a.readText(path)
	if err != nil {
		return q, invalidFiles([]error{err})
	}
	q = api.CreateRequest{File: absolute, Text: string(text), Suffix: spec.NameSuffix(), Interactive: &api.Interactive{TTY: tty}}
	if pod, _ := spec.Parse(path, text); pod != nil { // otherwise acceptFile prints the problems
		if q.Interactive.Container, err = interactiveContainer(cmd, pod, f.container); err != nil {
			return q, err
		}
	}
	if _, err := a.acceptFile(path, text, spec.Options{Suffix: q.Suffix, Interactive: (*spec.Interactive)(q.Interactive)}, level); err != nil {
		return q, invalidFiles([]error{err})
	}
	return q, nil
}

// interactiveContainer returns the container of a pod with a name, or the only one.
func interactiveContainer(cmd *cobra.Command, pod *spec.Pod, name string) (string, error) {
	if name == "" && len(pod.Containers) == 1 {
		return pod.Containers[0].Name, nil
	}
	if slices.ContainsFunc(pod.Containers, named(name)) {
		return name, nil
	}
	names := make([]string, len(pod.Containers))
	for i := range pod.Containers {
		names[i] = pod.Containers[i].Name
	}
	list := strings.Join(names, ", ")
	if name == "" {
		return "", usage(cmd, "pod %q has several containers: name one of %s with --container", pod.Name, list)
	}
	return "", usage(cmd, "--container %q: must be one of the containers of pod %q: %s", name, pod.Name, list)
}

// interactiveEnd returns the error of an interactive run, with the exit code of its container.
func interactiveEnd(container string, r interactive.Result, err error) error {
	switch {
	case err != nil && !r.Started && errors.Is(err, foreground.ErrFailed):
		return &failure{
			status: statusFailed, err: fmt.Errorf("container %q did not run: %w", container, err),
			hints: []string{"run it again with --rm=false, then podstead why " + r.Pod},
		}
	case err != nil:
		return err
	case r.Code != 0:
		return &failure{status: r.Code, err: fmt.Errorf("container %q of pod %q exited with code %d", container, r.Pod, r.Code)}
	case r.InputLost:
		return fmt.Errorf("pass stdin to container %q of pod %q: connection lost, the container may have read only a part", container, r.Pod)
	}
	return nil
}
