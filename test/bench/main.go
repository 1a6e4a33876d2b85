// Command bench measures Podstead, bare runc, and Debian's containerd on this host, also crun and Podman if they are installed, and writes
// the results as a page of the documentation. It needs root, the programs of make build, and ctr and containerd in PATH. With -base it
// compares two builds of Podstead.
//
// Everything that it starts has directories of its own and is removed afterwards.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/suite"
)

func main() {
	if os.Getenv(serveVariable) != "" {
		if err := serve(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	out := flag.String("o", "", "file to write; standard output if empty")
	scale := flag.Float64("scale", 1, "multiple of the usual number of samples")
	only := flag.String("only", "", "take only measurements whose name contains this, and write them to standard output")
	base := flag.String("base", "", "directory with other programs to compare with, in turns")
	rounds := flag.Int("rounds", 5, "number of rounds of a comparison")
	tolerance := flag.Float64("tolerance", 0.1, "fraction by which a value of a comparison may be worse")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := os.Setenv("PODSTEAD_ENGINE_RUNTIME", "runc"); err != nil { // except in measurements of crun
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(suite.Alone(func() int { // the host's network is not affected
		b, err := newBench(*scale, *only)
		if err == nil && *base != "" {
			err = b.compare(ctx, *base, *rounds, *tolerance)
		} else if err == nil {
			err = b.run(ctx, *out)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			return 1
		}
		return 0
	}))
}

func newBench(scale float64, only string) (*bench, error) {
	repository, err := rig.Repository()
	return &bench{
		archive: filepath.Join(repository, "examples", "images", "busybox.tar"), scale: scale, only: only,
		say: func(what string) { fmt.Fprintln(os.Stderr, "bench: "+what) },
	}, err
}

// run measures and writes the page.
func (b *bench) run(ctx context.Context, out string) error {
	page, err := b.measure(ctx)
	if err != nil {
		return err
	}
	if out == "" || b.only != "" {
		_, err = os.Stdout.WriteString(page)
		return err
	}
	return os.WriteFile(out, []byte(page), 0o644) // documentation
}

// bench is shared by all measurements.
type bench struct {
	archive string // contains the image busybox
	scale   float64
	only    string
	say     func(what string)
}

// times returns the number of samples, for a usual number n.
func (b *bench) times(n int) int { return max(1, int(float64(n)*b.scale)) }

// measure takes all measurements and returns the page.
func (b *bench) measure(ctx context.Context) (string, error) {
	if err := b.untilQuiet(ctx); err != nil {
		return "", err
	}
	r := report{before: loadAverage()}
	for _, part := range []struct {
		what string
		take func(context.Context, *report) error
	}{
		{"machine and programs", b.machine},
		{"file to first output", b.starts},
		{"in turns with other programs", b.inTurns},
		{"network and volume", b.extras},
		{"container lifetime", b.lifetimes},
		{"restart and stop", b.restartAndStop},
		{"many pods, memory, idle CPU", b.manyPods},
		{"hundreds of pods", b.hundreds},
		{"probes", b.probes},
		{"probes of many pods", b.probing},
		{"fsyncs", b.fsyncs},
		{"flood of log lines", b.logs},
	} {
		if !strings.Contains(part.what, b.only) {
			continue
		}
		b.say(part.what)
		if err := part.take(ctx, &r); err != nil {
			return "", fmt.Errorf("measure %s: %w", part.what, err)
		}
	}
	r.after = loadAverage()
	return r.page(), nil
}

// quietTime is how long a run waits for other work on the host to end.
const quietTime = 30 * time.Minute

// untilQuiet waits until the load average is below 1. It is an error if it stays higher for quietTime.
func (b *bench) untilQuiet(ctx context.Context) error {
	if b.only != "" {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, quietTime, errors.New("the load average of the host is not below 1"))
	defer cancel()
	for said := false; ; said = true {
		load, err := strconv.ParseFloat(loadAverage(), 64)
		if err == nil && load < 1 {
			return nil
		}
		if !said {
			b.say("wait until the load average is below 1")
		}
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// within runs a measurement with a rig of its own and checks for leftovers.
func (b *bench) within(ctx context.Context, take func(*rig.Rig) error) error {
	r, err := rig.New()
	if err != nil {
		return err
	}
	defer func() {
		if err := r.Close(context.WithoutCancel(ctx)); err != nil {
			b.say("clean up: " + err.Error())
		}
	}()
	if err := take(r); err != nil {
		return err
	}
	if err := r.StopDaemon(ctx); err != nil {
		return err
	}
	left, err := r.Leftovers(ctx)
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("left behind: %s", strings.Join(left, ", ")))
	}
	return err
}
