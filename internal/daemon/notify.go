package daemon

import (
	"context"
	"path/filepath"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon/notify"
	"github.com/podstead/podstead/supervisor"
)

// sendEvents sends events to the notifiers of the configuration, also to those of later reloads, until the returned function is called.
func (o *Options) sendEvents(ctx context.Context, s *supervisor.Supervisor, r *reloader) (stop func()) {
	set := notify.New(notify.Options{
		Dir: filepath.Join(o.Config.StateDir, notify.Dir), Events: s.Events(), Now: s.Now, Log: o.Log,
		Labels: func(pod string) (map[string]string, bool) {
			snapshot, found := s.Pod(pod)
			if !found || snapshot.Pod == nil {
				return nil, false
			}
			return snapshot.Pod.Labels, true
		},
	})
	r.sendTo = func(list []config.Notifier) { set.Apply(ctx, list) }
	r.sendTo(r.config.Load().Notify)
	return set.Close
}
