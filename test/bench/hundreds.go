package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/test/internal/rig"
)

// hundred is the number of pods of [bench.hundreds].
const hundred = 200

// hundreds is what was measured with 200 pods: seconds, MiB, and percent of a core.
type hundreds struct {
	ready, daemon, again, idle float64
	get                        series
	descriptors                int
}

// hundreds measures 200 pods that start at the same time, and the recovery of a killed daemon.
func (b *bench) hundreds(ctx context.Context, r *report) error {
	return b.within(ctx, func(rg *rig.Rig) error {
		s, err := b.newStarter(rg)
		if err != nil {
			return err
		}
		defer s.gate.close()
		if err := s.run(ctx, &start{}); err != nil { // starts the daemon and imports the image
			return err
		}
		h := &r.hundreds
		began := time.Now()
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(10)
		for i := range hundred {
			name := "many" + strconv.Itoa(i)
			g.Go(func() error {
				_, err := rg.Create(gctx, name, b.podFile(name, "Always", "exec sleep "+marker(3), nil))
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if err := awaitReady(ctx, rg, hundred); err != nil {
			return err
		}
		h.ready = time.Since(began).Seconds()
		if err := b.observe(ctx, rg, h); err != nil {
			return err
		}
		killed := time.Now()
		if err := b.killDaemon(rg); err != nil {
			return err
		}
		if _, err := rg.Podstead(ctx, "get"); err != nil { // starts the next daemon
			return err
		}
		if err := await(ctx, func() error { return allReady(ctx, rg, hundred) }); err != nil {
			return err
		}
		h.again = time.Since(killed).Seconds()
		_, err = rg.Podstead(ctx, "delete", "--all", "--force")
		return err
	})
}

// observe measures the daemon while nothing happens.
func (b *bench) observe(ctx context.Context, rg *rig.Rig, h *hundreds) error {
	var m memory
	err := settled(ctx, rg, &m)
	if err != nil {
		return err
	}
	h.daemon = m.daemon
	daemon, err := daemonOf(rg)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", daemon))
	if err != nil {
		return err
	}
	h.descriptors = len(entries)
	if h.idle, err = idleCPU(ctx, rg); err != nil {
		return err
	}
	for range b.times(10) {
		began := time.Now()
		if _, err := rg.Podstead(ctx, "get"); err != nil {
			return err
		}
		h.get.since(began)
	}
	return nil
}

func (b *bench) killDaemon(rg *rig.Rig) error {
	daemon, err := daemonOf(rg)
	if err != nil {
		return err
	}
	return unix.Kill(daemon, unix.SIGKILL)
}

// daemonOf returns the PID of the rig's daemon.
func daemonOf(rg *rig.Rig) (int, error) {
	all, err := parts(rg)
	for _, p := range all {
		if p.kind == daemonPart {
			return p.PID, nil
		}
	}
	return 0, fmt.Errorf("find the daemon: not among %d processes: %w", len(all), err)
}
