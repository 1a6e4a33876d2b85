package doctor

import (
	"context"
	"strings"
	"time"

	"github.com/podstead/podstead/cmd/podstead/internal/config"
	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/runtime/network"
)

// networkLimit bounds the look at the network, for which the kernel and other programs are asked.
const networkLimit = 15 * time.Second

// podNetwork looks for what keeps pods from their network.
func podNetwork(ctx context.Context, c *config.Config) look {
	if c.Network.Mode == string(runtime.NetworkNone) {
		return ok("none, as it is set: pods have a loopback, and those with hostNetwork the machine's")
	}
	ctx, cancel := context.WithTimeout(ctx, networkLimit)
	defer cancel()
	findings, err := runtime.DiagnoseNetwork(ctx, runtime.Options{
		StateDir: c.StateDir, RunDir: c.RunDir, NetworkMode: runtime.NetworkMode(c.Network.Mode), Subnets: c.Network.Prefixes(),
	})
	if l, bad := networkLook(findings, err); bad {
		return l
	}
	return ok("pods get addresses on the bridge %s", runtime.BridgeOf(c.RunDir))
}

// networkLook is what the findings and the error of a diagnosis, which may have come to findings before, are together.
func networkLook(findings []network.Finding, err error) (l look, bad bool) {
	var problems, cures []string
	for _, f := range findings {
		problems, cures = append(problems, f.Problem), append(cures, f.Hint)
	}
	if err != nil {
		problems, cures = append(problems, "not everything could be looked at: "+err.Error()), append(cures, "run it as root")
	}
	return look{Warn, strings.Join(problems, "; "), strings.Join(cures, "; ")}, len(problems) > 0
}
