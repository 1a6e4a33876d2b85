package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/terminal"
	"github.com/podstead/podstead/spec"
)

// isOneOff reports whether the arguments of run are a pod and a command. After a single argument, -- says so, whatever files there are.
func isOneOff(cmd *cobra.Command, args []string) bool {
	return len(args) > 1 && (cmd.ArgsLenAtDash() == 1 || isImage(args[0]))
}

// runOnce runs a command with the definition of a pod, in a pod of its own.
func (a *app) runOnce(cmd *cobra.Command, name string, command []string, f *runFlags) error {
	for _, flag := range []string{"detach", "output", "quiet"} {
		if cmd.Flags().Changed(flag) {
			return usage(cmd, "--%s cannot be combined with a pod and a command", flag)
		}
	}
	if !f.streams.stdin && (f.streams.tty || cmd.Flags().Changed("detach-keys")) {
		return usage(cmd, "--tty and --detach-keys require --stdin")
	}
	keys, err := terminal.ParseKeys(f.streams.detachKeys)
	if err != nil {
		return usage(cmd, "--detach-keys: %w", err)
	}
	level, err := a.level(cmd, f.level)
	if err != nil {
		return err
	}
	q, err := a.definition(cmd, strings.TrimPrefix(name, "pod/"))
	if err != nil {
		return err
	}
	pod, problems := spec.Parse(q.File, []byte(q.Text))
	if pod == nil {
		for _, p := range problems.Errors() {
			a.problem(api.Problem(p))
		}
		return invalidFiles([]error{fmt.Errorf("%s: %w", q.File, errInvalidFile)})
	}
	q.Interactive = &api.Interactive{Name: oneOffName(pod.Name, q.Suffix), Command: command}
	if q.Interactive.Container, err = containerForCommand(cmd, pod, f.container); err != nil {
		return err
	}
	in := a.in
	if !f.streams.stdin {
		in = strings.NewReader("")
	}
	if q.Interactive.TTY = f.streams.tty; f.streams.tty && !terminal.IsTerminal(a.in) {
		a.note("cannot use a terminal: stdin is not a terminal")
		q.Interactive.TTY = false
	}
	o := spec.Options{Suffix: q.Suffix, Interactive: (*spec.Interactive)(q.Interactive)}
	if _, err := a.acceptFile(q.File, []byte(q.Text), o, level); err != nil {
		return invalidFiles([]error{err})
	}
	return a.runAttached(cmd, f, q, in, keys)
}

// definition returns a request with the definition of a pod: the file that it follows in the pods directory or, if a client has created
// it or its file was lost, what podstead get prints.
func (a *app) definition(cmd *cobra.Command, name string) (q api.CreateRequest, err error) {
	client, err := a.client(cmd)
	if err != nil {
		return q, err
	}
	p, err := client.Pod(cmd.Context(), name)
	if err != nil {
		if failed := explain(err); failed.status == statusNotFound {
			const hint = "apply its file first, or run a pod file with podstead run FILE"
			return q, &failure{status: statusNotFound, err: err, hints: []string{hint}}
		}
		return q, err
	}
	q = api.CreateRequest{File: p.Status.File, Suffix: spec.NameSuffix()}
	if q.File != "" {
		text, err := spec.ReadPodFile(q.File)
		switch {
		case err == nil:
			q.Text = string(text)
			return q, nil
		case errors.Is(err, fs.ErrPermission):
			return q, &failure{status: statusFailed, err: err, hints: []string{"run the command as root: the file can have secrets"}}
		case !errors.Is(err, fs.ErrNotExist):
			return q, err
		}
	}
	text, err := json.Marshal(p)
	q.File, q.Text = "/"+p.Metadata.Name+".json", string(text)
	return q, err
}

// oneOffName returns the name of a pod for a command: that of the pod, shortened if necessary, and a suffix.
func oneOffName(pod, suffix string) string {
	const longest = 63 // of a host name
	tail := "-run-" + suffix
	return strings.TrimRight(pod[:min(len(pod), longest-len(tail))], "-.") + tail
}

// containerForCommand returns the container of a pod whose definition a command gets: that of the flag, that of the annotation of kubectl,
// or the first one.
func containerForCommand(cmd *cobra.Command, pod *spec.Pod, name string) (string, error) {
	if name != "" {
		return interactiveContainer(cmd, pod, name)
	}
	if name = pod.Annotations["kubectl.kubernetes.io/default-container"]; slices.ContainsFunc(pod.Containers, named(name)) {
		return name, nil
	}
	return pod.Containers[0].Name, nil
}
