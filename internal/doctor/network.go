package doctor

import (
	"context"
	"strings"
	"time"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/runtime/network"
)

// networkTimeout bounds the diagnosis, which runs other programs, such as iptables.
const networkTimeout = 15 * time.Second

// podNetwork reports what prevents the pod network from working.
func podNetwork(ctx context.Context, c *config.Config) result {
	if c.Network.Mode == string(runtime.NetworkNone) {
		return ok("none, as configured; pods have a loopback interface only, except with hostNetwork")
	}
	ctx, cancel := context.WithTimeout(ctx, networkTimeout)
	defer cancel()
	findings, err := runtime.DiagnoseNetwork(ctx, runtime.Options{
		StateDir: c.StateDir, RunDir: c.RunDir, NetworkMode: runtime.NetworkMode(c.Network.Mode), Subnets: c.Network.Prefixes(),
	})
	if r, found := networkResult(findings, err); found {
		return r
	}
	return ok("bridge %s", runtime.BridgeOf(c.RunDir))
}

// networkResult joins the findings of a diagnosis with its error. A diagnosis that failed may have findings too.
func networkResult(findings []network.Finding, err error) (r result, found bool) {
	var problems, hints []string
	for _, f := range findings {
		problems, hints = append(problems, f.Problem), append(hints, f.Hint)
	}
	if err != nil {
		problems, hints = append(problems, "diagnosis incomplete: "+err.Error()), append(hints, "run podstead doctor as root")
	}
	return result{Warn, strings.Join(problems, "; "), strings.Join(hints, "; ")}, len(problems) > 0
}
