package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/doctor"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/admission"
)

// errInvalidFile is the error of a pod file whose problems are printed already.
var errInvalidFile = errors.New("the pod file is invalid")

func (a *app) validateCommand() *cobra.Command {
	var policy string
	cmd := &cobra.Command{
		Use:   "validate FILE|DIR|-...",
		Short: "Check pod files",
		Long: `Check pod files in the same way as podstead run. All problems are printed with file, line and column. No pods are
started, and no daemon is needed. Env files and image archives that a file lists must exist. The file - is standard
input, in TOML, YAML or JSON. Of a directory, all pod files are checked, without those in subdirectories. The files are
checked together, and with the pods of this host: pods that wait for each other are invalid.

Config maps, secrets and host paths that the pod would wait for on this host, because they are missing or cannot be
used, are printed, and so are names by which other pods of this host cannot reach the pod, and volumes whose content is
lost by the change of a pod of this host. They do not make the file invalid.

Requests beyond the baseline Pod Security Standard, such as a privileged container, are printed. A file that violates
the level of --policy, or podSecurity of the host's configuration, is invalid.

Exit codes: 0 all files are valid, 2 a file is invalid.`,
		Example: `  # Check a pod file
  podstead validate web.toml

  # Check all pod files of a directory
  podstead validate pods/

  # Check that a pod meets the restricted Pod Security Standard
  podstead validate web.toml --policy restricted

  # Check the output of another program
  kubectl get pod web -o yaml | podstead validate -`,
		Args:              fileArguments,
		ValidArgsFunction: completeFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			strict, err := a.level(cmd, cmp.Or(policy, c.Policy.PodSecurity))
			if err != nil {
				return err
			}
			files, err := expand(args)
			if err != nil {
				return err
			}
			var errs []error
			var pods []readPod
			for _, path := range files {
				pod, _, err := a.readFile(path, spec.Options{Archives: true}, strict)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				pods = append(pods, readPod{path, pod})
			}
			a.warnHidden(cmd, pods)
			a.warnLost(cmd, pods)
			cycles := a.waitCycles(cmd, pods)
			for _, r := range pods {
				if slices.Contains(cycles, r.pod.Name) {
					errs = append(errs, errInvalidFile)
					continue
				}
				a.warnUnusable(cmd.Context(), c, r.path, r.pod)
				fmt.Fprintf(a.out, "%s: ok\n", plain.Text(r.path))
			}
			if len(errs) > 0 {
				return invalidFiles(errs)
			}
			return nil
		},
	}
	levelFlag(cmd, &policy)
	return cmd
}

// readFile reads a pod file and prints its problems and warnings. The error of an invalid file wraps [errInvalidFile].
func (a *app) readFile(path string, o spec.Options, strict admission.Level) (*spec.Pod, string, error) {
	text, err := a.readText(path)
	if err != nil {
		return nil, "", err
	}
	pod, err := a.acceptFile(path, text, o, strict)
	return pod, string(text), err
}

// acceptFile is readFile for a file that was read.
func (a *app) acceptFile(path string, text []byte, o spec.Options, strict admission.Level) (*spec.Pod, error) {
	pod, problems := o.Accept(path, text)
	for _, p := range problems {
		a.problem(api.Problem(p))
	}
	if pod == nil || !checkLevel(a.err, path, pod, strict) {
		return nil, fmt.Errorf("%s: %w", path, errInvalidFile)
	}
	return pod, nil
}

// readText returns the content of a file or of standard input.
func (a *app) readText(path string) ([]byte, error) {
	if path == spec.Stdin {
		text, err := io.ReadAll(io.LimitReader(a.in, maxStdin))
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return text, nil
	}
	return spec.ReadPodFile(path)
}

// maxStdin bounds what is read of standard input, in bytes. It is larger than the maximum size of a pod file.
const maxStdin = 2 << 20

// fileArguments requires pod files, and standard input at most once.
func fileArguments(cmd *cobra.Command, args []string) error {
	if err := stdinOnce(cmd, args); err != nil {
		return err
	}
	return minOneArgument("a pod file")(cmd, args)
}

// stdinOnce rejects files that name standard input more than once.
func stdinOnce(cmd *cobra.Command, args []string) error {
	if first := slices.Index(args, spec.Stdin); first >= 0 && slices.Contains(args[first+1:], spec.Stdin) {
		return usage(cmd, "%s: standard input can be read only once", commandName(cmd))
	}
	return nil
}

// warnUnusable prints what the pod would wait for on this host.
func (a *app) warnUnusable(ctx context.Context, c *config.Config, path string, pod *spec.Pod) {
	for _, err := range doctor.Unusable(ctx, c, pod) {
		text := strings.ReplaceAll(err.Error(), "\n", "; ")
		fmt.Fprintf(a.err, "%s: the pod would wait on this host: %s\n", plain.Text(path), plain.Text(text))
	}
}

// warnLost prints the changes of pods of this host by which the content of a volume is lost.
func (a *app) warnLost(cmd *cobra.Command, list []readPod) {
	hasVolumes := func(r readPod) bool { return len(r.pod.Volumes) > 0 }
	if !slices.ContainsFunc(list, hasVolumes) {
		return
	}
	for _, present := range a.present(cmd) {
		for _, r := range list {
			if r.pod.Name != present.Name {
				continue
			}
			for _, c := range change.Between(present, r.pod) {
				if c.LosesContent() {
					fmt.Fprintf(a.err, "%s: on this host %s\n", plain.Text(r.path), plain.Text(c.String()))
				}
			}
		}
	}
}

// warnHidden prints by which names other pods of this host cannot reach the pods. The files have warnings of names that are hidden on all
// hosts.
func (a *app) warnHidden(cmd *cobra.Command, list []readPod) {
	var pods []*spec.Pod
	files := map[string]string{}
	for _, r := range list {
		pods, files[r.pod.Name] = append(pods, r.pod), r.path
	}
	if slices.ContainsFunc(pods, func(p *spec.Pod) bool { return p.Hostname != "" }) {
		for _, p := range a.present(cmd) {
			if files[p.Name] == "" {
				pods = append(pods, p)
			}
		}
	}
	hidden, err := doctor.HiddenNames(pods)
	if err != nil {
		a.note("cannot read all names of this host: %v", err)
	}
	for _, h := range hidden {
		if path := files[h.Pod]; path != "" && spec.Unpublished(h.Name, nil) == "" {
			fmt.Fprintf(a.err, "%s: on this host %s\n", plain.Text(path), plain.Text(h.String()))
		}
	}
}

func levelFlag(cmd *cobra.Command, value *string) {
	cmd.Flags().StringVar(value, "policy", "", "Pod Security Standards `level` for the pod files, at least as strict as the host's: "+
		strings.Join(admission.Levels(), ", ")+" (default the host's podSecurity)")
}

// level returns the level of the flag --policy, "" if it is not set. It must not be less strict than that of the host.
func (a *app) level(cmd *cobra.Command, value string) (admission.Level, error) {
	if value == "" {
		return "", nil
	}
	c, err := a.config(cmd)
	if err != nil {
		return "", err
	}
	level, host := admission.Level(value), c.Policy.PodSecurity
	switch {
	case !slices.Contains(admission.Levels(), value):
		return "", usage(cmd, "--policy %q: must be one of %s", value, strings.Join(admission.Levels(), ", "))
	case !level.Includes(admission.Level(host)):
		return "", usage(cmd, "--policy %s: must be at least as strict as podSecurity of this host, %s", value, host)
	}
	return level, nil
}

// checkLevel prints what a pod requests beyond the level baseline, and its violations of the level. It reports whether there are none of
// the latter. Host ports are no news: they are how a single host publishes a port.
func checkLevel(w io.Writer, path string, pod *spec.Pod, level admission.Level) bool {
	requests := slices.DeleteFunc(admission.BeyondBaseline(pod), func(r string) bool { return strings.HasPrefix(r, "hostPort ") })
	if len(requests) > 0 {
		fmt.Fprintf(w, "%s: exceeds the baseline Pod Security Standard: %s\n", plain.Text(path), plain.Text(strings.Join(requests, ", ")))
	}
	violations := admission.CheckLevel(pod, level)
	for i := range violations {
		fmt.Fprintf(w, "%s: %s: %s\n", plain.Text(path), plain.Text(violations[i].Field), plain.Text(violations[i].Message))
	}
	return len(violations) == 0
}

// presentTimeout bounds how long a command that checks pod files waits for the daemon.
const presentTimeout = 5 * time.Second

// readPod is a pod of a file that was read.
type readPod struct {
	path string
	pod  *spec.Pod
}

// waitCycles prints which of the pods wait for each other, also through pods of this host, and returns the names of all of them. The daemon
// sees one file after the other, so that it would accept the first.
func (a *app) waitCycles(cmd *cobra.Command, list []readPod) []string {
	if !slices.ContainsFunc(list, func(r readPod) bool { return len(r.pod.WaitsForPods()) > 0 }) {
		return nil
	}
	return a.cyclesAmong(list, a.present(cmd))
}

// cyclesAmong is waitCycles with other pods that exist.
func (a *app) cyclesAmong(list []readPod, present []*spec.Pod) []string {
	var pods []*spec.Pod
	for _, r := range list {
		pods = append(pods, r.pod)
	}
	var names []string
	for _, cycle := range spec.WaitCycles(pods, present) {
		i := slices.IndexFunc(list, func(r readPod) bool { return r.pod.Name == cycle[0] })
		text := fmt.Sprintf("%s: waitFor: pods wait for each other: %s", list[i].path, strings.Join(cycle, " -> "))
		fmt.Fprintln(a.err, plain.Text(text))
		a.hint("remove one of these pods from waitFor")
		names = append(names, cycle...)
	}
	return names
}

// present returns the pods of this host that have not completed and are not being deleted: those of the daemon or, if it is not running,
// those that it starts.
func (a *app) present(cmd *cobra.Command) (pods []*spec.Pod) {
	c, err := a.config(cmd)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), presentTimeout)
	defer cancel()
	client, _ := newClient(cmd, c)
	list, err := a.running(client).Pods(ctx)
	for i := range list.Items {
		p := &list.Items[i]
		if p.Metadata.UID == "" || p.Metadata.DeletionTimestamp != nil || p.Status.Phase.Terminal() {
			continue
		}
		pod := p.Spec.Pod
		pod.Name = p.Metadata.Name
		pods = append(pods, &pod)
	}
	if !errors.Is(err, api.ErrUnavailable) {
		return pods
	}
	files, err := expand([]string{c.Pods.Dir})
	if err != nil {
		return nil // there is no directory, or no file in it
	}
	for _, path := range files {
		text, err := spec.ReadPodFile(path)
		if err != nil {
			continue
		}
		if pod, _ := spec.Parse(path, text); pod != nil {
			pods = append(pods, pod)
		}
	}
	return pods
}
