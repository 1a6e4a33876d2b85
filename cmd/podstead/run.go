package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/connect"
	"github.com/podstead/podstead/cmd/podstead/internal/follow"
	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/admission"
)

// runFlags are the flags of run.
type runFlags struct {
	remove  bool
	timeout time.Duration
	grace   int
	format  string
	quiet   bool
	level   string
	detach  bool
	files   []string
	wait    bool // with detach
	watch   bool // only up
	up      bool // the command is up
	spec    spec.Options

	container string
	streams   streamFlags
}

const runHelp = `Run the pods of the given files, or of all pod files of a directory, and wait until they terminate. The output of
containers goes to stdout, each line prefixed with the name of its container. Events go to stderr. podstead apply runs pods
in the background.

The file - is standard input, in TOML, YAML or JSON.

With --stdin, one container reads the standard input of this command, and its output goes to stdout without a prefix;
that of other containers goes to stderr. With --tty as well, the container has a terminal: keys such as Ctrl-C reach it,
and only warnings are printed until it runs. The flags set stdin and tty of the container, and restartPolicy = "Never"
for it and, if the file sets none, for the pod. The pod is stopped when the container exits, or after the detach keys.

Ctrl-C or SIGTERM stops the pods within their grace period. A second signal kills them. If the daemon is killed, it is
restarted and the pods keep running. If the daemon is stopped on request, this command waits until another command
starts it. If this command is killed, the daemon stops its pods after 30 seconds. Until then, the same command with the
same files takes the pods over. While they are stopping, it waits until they are deleted, and creates them again.
With --rm=false, terminated pods are kept with their logs, until a run of pods with their names in the same directory replaces them.

With the name of a pod and a command, run creates a pod with the definition of the pod, and runs the command in place of
one container: with its image, environment, volumes and network, but without the other containers, ports, probes, hooks
and waitFor. The pod NAME need not run. Persistent volumes are shared with it, others are new. A command with flags
follows --, and so does the command of a pod whose name is also that of a file in the current directory. The exit code
is that of the command.

Exit codes: 0 all pods succeeded, 1 a pod failed or could not be deleted, 2 a pod file is invalid, 4 the daemon is
unavailable, 5 timeout. With --stdin, that of the container if it has exited.`

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE|DIR|-... | run POD [--] COMMAND...",
		Short: "Run pods in the foreground",
		Long:  runHelp,
		Example: `  # Run a pod and show its output
  podstead run examples/hello.toml

  # Run two pods for at most 10 minutes
  podstead run web.toml db.toml --timeout 10m

  # Run a pod of a cluster
  kubectl get pod web -o yaml | podstead run -

  # Run a pod and show its events only
  podstead run examples/hello.toml --quiet

  # Open a shell in a new pod, and delete the pod when the shell exits
  podstead run -it console.toml

  # Pass a file to a container of a new pod, and store its output
  podstead run -i db.toml -c import <data.sql >report

  # Run a migration with the image, the environment and the volumes of a pod
  podstead run web -- env

  # Open a shell with the volumes of a pod that does not start
  podstead run -it db -- sh

  # Keep the pod with its logs until the next run, such as for a job that a timer runs
  podstead run job.toml --rm=false`,
		Args: func(cmd *cobra.Command, args []string) error {
			if isOneOff(cmd, args) {
				return nil
			}
			return podFileArguments(cmd, append(args, f.files...))
		},
		ValidArgsFunction: completeFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runPods(cmd, args, &f) },
	}
	cmd.Flags().BoolVarP(&f.detach, "detach", "d", false, "run the pods in the background, as podstead apply")
	cmd.Flags().BoolVarP(&f.streams.stdin, "stdin", "i", false, "pass stdin to a container")
	cmd.Flags().BoolVarP(&f.streams.tty, "tty", "t", false, "run the container in a terminal; requires --stdin")
	cmd.Flags().StringVarP(&f.container, "container", "c", "",
		"`name` of the container for --stdin (default the only one) or COMMAND (default the first)")
	cmd.Flags().StringVar(&f.streams.detachKeys, "detach-keys", connect.DefaultDetachKeys,
		"`keys` that stop the pod in a terminal; empty for none")
	cmd.Flags().BoolVar(&f.remove, "rm", true, "delete terminated pods; --rm=false keeps them for get, logs and why until the next run")
	a.podFlags(cmd, &f)
	cmd.Flags().BoolVar(&f.wait, "wait", false, "with --detach, wait as podstead apply --wait")
	hide(cmd, "detach", "wait")
	return cmd
}

// podFlags adds the flags that run and up have.
func (a *app) podFlags(cmd *cobra.Command, f *runFlags) {
	limit := "stop the pods after this `duration`, such as 10m, and exit with code 5 (default none); with --detach --wait, only exit"
	if f.up {
		limit = "stop the pods after this `duration`, such as 10m, and exit with code 5 (default none); with --detach, only exit"
	}
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, limit)
	graceFlag(cmd, &f.grace)
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "do not print the output of containers")
	lossFlags(cmd, &f.spec, "")
	levelFlag(cmd, &f.level)
	formats(cmd, &f.format, "json")
	a.addProjectFlags(cmd)
	fileFlag(cmd, &f.files)
}

const upHelp = `Run the services of the Compose file in the current directory, or the pods of other files. The output of containers goes to
stdout, each line prefixed with the name of its container, and Ctrl-C stops and deletes the pods.

With --detach, the pods run in the background, also after a reboot, as with podstead apply. Pods that were stopped and
services that have completed are started. The command returns when all containers have started, with depends_on after
the services that they wait for, and with --wait when the pods are ready. It fails if a container cannot be started. The
daemon retries the start. A pod with a changed definition must be ready. Delete the pods with podstead down.

With --watch, a change of a file takes effect when it is saved, as with podstead apply: of pod files and Compose files, of
those that they include, of env files, secrets, configs, encrypted credentials and image archives. Each change is printed
with what it restarts. If a file is invalid, the pods keep running as they are. With develop.watch of a Compose file, files
that are mounted restart their container. Ctrl-C stops and deletes the pods that this command has created; those that ran
before keep running. Pods whose definition was removed from the files are deleted only then. If this command is killed,
its pods keep running, also after a reboot: delete them with podstead down.

Exit codes: 0 all pods succeeded, with --detach all have started, with --watch after Ctrl-C, 1 a pod failed or could not be
started or deleted, 2 a file is invalid, 4 the daemon is unavailable, 5 timeout.`

// noServices returns an error if an argument is no file and may be the name of a service of the Compose file in the current directory.
func noServices(args []string) error {
	if _, err := compose.Find("."); err != nil {
		return nil
	}
	for _, arg := range args {
		if _, err := os.Stat(arg); err != nil && serviceName.MatchString(arg) && arg != spec.Stdin && !mayBeCompose(arg) {
			return &failure{
				status: statusUsage, err: fmt.Errorf("up %s: no such file", arg),
				hints: []string{"omit it: up starts all services; start a pod that exists with podstead start POD"},
			}
		}
	}
	return nil
}

// upCommand is run, and apply with --detach, with the words of docker compose.
func (a *app) upCommand() *cobra.Command {
	f := runFlags{up: true, remove: true}
	cmd := &cobra.Command{
		Long: upHelp,
		Args: func(cmd *cobra.Command, args []string) error {
			if args = append(args, f.files...); len(args) == 0 {
				return nil
			}
			if err := noServices(args); err != nil {
				return err
			}
			return podFileArguments(cmd, args)
		},
		ValidArgsFunction: completeFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runPods(cmd, args, &f) },
	}
	cmd.Flags().BoolVarP(&f.detach, "detach", "d", false, "run the pods in the background")
	cmd.Flags().BoolVar(&f.wait, "wait", false, "with --detach, wait until the pods are ready, as podstead apply --wait")
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "follow changes of the files until Ctrl-C")
	a.podFlags(cmd, &f)
	return cmd
}

func (a *app) runPods(cmd *cobra.Command, args []string, f *runFlags) error {
	if !f.up && isOneOff(cmd, args) {
		return a.runOnce(cmd, args[0], args[1:], f)
	}
	if f.wait && !f.detach {
		return usage(cmd, "--wait requires --detach: without it, podstead %s waits until the pods terminate", commandName(cmd))
	}
	if f.watch {
		return a.watchFiles(cmd, append(args, f.files...), f)
	}
	if args = append(args, f.files...); len(args) == 0 {
		files, err := defaultProject(cmd)
		if err != nil {
			return err
		}
		args = files
	}
	if f.detach {
		return a.runDetached(cmd, args, f)
	}
	level, err := a.level(cmd, f.level)
	if err != nil {
		return err
	}
	if f.isInteractive(cmd) {
		return a.runInteractive(cmd, args, f, level)
	}
	requests, err := a.readFiles(cmd, args, f.spec, level)
	if err != nil {
		return err
	}
	return a.inForeground(cmd, f, a.printer(f), func(ctx context.Context, s *ondemand.Starter, o follow.Options) error {
		if err := a.checkClaims(ctx, s.Client); err != nil {
			return err
		}
		return follow.Run(ctx, o, requests)
	})
}

// runDetached is podstead apply. As up, it also starts pods that were stopped, and waits until all containers have started.
func (a *app) runDetached(cmd *cobra.Command, args []string, f *runFlags) error {
	ready := readiness{wait: f.wait}
	if !f.up {
		ready.timeout = defaultWait
	}
	for _, name := range []string{"rm", "timeout", "grace-period", "quiet", "output", "stdin", "tty", "container", "detach-keys"} {
		switch {
		case !cmd.Flags().Changed(name):
		case name == "timeout" && (f.wait || f.up):
			ready.timeout = f.timeout
		case name == "timeout":
			return usage(cmd, "--timeout with --detach requires --wait")
		default:
			return usage(cmd, "--%s cannot be combined with --detach", name)
		}
	}
	return a.apply(cmd, args, &applyFlags{level: f.level, spec: f.spec, readiness: ready, up: f.up})
}

// inForeground connects to the daemon, and calls run with the options of the flags.
func (a *app) inForeground(
	cmd *cobra.Command, f *runFlags, printer follow.Printer, run func(context.Context, *ondemand.Starter, follow.Options) error,
) error {
	s, err := a.connect(cmd)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	connecting, done := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	err = s.Connect(connecting)
	done()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	stops := make(chan struct{}, cap(signals)) // nothing reads it while pods are being created, but forward must see when signals arrive
	go forward(ctx, signals, stops)
	o := follow.Options{
		Daemon: s.Client, Connect: s.Connect, Printer: printer, Session: uuid.NewString(), Keep: !f.remove,
		Grace: gracePeriod(f.grace), Stops: stops, Timeout: f.timeout,
	}
	if t, ok := o.Printer.(*view.Text); ok && t.Width != nil {
		o.Progress = t.Progress
	}
	return run(ctx, s, o)
}

// sameStop is the time after a signal in which further signals are the same request to stop. timeout(1) signals the command and then its
// process group, which the command is in. When a terminal closes, the kernel and the shell send SIGHUP, each on its own.
const sameStop = 100 * time.Millisecond

// forward sends a value to stops for each request to stop, until the context ends. Signals in quick succession are one request.
func forward(ctx context.Context, signals <-chan os.Signal, stops chan<- struct{}) {
	var last time.Time
	for {
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		if !last.IsZero() && now.Sub(last) < sameStop {
			continue
		}
		last = now
		select {
		case stops <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

func (a *app) printer(f *runFlags) follow.Printer {
	if f.format == "json" {
		return &view.JSON{Out: a.out, Err: a.err, Quiet: f.quiet}
	}
	return &view.Text{Out: a.out, Err: a.err, Colour: a.colour(), Quiet: f.quiet, Escape: a.isTerminal(), Width: a.width()}
}

// isOneOff reports whether the arguments of run are a pod and a command. After a single argument, -- says so, whatever files there are.
func isOneOff(cmd *cobra.Command, args []string) bool {
	return len(args) > 1 && (cmd.ArgsLenAtDash() == 1 || isImage(args[0])) && canBePod(args[0])
}

// runOnce runs a command with the definition of a pod, in a pod of its own.
func (a *app) runOnce(cmd *cobra.Command, name string, command []string, f *runFlags) error {
	for _, flag := range []string{"detach", "wait", "output", "quiet"} {
		if cmd.Flags().Changed(flag) {
			return usage(cmd, "--%s cannot be combined with a pod and a command", flag)
		}
	}
	if !f.streams.stdin && (f.streams.tty || cmd.Flags().Changed("detach-keys")) {
		return usage(cmd, "--tty and --detach-keys require --stdin")
	}
	keys, err := connect.ParseKeys(f.streams.detachKeys)
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
		a.problems(problems.Errors())
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
	q.Interactive.TTY = f.streams.tty && a.hasTerminal(&f.streams)
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
	keys, err := connect.ParseKeys(f.streams.detachKeys)
	if err != nil {
		return usage(cmd, "--detach-keys: %w", err)
	}
	tty := f.streams.tty && a.hasTerminal(&f.streams)
	request, err := a.readInteractive(cmd, paths[0], f, tty, level)
	if err != nil {
		return err
	}
	return a.runAttached(cmd, f, request, a.in, keys)
}

// runAttached runs a pod, and attaches to a container from its start. It returns the exit code of the container.
func (a *app) runAttached(cmd *cobra.Command, f *runFlags, request api.CreateRequest, in io.Reader, keys []byte) error {
	screen, tty := &follow.Screen{Writer: a.err}, request.Interactive.TTY
	o := follow.SessionOptions{
		Container: request.Interactive.Container, In: in, Out: a.out, Err: a.err, Screen: screen, TTY: tty, DetachKeys: keys,
	}
	// The output of the other containers is no part of that of the command.
	printer := &view.Text{Out: screen, Err: screen, Colour: a.colour(), Escape: a.isTerminal(), Width: a.width()}
	var result follow.Result
	err := a.inForeground(cmd, f, printer, func(ctx context.Context, s *ondemand.Starter, run follow.Options) (err error) {
		o.Daemon = s.Client
		result, err = follow.RunAttached(ctx, o, run, request)
		return err
	})
	err = interactiveEnd(o.Container, result, err)
	if f, ok := errors.AsType[*failure](err); ok && request.Interactive.Name != "" {
		f.hints = nil // the next pod has another name
	}
	return err
}

// readInteractive reads and checks a pod file, and selects the container to attach to.
func (a *app) readInteractive(
	cmd *cobra.Command, path string, f *runFlags, tty bool, level admission.Level,
) (q api.CreateRequest, err error) {
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
	o := spec.Options{Suffix: q.Suffix, Interactive: (*spec.Interactive)(q.Interactive)}
	if _, err := a.acceptFile(path, text, o, level); err != nil {
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
func interactiveEnd(container string, r follow.Result, err error) error {
	switch {
	case err != nil && !r.Started && errors.Is(err, follow.ErrFailed):
		return &failure{
			status: statusFailed, err: fmt.Errorf("container %q did not run: %w", container, err),
			hints: []string{"run it again with --rm=false, then podstead why " + r.Pod},
		}
	case err != nil:
		return err
	case r.Code != 0:
		return &failure{status: r.Code, err: fmt.Errorf("container %q of pod %q exited with code %d", container, r.Pod, r.Code)}
	case r.InputLost:
		return fmt.Errorf("pass stdin to container %q of pod %q: connection lost, the container may have read only a part", container,
			r.Pod)
	}
	return nil
}
