package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/spec"
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
