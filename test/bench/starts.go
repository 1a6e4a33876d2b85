package main

import (
	"context"
	"fmt"
	"time"

	"github.com/podstead/podstead/test/internal/rig"
)

// start is the time from a file to the first process and to the first output.
type start struct{ process, output series }

// starts measures `podstead run` of a file: with a daemon, without one, and with empty directories.
func (b *bench) starts(ctx context.Context, r *report) error {
	err := b.within(ctx, func(rg *rig.Rig) error {
		s, err := b.newStarter(rg)
		if err != nil {
			return err
		}
		defer s.gate.close()
		var first start
		if err := s.run(ctx, &first); err != nil { // imports the image
			return err
		}
		for range b.times(15) {
			if err := s.run(ctx, &r.warm); err != nil {
				return err
			}
			if err := rg.StopDaemon(ctx); err != nil {
				return err
			}
			if err := s.run(ctx, &r.onDemand); err != nil {
				return err
			}
		}
		return nil
	})
	for range b.times(7) {
		if err != nil {
			return err
		}
		err = b.within(ctx, func(rg *rig.Rig) error {
			s, err := b.newStarter(rg)
			if err != nil {
				return err
			}
			defer s.gate.close()
			return s.run(ctx, &r.empty)
		})
	}
	return err
}

// starter runs a pod that prints hello.
type starter struct {
	rig  *rig.Rig
	gate *gate
	file string
	text string // of the pod file
}

func (b *bench) newStarter(r *rig.Rig) (*starter, error) {
	g, err := newGate(r, "gate")
	if err != nil {
		return nil, err
	}
	text := b.podFile("hello", "Never", pass+"; echo hello", g)
	file, err := r.WritePod("hello", text)
	return &starter{r, g, file, text}, err
}

// run runs the pod until it has terminated.
func (s *starter) run(ctx context.Context, into *start) error {
	cmd := s.rig.Command(ctx, "run", s.file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	word := make([]byte, 64)
	n, err := out.Read(word)
	into.output.since(began)
	if err != nil {
		return fmt.Errorf("%w after %q", err, word[:n])
	}
	at, err := s.gate.await(ctx)
	if err != nil {
		return err
	}
	into.process.took(at.Sub(began))
	return cmd.Wait()
}
