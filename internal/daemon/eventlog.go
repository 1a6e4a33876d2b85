package daemon

import (
	"cmp"
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/coreos/go-systemd/v22/journal"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/runtime/container"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
)

// eventLog returns where the supervisor logs events; nil: in the log of the daemon.
func (o *Options) eventLog() func(context.Context, *event.Ring, *slog.Logger) {
	service, err := journal.StderrIsJournalStream() // journald receives the log of the daemon
	service = service && err == nil
	switch {
	case o.Config.Events.Journald == config.JournaldNever, o.Config.Events.Journald == config.JournaldAuto && !service:
		return nil
	}
	return journalLog(!service)
}

// unitLogDriver returns the log driver of pods that systemd units create: journald in place of the driver file, so that systemctl status
// shows their logs. It returns "" for the driver of other pods.
func unitLogDriver(c *config.Config) spec.LogDriver {
	if c.ContainerLog.Driver != string(spec.LogFile) || container.CheckDriver(spec.LogJournald, c.RunDir) != nil {
		return ""
	}
	return spec.LogJournald
}

// reportLosses emits an event when logs of a container were removed, if the runtime keeps logs.
func reportLosses(rt Runtime, s *supervisor.Supervisor) {
	r, ok := rt.(interface{ OnLogsRemoved(func(runtime.LogLoss)) })
	if !ok {
		return
	}
	r.OnLogsRemoved(func(l runtime.LogLoss) {
		e := event.New(api.EventLogsRemoved, s.Now().Wall, l.Pod, event.Fields{
			"files": files(l.Files), "container": cmp.Or(l.Container, "(others)"), "size": view.Size(l.Bytes), "limit": view.Size(l.Limit),
			"bytes": strconv.FormatInt(l.Bytes, 10),
		})
		e.UID, e.Container = l.UID, l.Container
		s.Events().Add(e)
	})
}

// reportCleared emits an event when something was killed or removed in the cgroup of a pod, if the runtime has cgroups.
func reportCleared(rt Runtime, s *supervisor.Supervisor) {
	r, ok := rt.(interface {
		OnCleared(report func(uid string, cleared podcgroup.Cleared))
	})
	if !ok {
		return
	}
	r.OnCleared(func(uid string, cleared podcgroup.Cleared) {
		pod := uid
		for _, p := range s.Pods() {
			if p.Facts.UID == uid {
				pod = p.Pod.Name
			}
		}
		e := event.New(api.EventCgroupCleared, s.Now().Wall, pod, event.Fields{"what": cleared.String()})
		e.UID = uid
		s.Events().Add(e)
	})
}

// reportMonitor emits an event when the monitor was restarted or replaced, cannot be reached, or can be reached again, if the runtime has
// one.
func reportMonitor(rt Runtime, s *supervisor.Supervisor) {
	r, ok := rt.(interface {
		OnMonitor(func(engine.MonitorReport))
	})
	if !ok {
		return
	}
	r.OnMonitor(func(m engine.MonitorReport) { s.Events().Add(monitorEvent(m, s.Now().Wall)) })
}

// monitorEvent returns the event for a change of the monitor.
func monitorEvent(m engine.MonitorReport, at time.Time) event.Event {
	switch {
	case m.Restarted != "":
		return event.New(api.EventMonitorRestarted, at, "", event.Fields{"cause": m.Restarted})
	case m.Unavailable != nil:
		return event.New(api.EventMonitorUnavailable, at, "", event.Fields{"error": m.Unavailable.Error()})
	case m.Replaced != nil && m.Replaced.Err != nil:
		return event.New(api.EventMonitorNotReplaced, at, "", event.Fields{"from": m.Replaced.From, "error": m.Replaced.Err.Error()})
	case m.Replaced != nil:
		return event.New(api.EventMonitorReplaced, at, "", event.Fields{"from": m.Replaced.From, "to": m.Replaced.To})
	}
	return event.New(api.EventMonitorAvailable, at, "", nil)
}

// files returns a number of files as text.
func files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return strconv.Itoa(n) + " files"
}
