package probes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/podstead/podstead/internal/expand"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// command runs a command in the container. Exit code 0 is a success. References to variables that the container's env defines are
// expanded, others are kept (Kubernetes: ExecAction.command).
func (p *Prober) command(ctx context.Context, t Target, e *spec.ExecAction, timeout time.Duration) lifecycle.ProbeResult {
	vars := map[string]string{}
	for _, v := range t.Container.Env {
		delete(vars, v.Name) // the later one wins, even if its value is unknown here
		if v.ValueFrom == nil {
			vars[v.Name] = v.Value
		}
	}
	argv := make([]string, len(e.Command))
	for i, arg := range e.Command {
		argv[i] = expand.Expand(arg, vars)
	}
	code, output, err := p.exec.Exec(ctx, t.UID, t.Ref, argv, timeout, maxOutput)
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
