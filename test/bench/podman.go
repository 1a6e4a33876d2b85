package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/podstead/podstead/test/internal/rig"
)

// podman is a private storage of Podman with runc, on the network of the host, so that its network programs are not needed.
type podman struct{ dir string }

// newPodman loads the archive. It returns nil if Podman is not installed.
func newPodman(ctx context.Context, dir, archive string) (*podman, error) {
	if _, err := exec.LookPath("podman"); err != nil {
		return nil, nil
	}
	p := &podman{filepath.Join(dir, "podman")}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return nil, err
	}
	return p, quiet(p.command(ctx, "load", "--quiet", "--input", archive))
}

func (p *podman) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "podman", append([]string{
		"--root", filepath.Join(p.dir, "root"), "--runroot", filepath.Join(p.dir, "run"), "--tmpdir", filepath.Join(p.dir, "tmp"),
		"--cgroup-manager", "cgroupfs", "--runtime", "runc", "--events-backend", "none",
	}, args...)...)
}

// run is one container lifetime.
func (p *podman) run(ctx context.Context) error {
	return quiet(p.command(ctx, "run", "--rm", "--network", "host", busybox, "true"))
}

// first is the time from a command to the first process of a container.
func (p *podman) first(ctx context.Context, g *gate, into *series) error {
	began := time.Now()
	cmd := p.command(ctx, "run", "--rm", "--network", "host", "--volume", g.dir+":/gate", busybox, "sh", "-c", pass)
	if err := cmd.Start(); err != nil {
		return err
	}
	at, err := g.await(ctx)
	if err != nil {
		return fmt.Errorf("%v: %w", cmd.Args, err)
	}
	into.took(at.Sub(began))
	return cmd.Wait()
}

// close removes the storage.
func (p *podman) close(ctx context.Context) error {
	if p == nil {
		return nil
	}
	return quiet(p.command(ctx, "system", "reset", "--force"))
}

// besidePodman measures the time to the first process of Podstead and of Podman alternately, so that both see the same load.
func (b *bench) besidePodman(ctx context.Context, r *report) error {
	return b.within(ctx, func(rg *rig.Rig) error {
		p, err := newPodman(ctx, rg.Dir, b.archive)
		if p == nil || err != nil {
			return err // reported as not installed
		}
		s, err := b.newStarter(rg)
		if err != nil {
			return err
		}
		defer s.gate.close()
		for i := range b.times(10) + 1 {
			own, theirs := &r.besides, &r.podmanFirst
			if i == 0 { // warms up caches
				own, theirs = &start{}, &series{}
			}
			if err := s.run(ctx, own); err != nil {
				return err
			}
			if err := p.first(ctx, s.gate, theirs); err != nil {
				return err
			}
		}
		return p.close(ctx)
	})
}
