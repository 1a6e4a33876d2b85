package daemon

import (
	"context"
	"log/slog"
	"os"

	"github.com/podstead/podstead/internal/daemon/metrics"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/stats"
	"github.com/podstead/podstead/supervisor"
)

// measuredRuntime is a [Runtime] whose pods and engine are measured. The one in memory, for tests, is not.
type measuredRuntime interface {
	ReadStats(ctx context.Context, targets []stats.Target) []stats.Pod
	CheckEngine(ctx context.Context) error
}

// newMetrics returns the metrics of the daemon.
func (o *Options) newMetrics(ctx context.Context, rt Runtime, s *supervisor.Supervisor, recorder *metrics.Recorder) *metrics.Metrics {
	node, err := os.Hostname()
	if err != nil {
		o.Log.LogAttrs(ctx, slog.LevelWarn, "metrics have no name of the host", slog.Any("error", err))
	}
	options := metrics.Options{
		Supervisor: s, Recorder: recorder, Version: o.Version.Version, Node: node, Log: o.Log,
		Directories: map[string]string{"state": o.Config.StateDir, "logs": o.Config.LogDir, "run": o.Config.RunDir},
		Claims:      record.Dirs{State: o.Config.StateDir}.PersistentVolumes(),
	}
	if r, ok := rt.(measuredRuntime); ok {
		options.ReadStats, options.CheckEngine = r.ReadStats, r.CheckEngine
	}
	return metrics.New(options)
}
