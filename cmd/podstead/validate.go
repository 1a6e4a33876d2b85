package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
)

// errInvalidFile is the error of a pod file whose problems are printed already.
var errInvalidFile = errors.New("the pod file is invalid")

func (a *app) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check pod files",
		Long: `Check pod files in the same way as podstead run. All problems are printed with file, line and column. No pods are
started, and no daemon is needed. Env files and image archives that a file lists must exist. The file - is standard
input, in TOML, YAML or JSON.

Exit codes: 0 all files are valid, 2 a file is invalid.`,
		Example: `  # Check a pod file
  podstead validate web.toml

  # Check all pod files of a directory
  podstead validate pods/*.toml

  # Check the output of another program
  kubectl get pod web -o yaml | podstead validate -`,
		Args:              fileArguments,
		ValidArgsFunction: completeFiles,
		RunE: func(_ *cobra.Command, args []string) error {
			var errs []error
			for _, path := range args {
				if _, _, err := a.readFile(path, spec.Options{Archives: true}); err != nil {
					errs = append(errs, err)
					continue
				}
				fmt.Fprintf(a.out, "%s: ok\n", path)
			}
			if len(errs) > 0 {
				return invalidFiles(errs)
			}
			return nil
		},
	}
}

// readFile reads a pod file and prints its problems and warnings. The error of an invalid file wraps [errInvalidFile].
func (a *app) readFile(path string, o spec.Options) (*spec.Pod, string, error) {
	text, err := a.readText(path)
	if err != nil {
		return nil, "", fmt.Errorf("read pod file: %w", err)
	}
	pod, problems := o.Accept(path, text)
	for _, p := range problems {
		a.problem(api.Problem(p))
	}
	if pod == nil {
		return nil, "", fmt.Errorf("%s: %w", path, errInvalidFile)
	}
	return pod, string(text), nil
}

// readText returns the content of a file or of standard input.
func (a *app) readText(path string) ([]byte, error) {
	if path == spec.Stdin {
		return io.ReadAll(io.LimitReader(a.in, maxStdin))
	}
	return os.ReadFile(path)
}

// maxStdin bounds what is read of standard input, in bytes. It is larger than the maximum size of a pod file.
const maxStdin = 2 << 20

// fileArguments requires pod files, and standard input at most once.
func fileArguments(cmd *cobra.Command, args []string) error {
	if first := slices.Index(args, spec.Stdin); first >= 0 && slices.Contains(args[first+1:], spec.Stdin) {
		return usage(cmd, "%s: standard input can be read only once", commandName(cmd))
	}
	return minOneArgument("a pod file")(cmd, args)
}
