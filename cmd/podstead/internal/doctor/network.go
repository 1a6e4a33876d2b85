package doctor

import (
	"context"
	"strings"
	"time"

	"github.com/podstead/podstead/cmd/podstead/internal/config"
	"github.com/podstead/podstead/runtime"
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
	if len(findings) > 0 {
		var problems, cures []string
		for _, f := range findings {
			problems, cures = append(problems, f.Problem), append(cures, f.Cure)
		}
		return look{Warn, strings.Join(problems, "; "), strings.Join(cures, "; ")}
	}
	if err != nil {
		return look{Warn, err.Error(), "run it as root"}
	}
	return ok("pods get addresses on the bridge %s", runtime.BridgeOf(c.RunDir))
}
