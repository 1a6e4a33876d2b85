package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/podstead/podstead/test/internal/rig"
)

// probed is the CPU time of all parts (daemon with engine and supervisor, monitor, containers) in ms per probe, for many pods that are
// probed once per second, minus that of the same pods without probes. Bare is the minimum: see [bareExchanges].
type probed struct{ exec, execCrun, http, tcp, grpc, bare float64 }

// often is the rest of a probe in the measurement.
const often = "\n  periodSeconds = 1\n  timeoutSeconds = 10\n  failureThreshold = 1000"

// probing measures the cost of probes in normal operation: many pods, one probe per second each.
func (b *bench) probing(ctx context.Context, r *report) error {
	web, rpc, stop, err := startServer(ctx)
	if err != nil {
		return err
	}
	used := func(runtime, probe string, into *time.Duration) {
		if err == nil {
			*into, err = b.probedPods(ctx, runtime, probe, allTicks)
		}
	}
	const command = `exec = { command = ["true"] }`
	const never = command + "\n  periodSeconds = 100000\n  initialDelaySeconds = 100000"
	for _, kind := range []struct {
		runtime string
		probe   string
		into    *float64
	}{
		{"runc", command, &r.probed.exec},
		{"runc", fmt.Sprintf("httpGet = { port = %d }", web), &r.probed.http},
		{"runc", fmt.Sprintf("tcpSocket = { port = %d }", web), &r.probed.tcp},
		{"runc", fmt.Sprintf("grpc = { port = %d }", rpc), &r.probed.grpc},
		{"crun", command, &r.probed.execCrun},
	} {
		if kind.runtime == "crun" && r.turn(withCrun).all == 0 {
			continue // it does not work on this host
		}
		var without, with time.Duration
		used(kind.runtime, never, &without)
		used(kind.runtime, kind.probe+often, &with)
		*kind.into = perProbe(with - without)
	}
	var idleCPU time.Duration
	if err == nil {
		probe := fmt.Sprintf("httpGet = { port = %d }\n  periodSeconds = 10", web)
		idleCPU, err = b.probedPods(ctx, "runc", probe, cpuOf)
		r.idleProbed = 100 * float64(idleCPU) / float64(idle)
	}
	if err == nil {
		var bare time.Duration
		bare, err = bareExchanges(ctx, web, time.Second)
		r.probed.bare = perProbe(bare)
	}
	if err == nil {
		var bare time.Duration
		bare, err = bareExchanges(ctx, web, 10*time.Second)
		r.idleBare = 100 * float64(bare) / float64(idle)
	}
	return errors.Join(err, stop())
}

// perProbe returns the CPU time of one probe in ms, of those of many pods during [idle].
func perProbe(used time.Duration) float64 {
	return float64(used) / float64(time.Millisecond) / (many * idle.Seconds())
}

// probedPods returns the CPU time of many pods with a probe during [idle].
func (b *bench) probedPods(ctx context.Context, runtime, probe string,
	measure func(*rig.Rig) (time.Duration, error),
) (used time.Duration, err error) {
	err = b.within(ctx, func(rg *rig.Rig) error {
		rg.Env = append(rg.Env, "PODSTEAD_ENGINE_RUNTIME="+runtime)
		if _, err := rg.Podstead(ctx, "get"); err != nil { // starts the daemon
			return err
		}
		for i := range many {
			name := fmt.Sprintf("probed%d", i)
			text := "hostNetwork = true\n" + b.podFile(name, "Always", "exec sleep "+marker(i), nil) +
				"\n  [containers.livenessProbe]\n  " + probe + "\n"
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
		before, err := measure(rg)
		if err == nil {
			err = elapse(ctx, idle)
		}
		if err != nil {
			return err
		}
		after, err := measure(rg)
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
			continue // an exec that has exited meanwhile is counted in the monitor
		}
		total += time.Duration(used) * 10 * time.Millisecond
	}
	return total, nil
}
