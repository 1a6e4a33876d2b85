package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/test/internal/rig"
)

const (
	many = 20
	// calm is the pause before memory is measured, so that starts have completed.
	calm = 5 * time.Second
	// idle is the duration of CPU measurements.
	idle = 20 * time.Second
)

// manyPods measures the time until 20 pods are ready, their memory, and what remains after their deletion.
func (b *bench) manyPods(ctx context.Context, r *report) error {
	return b.within(ctx, func(rg *rig.Rig) error {
		return errors.Join(copyPrograms(rg), b.withPods(ctx, rg, r))
	})
}

// copyPrograms has the rig use copies of the programs. The memory of a file that others execute, too, would be counted in part for them.
func copyPrograms(r *rig.Rig) error {
	return errors.Join(copyInto(r, &r.Program), copyInto(r, &r.Monitor), copyInto(r, &r.Shim))
}

func copyInto(r *rig.Rig, program *string) error {
	text, err := os.ReadFile(*program)
	if err != nil {
		return err
	}
	*program = filepath.Join(r.Dir, filepath.Base(*program))
	return os.WriteFile(*program, text, 0o755) // a program
}

// usage is the memory in MiB without pods, with one, with many, and after their deletion.
type usage struct{ none, one, all, after memory }

// withPods measures memory, start times and idle CPU.
func (b *bench) withPods(ctx context.Context, rg *rig.Rig, r *report) error {
	file, err := rg.WritePod("first", b.podFile("first", "Never", "true", nil))
	if err != nil {
		return err
	}
	if _, err := rg.Podstead(ctx, "run", file); err != nil { // imports the image
		return err
	}
	if err := rg.StopDaemon(ctx); err != nil {
		return err
	}
	if _, err := rg.Podstead(ctx, "get"); err != nil {
		return err
	}
	if err := settled(ctx, rg, &r.many.none); err != nil {
		return err
	}
	for i := range b.times(3) {
		if err := b.createSome(ctx, rg, 0, 1); err != nil {
			return err
		}
		if i == 0 {
			if err := settled(ctx, rg, &r.many.one); err != nil {
				return err
			}
		}
		began := time.Now()
		if err := b.createSome(ctx, rg, 1, many+1); err != nil {
			return err
		}
		r.atOnce.since(began)
		if err := remove(ctx, rg, "many0"); err != nil {
			return err
		}
		if i == 0 {
			if err := settled(ctx, rg, &r.many.all); err != nil {
				return err
			}
			if r.idle, err = idleCPU(ctx, rg); err != nil {
				return err
			}
		}
		if _, err := rg.Podstead(ctx, "delete", "--all", "--force"); err != nil {
			return err
		}
	}
	return settled(ctx, rg, &r.many.after)
}

// createSome creates pods at the same time and waits until all are ready.
func (b *bench) createSome(ctx context.Context, r *rig.Rig, from, to int) error {
	g, gctx := errgroup.WithContext(ctx)
	for i := range to - from {
		name := "many" + strconv.Itoa(from+i)
		g.Go(func() error {
			_, err := r.Create(gctx, name, b.podFile(name, "Always", "exec sleep "+marker(3), nil))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return awaitReady(ctx, r, to)
}

// memory is the proportional set size (PSS) by part, in MiB.
type memory struct{ daemon, monitor, containers float64 }

func (m memory) ours() float64  { return m.daemon + m.monitor }
func (m memory) total() float64 { return m.ours() + m.containers }

// settled waits for a quiet moment and measures memory.
func settled(ctx context.Context, r *rig.Rig, m *memory) error {
	select {
	case <-time.After(calm):
	case <-ctx.Done():
		return ctx.Err()
	}
	all, err := parts(r)
	if err != nil {
		return err
	}
	for _, p := range all {
		pss, err := pssOf(p.PID)
		if err != nil {
			return err
		}
		switch p.kind {
		case daemonPart:
			m.daemon += pss
		case monitorPart:
			m.monitor += pss
		case containerPart:
			m.containers += pss
		}
	}
	return nil
}

type kind int

const (
	daemonPart  kind = iota
	monitorPart      // with its keeper
	containerPart
)

type part struct {
	rig.Process
	kind kind
}

// parts returns the processes of the rig with their kinds.
func parts(r *rig.Rig) ([]part, error) {
	found, err := r.Processes()
	var all []part
	for _, p := range found {
		k := containerPart
		switch words := strings.Fields(p.Command); {
		case len(words) > 1 && words[1] == "daemon":
			k = daemonPart
		case isMonitor(p):
			k = monitorPart
		}
		all = append(all, part{p, k})
	}
	return all, err
}

// isMonitor reports whether a process is the monitor or its keeper.
func isMonitor(p rig.Process) bool {
	name, _, _ := strings.Cut(p.Command, " ")
	return filepath.Base(name) == monitor.Name
}

// pssOf returns the PSS of a process in MiB.
func pssOf(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "Pss:" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("process %d has no PSS", pid)
}

// idleCPU returns the CPU usage of daemon and monitor without activity, in percent of a core.
func idleCPU(ctx context.Context, r *rig.Rig) (float64, error) {
	before, err := cpuOf(r)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	select {
	case <-time.After(idle):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	took := time.Since(began)
	after, err := cpuOf(r)
	return 100 * float64(after-before) / float64(took), err
}

// cpuOf returns the CPU time of daemon and monitor since their start. Threads that have exited are not included; Go stops almost none.
func cpuOf(r *rig.Rig) (time.Duration, error) {
	all, err := parts(r)
	if err != nil {
		return 0, err
	}
	total := time.Duration(0)
	for _, p := range all {
		if p.kind == containerPart {
			continue
		}
		// schedstat is in nanoseconds, stat only in hundredths of a second.
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.PID))
		if err != nil {
			return 0, err
		}
		for _, thread := range threads {
			text, err := os.ReadFile(thread)
			if err != nil {
				return 0, err
			}
			ran, _, _ := strings.Cut(string(text), " ")
			n, err := strconv.ParseInt(ran, 10, 64)
			if err != nil {
				return 0, err
			}
			total += time.Duration(n)
		}
	}
	return total, nil
}
