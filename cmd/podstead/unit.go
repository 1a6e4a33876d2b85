package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
	"github.com/podstead/podstead/internal/daemon/units"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

// unitStopTimeout is how long the deletion of a pod may take after its grace period.
const unitStopTimeout = time.Minute

// unitCommand is what podstead@.service runs, see docs/design/units.md.
func (a *app) unitCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "unit", Short: "Commands of podstead@.service", Hidden: true, Args: noArguments, RunE: runRoot}
	for _, c := range []struct {
		name, short string
		run         func(*cobra.Command, string) error
	}{
		{"start", "Create the pod of a unit, and wait until it is finished", a.unitStart},
		{"reload", "Change the pod of a unit to its file", a.unitReload},
		{"stop", "Stop and delete the pod of a unit", a.unitStop},
	} {
		cmd.AddCommand(&cobra.Command{
			Use: c.name + " POD", Short: c.short, Args: cobra.ExactArgs(1), Hidden: true,
			RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
		})
	}
	return cmd
}

// unitRequest reads the pod file of a unit.
func (a *app) unitRequest(cmd *cobra.Command, pod string) (q api.CreateRequest, err error) {
	c, err := a.config(cmd)
	if err != nil {
		return q, err
	}
	path, err := units.Find(c.ConfigDir, c.Pods.Dir, pod)
	if err != nil {
		return q, &failure{status: statusNotFound, err: err}
	}
	level, err := a.level(cmd, "")
	if err != nil {
		return q, err
	}
	err = readEach([]string{path}, func(path, absolute string) ([]string, error) {
		_, text, err := a.readFile(path, spec.Options{}, level)
		q = api.CreateRequest{File: absolute, Text: text, Unit: api.UnitOf(pod)}
		return nil, err
	})
	return q, err
}

// unitStart creates the pod of a unit, and returns its failure. When the pod is ready, this process is replaced with one that waits for the
// end of the pod.
func (a *app) unitStart(cmd *cobra.Command, pod string) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM) // systemd: TimeoutStartSec
	defer stop()
	q, err := a.unitRequest(cmd, pod)
	if err != nil {
		return err
	}
	if err := units.Pipe(); err != nil {
		return err
	}
	w, err := a.watcher(cmd)
	if err != nil {
		return err
	}
	if err := a.removeEarlier(ctx, w, pod, q.File); err != nil {
		return err
	}
	created, err := w.Client.Create(ctx, q)
	if err != nil {
		return fmt.Errorf("start pod %q: %w", pod, err)
	}
	line := ""
	cause, err := unitReady(ctx, w, pod, func(p *api.Pod) {
		if p.Metadata.UID == created.Pod.Metadata.UID {
			line = plain.Text(view.Ready(p) + " " + view.Status(p))
			_, _ = sd.SdNotify(false, "STATUS="+line) // not started by systemd
		}
	})
	if err != nil {
		return err
	}
	if cause != nil {
		if errors.Is(cause, context.Canceled) {
			cause = fmt.Errorf("not ready in time: %s", line)
		}
		a.printWhy(cmd, w.Client, pod)
		return fmt.Errorf("start pod %q: %w", pod, cause)
	}
	if _, err := sd.SdNotify(false, sd.SdNotifyReady+"\nSTATUS="+line); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return units.Wait(pod)
}

// unitReady waits until the pod of a unit is ready, or has succeeded. It does not wait for the minimum ready time, and a container that
// fails is restarted: the unit waits for the end of the pod from then on, and TimeoutStartSec limits its start. The cause is why the pod
// does not become ready.
func unitReady(ctx context.Context, w *watcher, pod string, seen func(*api.Pod)) (cause, err error) {
	err = wait.Until(ctx, w, func() func(*api.PodChange) bool {
		return func(c *api.PodChange) bool {
			p := &c.Object
			if p.Metadata.Name != pod || c.Type == api.Deleted {
				return false
			}
			seen(p)
			switch {
			case p.Metadata.UID == "":
				cause = fmt.Errorf("%s: %s", p.Status.Reason, p.Status.Message)
			case !p.Status.StoppedAt.IsZero():
				cause = fmt.Errorf("the pod is stopped: start it with podstead start %s", pod)
			case p.Metadata.DeletionTimestamp != nil && !p.Status.AtRest:
				return false
			case p.Status.Phase == api.PhaseFailed:
				cause = errors.New("the pod failed")
			default:
				return p.Status.Phase == api.PhaseSucceeded || slices.ContainsFunc(p.Status.Conditions, func(c api.Condition) bool {
					return c.Type == api.PodReady && c.Status == "True"
				})
			}
			return true
		}
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx), nil
	}
	return cause, err
}

// unitPod returns the pod of a name if the unit created it, or if it follows the file that the unit starts now.
func unitPod(ctx context.Context, w *watcher, pod, file string) (*api.Pod, error) {
	p, err := w.Client.Pod(ctx, pod)
	if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	owner, _, _ := strings.Cut(p.Status.Owner, " ")
	if p.Metadata.UID == "" || owner != api.UnitOf(pod) && (file == "" || p.Status.File != file) {
		return nil, nil
	}
	return &p, nil
}

// removeEarlier deletes the pod of an earlier start of the unit.
func (a *app) removeEarlier(ctx context.Context, w *watcher, pod, file string) error {
	p, err := unitPod(ctx, w, pod, file)
	if err != nil || p == nil {
		return err
	}
	return a.remove(ctx, w, []api.Pod{*p}, client.StopOptions{KeepFile: true}, true)
}

func (a *app) unitReload(cmd *cobra.Command, pod string) error {
	q, err := a.unitRequest(cmd, pod)
	if err != nil {
		return err
	}
	w, err := a.watcher(cmd)
	if err != nil {
		return err
	}
	q.Reload = true
	if _, err := w.Client.Create(cmd.Context(), q); err != nil {
		return fmt.Errorf("reload pod %q: %w", pod, err)
	}
	return nil
}

// unitStop stops and deletes the pod of a unit. A finished pod is kept: podstead why and logs show it.
func (a *app) unitStop(cmd *cobra.Command, pod string) error {
	stopping := false
	if a.hostStopping != nil {
		stopping, _ = a.hostStopping(cmd.Context()) // without systemd the host is not known to stop
	}
	w, err := a.stopWatcher(cmd, stopping)
	if err != nil || w == nil {
		return err
	}
	p, err := unitPod(cmd.Context(), w, pod, "")
	if err != nil || p == nil {
		return err
	}
	deleting := p.Metadata.DeletionTimestamp != nil
	if !deleting && p.Status.AtRest && p.Status.Phase.Terminal() {
		if p.Status.Phase == api.PhaseFailed {
			a.printWhy(cmd, w.Client, pod) // in the journal of the unit
		}
		return nil
	}
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	options := client.StopOptions{KeepFile: true}
	grace := p.Spec.TerminationGracePeriodSeconds.Duration()
	if period := c.Pods.ShutdownGracePeriod.Duration(); stopping && period > 0 && grace > period {
		grace, options.Grace = period, &period // a container that ignores signals does not hold up the shutdown
	}
	_, _ = sd.SdNotify(false, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", (grace+unitStopTimeout).Microseconds())) // not started by systemd
	return a.remove(cmd.Context(), w, []api.Pod{*p}, options, true)
}

// stopWatcher returns a watcher for the stop of a unit. It starts the daemon: a pod must not remain without its unit. While the host shuts
// down it starts none, and returns nil if none responds: after the boot the unit creates the pod again.
func (a *app) stopWatcher(cmd *cobra.Command, stopping bool) (*watcher, error) {
	if !stopping {
		return a.watcher(cmd)
	}
	s, err := a.connect(cmd)
	if err != nil {
		return nil, err
	}
	if a.idle != nil && a.idle(cmd.Context(), s.Client.Socket()) {
		return nil, nil
	}
	if _, err := s.Client.Version(cmd.Context()); errors.Is(err, api.ErrUnavailable) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return &watcher{Starter: s}, nil
}
