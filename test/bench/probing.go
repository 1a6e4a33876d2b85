package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/podstead/podstead/test/internal/rig"
)

// probed is the CPU time of all parts (daemon with engine and supervisor, shims, containers) in ms per probe, for many pods that are
// probed once per second, minus that of the same pods without probes. Bare is the minimum: see [bareExchanges].
type probed struct{ exec, http, tcp, grpc, bare float64 }

// probing measures the cost of probes in normal operation: many pods, one probe per second each.
func (b *bench) probing(ctx context.Context, r *report) error {
	web, rpc, stop, err := startServer(ctx)
	if err != nil {
		return err
	}
	never, err := b.probedPods(ctx, "exec = { command = [\"true\"] }\n  periodSeconds = 100000\n  initialDelaySeconds = 100000")
	for _, kind := range []struct {
		into  *float64
		probe string
	}{
		{&r.probed.exec, `exec = { command = ["true"] }`},
		{&r.probed.http, fmt.Sprintf("httpGet = { port = %d }", web)},
		{&r.probed.tcp, fmt.Sprintf("tcpSocket = { port = %d }", web)},
		{&r.probed.grpc, fmt.Sprintf("grpc = { port = %d }", rpc)},
	} {
		if err != nil {
			break
		}
		var used time.Duration
		used, err = b.probedPods(ctx, kind.probe+"\n  periodSeconds = 1\n  timeoutSeconds = 10\n  failureThreshold = 1000")
		*kind.into = float64(used-never) / float64(time.Millisecond) / (many * idle.Seconds())
	}
	if err == nil {
		var used time.Duration
		used, err = bareExchanges(ctx, web)
		r.probed.bare = float64(used) / float64(time.Millisecond) / (many * idle.Seconds())
	}
	return errors.Join(err, stop())
}

// probedPods returns the CPU time of many pods with a probe during [idle].
func (b *bench) probedPods(ctx context.Context, probe string) (used time.Duration, err error) {
	err = b.within(ctx, func(rg *rig.Rig) error {
		if _, err := rg.Podstead(ctx, "get"); err != nil { // starts the daemon
			return err
		}
		for i := range many {
			name := fmt.Sprintf("probed%d", i)
			text := "hostNetwork = true\n" + b.podFile(name, "Always", "exec sleep "+marker(i), nil) + "\n  [containers.livenessProbe]\n  " + probe + "\n"
			if _, err := rg.Create(ctx, name, text); err != nil {
				return err
			}
		}
		if err := await(ctx, func() error { return allReady(ctx, rg, many) }); err != nil {
			return err
		}
		if err := elapse(ctx, calm); err != nil {
			return err
		}
		before, err := allTicks(rg)
		if err == nil {
			err = elapse(ctx, idle)
		}
		if err != nil {
			return err
		}
		after, err := allTicks(rg)
		used = after - before
		if err == nil {
			_, err = rg.Podstead(ctx, "delete", "--all", "--force")
		}
		return err
	})
	return used, err
}

// elapse waits for a duration that is measured.
func elapse(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// allReady returns an error until so many pods are ready.
func allReady(ctx context.Context, rg *rig.Rig, want int) error {
	list, err := rg.Client().Pods(ctx)
	if err != nil {
		return err
	}
	ready := 0
	for i := range list.Items {
		if s := list.Items[i].Status.ContainerStatuses; len(s) == 1 && s[0].Ready {
			ready++
		}
	}
	if ready < want {
		return fmt.Errorf("%d of %d pods are ready", ready, want)
	}
	return nil
}

// allTicks returns the CPU time of all processes of the rig, and of their exited children.
func allTicks(rg *rig.Rig) (time.Duration, error) {
	all, err := rg.Processes()
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, process := range all {
		used, err := ticksOf(process.PID)
		if err != nil {
			continue // an exec that has exited meanwhile is counted in its shim
		}
		total += time.Duration(used) * 10 * time.Millisecond
	}
	return total, nil
}
