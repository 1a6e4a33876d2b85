package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
)

// reboots reports whether the host may be rebooted for pods that stay unready.
func reboots(ctx context.Context, config *config.Config, c *client.Client) result {
	now, err := supervisor.SystemClock()
	if err != nil {
		return result{Warn, err.Error(), "mount /proc"}
	}
	file := filepath.Join(config.StateDir, daemon.RebootsFile)
	record, err := daemon.LoadReboots(file)
	if err != nil {
		return result{
			Warn, err.Error() + "; the host is not rebooted", "move " + file + " away after you have checked why the host was rebooted",
		}
	}
	ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	var asking []string
	if list, err := c.Pods(ctx); err == nil {
		for i := range list.Items {
			if p := &list.Items[i]; p.Spec.OnUnhealthy == spec.UnhealthyReboot {
				asking = append(asking, p.Metadata.Name)
			}
		}
	}
	return rebootsLeft(record.At(now()), int(config.Reboot.MaxPerDay), asking)
}

// rebootsLeft reports how many reboots are left, for the pods that may request one.
func rebootsLeft(r daemon.RebootRecord, limit int, pods []string) result {
	switch n := len(r.Reboots); {
	case limit == 0 && len(pods) > 0:
		return result{
			Warn, fmt.Sprintf("disabled, but pods with onUnhealthy = %q exist: %s", spec.UnhealthyReboot, strings.Join(pods, ", ")),
			"set reboot.maxPerDay in podstead.toml, or remove onUnhealthy from the pod files",
		}
	case limit == 0:
		return ok("disabled")
	case n >= limit:
		last := r.Reboots[n-1]
		return result{
			Warn,
			fmt.Sprintf("%d of at most %d reboots in 24h of uptime, the last one for pod %s; the next one is possible after %v of uptime",
				n, limit, last.Pod, r.Next(limit).Round(time.Minute)),
			"see podstead why " + last.Pod + " for the cause",
		}
	default:
		return ok("%d of at most %d reboots in 24h of uptime", n, limit)
	}
}
