package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/test/internal/rig"
)

const (
	// floodTime is how long lines are timed with and without a flood.
	floodTime = 5 * time.Second
	ticker    = "ticker"
	flood     = "flood"
)

// flooded are the effects of a container that writes as fast as it can.
type flooded struct {
	rate         float64 // MB written each second
	disk         float64 // MiB, the most that its log used
	calm, flood  series  // from the time of a line in the log of another pod until a follower has it
	asks, asksIn series  // a request to the daemon, without and with the flood
	lines        int     // of the other pod that a follower missed
}

// logs measures what a flood of lines in one pod costs the disk, the daemon and the log of another pod.
func (b *bench) logs(ctx context.Context, r *report) error {
	return b.within(ctx, func(rg *rig.Rig) error {
		pods := map[string]string{
			ticker: "i=0; while :; do echo $i; i=$((i + 1)); sleep 0.01; done",
			flood:  "exec yes a line of a container that writes as fast as it can, with about as many bytes as others",
		}
		if _, err := rg.Podstead(ctx, "get"); err != nil {
			return err
		}
		if _, err := rg.Create(ctx, ticker, b.podFile(ticker, "Always", pods[ticker], nil)); err != nil {
			return err
		}
		if err := r.flooded.time(ctx, rg, &r.flooded.calm, &r.flooded.asks, nil); err != nil {
			return err
		}
		if _, err := rg.Create(ctx, flood, b.podFile(flood, "Always", pods[flood], nil)); err != nil {
			return err
		}
		err := r.flooded.time(ctx, rg, &r.flooded.flood, &r.flooded.asksIn, func() error { return r.flooded.measure(rg) })
		if err != nil {
			return err
		}
		if err := r.flooded.written(ctx, rg); err != nil {
			return err
		}
		_, err = rg.Podstead(ctx, "delete", ticker, flood, "--force")
		return err
	})
}

// time follows the log of the ticker. Every 20 lines it sends a request to the daemon, and calls each.
func (f *flooded) time(ctx context.Context, rg *rig.Rig, delay, asks *series, each func() error) error {
	ctx, cancel := context.WithTimeout(ctx, floodTime)
	defer cancel()
	none, n := 0, 0
	q := client.OutputQuery{Follow: true, Tail: &none, Skipped: func(_ string, s api.Skipped) { f.lines += int(s.Lines) }}
	for l, err := range rg.Client().Output(ctx, ticker, q) {
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return err
		}
		delay.since(l.Time)
		if n++; n%20 != 0 {
			continue
		}
		begun := time.Now()
		if _, err := rg.Client().Pods(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		asks.since(begun)
		if each != nil {
			if err := each(); err != nil {
				return err
			}
		}
	}
	if n < 100 {
		return fmt.Errorf("%d lines of pod %s in %v", n, ticker, floodTime)
	}
	return nil
}

// measure measures the files of the flood.
func (f *flooded) measure(rg *rig.Rig) error {
	files, err := crilog.DiskFiles(rg.LogDir())
	used := int64(0)
	for i := range files {
		if strings.HasPrefix(files[i].Pod, flood) {
			used += files[i].Size
		}
	}
	f.disk = max(f.disk, mib(used))
	return err
}

// written finds how much the flood has written, from the newest file that has the number of bytes before it.
func (f *flooded) written(ctx context.Context, rg *rig.Rig) error {
	dirs, err := filepath.Glob(filepath.Join(rg.LogDir(), flood+"_*", "*"))
	if err != nil || len(dirs) != 1 {
		return fmt.Errorf("find the log of pod %s: %v, %w", flood, dirs, err)
	}
	first, err := bytesBefore(ctx, dirs[0])
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := elapse(ctx, floodTime); err != nil {
		return err
	}
	last, err := bytesBefore(ctx, dirs[0])
	f.rate = float64(last-first) / 1e6 / time.Since(begun).Seconds()
	return err
}

// bytesBefore returns how many bytes were written before the current file of the log in a directory.
func bytesBefore(ctx context.Context, dir string) (n int64, err error) {
	err = await(ctx, func() error {
		text, err := os.ReadFile(filepath.Join(dir, "0.log"))
		if errors.Is(err, fs.ErrNotExist) {
			return err // rotation in progress
		}
		if err != nil {
			return err
		}
		_, rest, found := strings.Cut(string(text[:min(len(text), 200)]), ":bytes=")
		if _, scanErr := fmt.Sscan(rest, &n); !found || scanErr != nil {
			return fmt.Errorf("the log in %s was not rotated", dir)
		}
		return nil
	})
	return n, err
}

// logs writes the section about logs.
func (r *report) logs(b *strings.Builder) {
	f := &r.flooded
	b.WriteString("## Logs\n\nOne pod writes lines as fast as it can, another one a line every 10 ms. The delay of a line is the time " +
		"from its time stamp until a follower has it.\n\n")
	if f.rate == 0 {
		b.WriteString("Not measured.\n\n")
		return
	}
	fmt.Fprintf(b, "The pod writes %s MB/s. Its log uses at most %s MiB. The follower of the other pod missed %d lines.\n\n",
		number(f.rate), number(f.disk), f.lines)
	b.WriteString("| ms | median | minimum | maximum | samples |\n| --- | --- | --- | --- | --- |\n")
	for _, row := range []struct {
		what string
		s    *series
	}{
		{"delay of a line", &f.calm},
		{"delay of a line, with the flood", &f.flood},
		{"list of pods", &f.asks},
		{"list of pods, with the flood", &f.asksIn},
	} {
		fmt.Fprintf(b, "| %s | %s |\n", row.what, row.s.cells())
	}
	fmt.Fprintf(b, "\nRatio of the medians with and without the flood: %s for the delay of a line, %s for the list of pods.\n\n",
		number(f.flood.median()/f.calm.median()), number(f.asksIn.median()/f.asks.median()))
}
