package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/test/internal/rig"
)

// restartAndStop measures the time from a kill to the restart of a container, and from a stop to its exit.
func (b *bench) restartAndStop(ctx context.Context, r *report) error {
	return b.within(ctx, func(rg *rig.Rig) error {
		g, err := newGate(rg, "gate")
		if err != nil {
			return err
		}
		defer g.close()
		if _, err := rg.Podstead(ctx, "get"); err != nil { // starts the daemon
			return err
		}
		for range b.times(12) {
			if err := b.restart(ctx, rg, &r.restart); err != nil {
				return err
			}
			if err := b.stop(ctx, rg, g, &r.stop); err != nil {
				return err
			}
		}
		return nil
	})
}

// restart uses a new pod for each sample, because only the first restart has no back-off. The gate is in an emptyDir volume: the seccomp
// profile of a container with a hostPath volume is larger.
func (b *bench) restart(ctx context.Context, r *rig.Rig, into *series) error {
	sleep := "sleep " + marker(1)
	text := b.podFile("again", "Always", "[ ! -p /gate/fifo ] || "+pass+"; exec "+sleep, nil) +
		"volumeMounts = { gate = \"/gate\" }\n\n[[volumes]]\nname = \"gate\"\nemptyDir = {}\n"
	pod, err := r.Create(ctx, "again", text)
	if err != nil {
		return err
	}
	pid, err := process(ctx, r, func(command string) bool { return command == sleep })
	if err != nil {
		return err
	}
	if err := awaitReady(ctx, r, 1); err != nil {
		return err
	}
	dirs, err := filepath.Glob(filepath.Join(r.StateDir(), "pods", pod.Metadata.UID, "volumes", "gate"))
	if err != nil || len(dirs) != 1 {
		return errors.Join(err, fmt.Errorf("find the emptyDir volume: %v", dirs))
	}
	g, err := newGateIn(dirs[0])
	if err != nil {
		return err
	}
	defer g.close()
	killed := time.Now()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		return err
	}
	at, err := g.await(ctx)
	if err != nil {
		return err
	}
	into.took(at.Sub(killed))
	return remove(ctx, r, "again")
}

func (b *bench) stop(ctx context.Context, r *rig.Rig, g *gate, into *series) error {
	sleep := "sleep " + marker(2)
	if _, err := r.Create(ctx, "stops",
		b.podFile("stops", "Always", "trap 'exit 0' TERM; "+pass+"; while :; do "+sleep+" & wait; done", g)); err != nil {
		return err
	}
	if _, err := g.await(ctx); err != nil {
		return err
	}
	pid, err := process(ctx, r, func(command string) bool { return strings.Contains(command, "wait; done") })
	if err != nil {
		return err
	}
	if err := awaitReady(ctx, r, 1); err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	stopped := time.Now()
	if err := r.Client().Stop(ctx, "stops", client.StopOptions{}); err != nil {
		return err
	}
	if err := awaitEnd(fd); err != nil {
		return err
	}
	into.since(stopped)
	return remove(ctx, r, "stops")
}

// process waits for a process of the rig with a matching command line.
func process(ctx context.Context, r *rig.Rig, fits func(command string) bool) (pid int, err error) {
	return pid, await(ctx, func() error {
		found, err := r.Processes()
		if err != nil {
			return err
		}
		for _, p := range found {
			if fits(p.Command) {
				pid = p.PID
				return nil
			}
		}
		return fmt.Errorf("none of %d processes matches", len(found))
	})
}

// awaitReady waits until so many pods are ready.
func awaitReady(ctx context.Context, r *rig.Rig, pods int) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ready := map[string]bool{}
	for change, err := range r.Client().Watch(ctx) {
		if err != nil {
			return err
		}
		ready[change.Object.Metadata.Name] = isReady(&change.Object)
		n := 0
		for _, is := range ready {
			if is {
				n++
			}
		}
		if n == pods {
			return nil
		}
	}
	return fmt.Errorf("wait for %d ready pods: %w", pods, context.Cause(ctx))
}

func isReady(p *api.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}
