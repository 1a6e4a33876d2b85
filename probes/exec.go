package probes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// command runs a command in the container. Exit code 0 is a success. References to variables that the container's env defines are
// expanded, others are kept (Kubernetes: ExecAction.command).
func (p *Prober) command(ctx context.Context, t Target, e *spec.ExecAction, timeout time.Duration) lifecycle.ProbeResult {
	vars := t.Container.PlainVariables()
	var size spec.ProcessSize
	argv := make([]string, len(e.Command))
	for i, arg := range e.Command {
		var ok bool
		argv[i], ok = spec.Expand(arg, vars, size.Left())
		if size.Add(argv[i]); !ok || size.Left() < 0 {
			return errored(&spec.TooLargeError{Field: fmt.Sprintf("exec.command[%d]", i)})
		}
	}
	code, output, err := p.exec.Exec(ctx, t.UID, t.Ref, argv, timeout, MaxOutput)
	switch {
	case ctx.Err() != nil:
		return errored(ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		return failed(fmt.Sprintf("command timed out: %q timed out after %v", strings.Join(argv, " "), timeout))
	case err != nil:
		return errored(err)
	case code != 0:
		return failed(string(output))
	}
	return succeeded()
}
