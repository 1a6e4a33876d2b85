package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/test/internal/rig"
)

// contender is a program that runs containers: Podstead with one of the OCI runtimes, or another program. Each call leaves nothing behind,
// except fill.
type contender interface {
	// first returns the time from the command to the first output of a container.
	first(ctx context.Context) (time.Duration, error)
	// restart returns the time from the kill of a container's process to its next start.
	restart(ctx context.Context) (time.Duration, error)
	// stop returns the time from the request to the exit of a process that handles SIGTERM.
	stop(ctx context.Context) (time.Duration, error)
	// fill starts many containers at the same time, and returns the time until all run.
	fill(ctx context.Context) (time.Duration, error)
	// memory returns the proportional set size of all its processes, with those in containers, in MiB.
	memory(ctx context.Context) (float64, error)
	close(ctx context.Context) error
}

// turn is what was measured for a contender.
type turn struct {
	name                         string
	first, restart, stop, atOnce series
	none, all                    float64 // memory in MiB: without containers and with many
}

// The names of Podstead as a contender.
const (
	withRunc = "Podstead with runc"
	withCrun = "Podstead with crun"
)

// inTurns measures Podstead and other programs alternately, so that all see the same load.
func (b *bench) inTurns(ctx context.Context, r *report) error {
	return b.within(ctx, func(runc *rig.Rig) error {
		return b.within(ctx, func(crun *rig.Rig) error {
			return b.within(ctx, func(others *rig.Rig) (err error) {
				// of Docker and Podman
				clean := cleaner("/etc/docker", "/dev/shm/libpod_lock", "/run/libpod", "/var/lib/containers", "/var/lib/cni")
				defer func() { err = errors.Join(err, clean()) }()
				list, err := b.contenders(ctx, runc, crun, others)
				if err == nil {
					err = b.compete(ctx, r, list)
				}
				for i := range list {
					err = errors.Join(err, list[i].close(context.WithoutCancel(ctx)))
				}
				return err
			})
		})
	})
}

// compete measures the times in turns, and then the memory.
func (b *bench) compete(ctx context.Context, r *report, list []named) error {
	for i := range list {
		r.turns = append(r.turns, turn{name: list[i].name})
	}
	for round := range b.times(12) + 1 {
		for i := range list {
			if err := list[i].take(ctx, &r.turns[i], round == 0); err != nil { // the first one warms up caches
				return err
			}
		}
	}
	for i := range list {
		if err := list[i].weigh(ctx, &r.turns[i]); err != nil {
			return err
		}
	}
	return nil
}

// named is a contender with its name.
type named struct {
	name string
	contender
}

// contenders returns those that work on this host.
func (b *bench) contenders(ctx context.Context, runc, crun, others *rig.Rig) ([]named, error) {
	var list []named
	var errs []error
	for _, c := range []struct {
		name string
		make func() (contender, error)
	}{
		{withRunc, func() (contender, error) { return b.newPodstead(ctx, runc, "runc") }},
		{withCrun, func() (contender, error) { return b.newPodstead(ctx, crun, "crun") }},
		{"Podman", func() (contender, error) { return b.newPodman(ctx, others) }},
		{"dockerd", func() (contender, error) { return b.newDocker(ctx, others) }},
	} {
		made, err := c.make()
		switch {
		case errors.Is(err, errMissing):
			b.say("not measured: " + err.Error())
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", c.name, err))
		default:
			list = append(list, named{c.name, made})
		}
	}
	return list, errors.Join(errs...)
}

// errMissing is the error for a program that is not installed, or does not work on this host.
var errMissing = errors.New("not available")

// take measures the times once.
func (n *named) take(ctx context.Context, t *turn, warmup bool) error {
	for _, m := range []struct {
		what string
		take func(context.Context) (time.Duration, error)
		into *series
	}{{"first output", n.first, &t.first}, {"restart", n.restart, &t.restart}, {"stop", n.stop, &t.stop}} {
		took, err := m.take(ctx)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", n.name, m.what, err)
		}
		if !warmup {
			m.into.took(took)
		}
	}
	return nil
}

// weigh measures the memory, and the time of many starts.
func (n *named) weigh(ctx context.Context, t *turn) error {
	var err error
	if t.none, err = n.memory(ctx); err != nil {
		return fmt.Errorf("%s: memory: %w", n.name, err)
	}
	took, err := n.fill(ctx)
	if err != nil {
		return fmt.Errorf("%s: %d containers: %w", n.name, many, err)
	}
	t.atOnce.took(took)
	if t.all, err = n.memory(ctx); err != nil {
		return fmt.Errorf("%s: memory: %w", n.name, err)
	}
	return nil
}

// podstead is a daemon as a contender.
type podstead struct {
	*starter
	bench *bench
	plain string // path of a pod file without volumes
}

func (b *bench) newPodstead(ctx context.Context, rg *rig.Rig, runtime string) (contender, error) {
	rg.Env = append(rg.Env, "PODSTEAD_ENGINE_RUNTIME="+runtime)
	if err := copyPrograms(rg); err != nil {
		return nil, err
	}
	s, err := b.newStarter(rg)
	if err != nil {
		return nil, err
	}
	if err := s.run(ctx, &start{}); err != nil { // starts the daemon and imports the image
		s.gate.close()
		if runtime == "crun" {
			return nil, fmt.Errorf("crun: %w: %w", errMissing, err)
		}
		return nil, err
	}
	plain, err := rg.WritePod("plain", b.podFile("plain", "Never", "echo hello", nil))
	return &podstead{s, b, plain}, err
}

func (p *podstead) first(ctx context.Context) (time.Duration, error) {
	return firstOutput(p.rig.Command(ctx, "run", p.plain))
}

// firstOutput returns the time from the start of a command to its first output.
func firstOutput(cmd *exec.Cmd) (time.Duration, error) {
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	_, err = out.Read(make([]byte, 64))
	took := time.Since(began)
	if err = errors.Join(err, cmd.Wait()); err != nil {
		err = fmt.Errorf("%v: %w: %s", cmd.Args, err, &stderr)
	}
	return took, err
}

func (p *podstead) restart(ctx context.Context) (time.Duration, error) {
	var s series
	err := p.bench.restart(ctx, p.rig, &s)
	return s.only(), err
}

func (p *podstead) stop(ctx context.Context) (time.Duration, error) {
	var s series
	err := p.bench.stop(ctx, p.rig, p.gate, &s)
	return s.only(), err
}

func (p *podstead) fill(ctx context.Context) (time.Duration, error) {
	if _, err := p.rig.Podstead(ctx, "get"); err != nil { // the daemon exits after a time without pods
		return 0, err
	}
	began := time.Now()
	err := p.bench.createSome(ctx, p.rig, 0, many)
	return time.Since(began), err
}

func (p *podstead) memory(ctx context.Context) (float64, error) {
	if _, err := p.rig.Podstead(ctx, "get"); err != nil {
		return 0, err
	}
	var m memory
	err := settled(ctx, p.rig, &m)
	return m.total(), err
}

func (p *podstead) close(ctx context.Context) error {
	p.gate.close()
	_, err := p.rig.Podstead(ctx, "delete", "--all", "--force")
	return err
}

// cleaner returns a function that removes those of the files that do not exist yet.
func cleaner(paths ...string) (clean func() error) {
	paths = slices.DeleteFunc(paths, func(path string) bool {
		_, err := os.Lstat(path)
		return !errors.Is(err, fs.ErrNotExist)
	})
	return func() error {
		var errs []error
		for _, path := range paths {
			errs = append(errs, os.RemoveAll(path))
		}
		return errors.Join(errs...)
	}
}
