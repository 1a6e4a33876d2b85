package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
)

// errTold stands for problems that a person has been told already.
var errTold = errors.New("the pod file is wrong")

func (a *app) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check pod files",
		Long: `The files are checked by the code that run and the daemon use, and all that is wrong is told, with file, line and
column. Nothing is started, and no daemon is needed.

Exit status: 0 every file is good, 2 one is wrong.`,
		Args:              someArguments("a pod file"),
		ValidArgsFunction: completeFiles,
		RunE: func(_ *cobra.Command, args []string) error {
			var errs []error
			for _, path := range args {
				if _, _, err := a.readFile(path); err != nil {
					errs = append(errs, err)
					continue
				}
				fmt.Fprintf(a.out, "%s: ok\n", path)
			}
			if len(errs) > 0 {
				return wrongFiles(errs)
			}
			return nil
		},
	}
}

// readFile reads a pod file and tells what is worth telling of it. The error of one that is wrong is [errTold].
func (a *app) readFile(path string) (*spec.Pod, string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("read pod file: %w", err)
	}
	pod, problems := spec.Accept(path, text)
	for _, p := range problems {
		a.problem(api.Problem(p))
	}
	if pod == nil {
		return nil, "", fmt.Errorf("%s: %w", path, errTold)
	}
	return pod, string(text), nil
}
