package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/podstead/podstead/test/internal/rig"
)

const (
	// settle is the time in which a daemon writes what remains when a command has returned. The garbage collection begins later.
	settle = time.Second
	// collection is the time in which the garbage of a pod has been collected.
	collection = 5 * time.Second
)

// fsyncs counts the system calls that wait for the disk in the lifetime of a pod, and those of the garbage collection after it, if strace
// is installed. Those for the directory for runtime state do not count: it is in memory, unlike that of the benchmark.
func (b *bench) fsyncs(ctx context.Context, r *report) error {
	if _, err := exec.LookPath("strace"); err != nil {
		return nil // reported as not measured
	}
	return b.within(ctx, func(rg *rig.Rig) error {
		file, err := rg.WritePod("true", b.podFile("true", "Never", "true", nil))
		if err != nil {
			return err
		}
		if _, err := rg.Podstead(ctx, "run", file); err != nil {
			return err
		}
		pid, err := rg.DaemonPID(ctx)
		if err != nil {
			return err
		}
		calls := filepath.Join(rg.Dir, "calls")
		trace := exec.CommandContext(ctx, "strace", "--follow-forks", "--decode-pids=comm", "--decode-fds=path", "--output", calls, "-ttt",
			"--trace=fsync,fdatasync,sync,syncfs,msync,sync_file_range", "--attach", strconv.Itoa(pid))
		var stderr bytes.Buffer
		trace.Stderr = &stderr
		if err := trace.Start(); err != nil {
			return err
		}
		err = errors.Join(await(ctx, func() error { return traced(pid) }), elapse(ctx, collection))
		var lives []span
		for range b.times(5) {
			if err != nil {
				break
			}
			l := span{from: time.Now()}
			_, err = rg.Podstead(ctx, "run", file)
			l.to = time.Now().Add(settle)
			err = errors.Join(err, elapse(ctx, collection))
			lives = append(lives, l)
		}
		_ = trace.Process.Signal(syscall.SIGINT)
		_ = trace.Wait() // exits with the signal
		if err != nil {
			return fmt.Errorf("%w: %s", err, stderr.String())
		}
		text, err := os.ReadFile(calls)
		if err != nil {
			return err
		}
		r.fsyncs = countWaits(string(text), rg.RunDir(), lives)
		return nil
	})
}

// span is the time in which a pod exists.
type span struct{ from, to time.Time }

// waits are system calls that wait for the disk, in the lifetimes of pods and in the garbage collections after them.
type waits struct {
	lives int
	alive map[string]int // by program and file
	after int
}

// each returns the mean number of n calls per lifetime.
func (w *waits) each(n int) float64 { return float64(n) / float64(max(1, w.lives)) }

// all returns the mean number of calls in a lifetime.
func (w *waits) all() float64 {
	total := 0
	for _, n := range w.alive {
		total += n
	}
	return w.each(total)
}

// countWaits reads the output of strace, without the calls for the directory for runtime state.
func countWaits(text, runDir string, lives []span) waits {
	w := waits{lives: len(lives), alive: map[string]int{}}
	for line := range strings.Lines(text) {
		before, arguments, call := strings.Cut(line, "(")
		if !call || !strings.HasSuffix(before, "sync") || strings.Contains(arguments, "<"+runDir+"/") {
			continue
		}
		at := instant(before)
		switch i := slices.IndexFunc(lives, func(l span) bool { return at.Before(l.to) }); {
		case i >= 0 && !at.Before(lives[i].from):
			w.alive[program(before)+" of "+object(arguments)]++
		case i != 0:
			w.after++
		}
	}
	return w
}

// instant returns the time in a line of strace; zero: it has none.
func instant(line string) time.Time {
	for field := range strings.FieldsSeq(line) {
		if seconds, err := strconv.ParseFloat(field, 64); err == nil && strings.Contains(field, ".") {
			return time.UnixMicro(int64(seconds * 1e6))
		}
	}
	return time.Time{}
}

// traced returns an error unless every thread of the process is traced.
func traced(pid int) error {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		return err
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			return err
		}
		if strings.Contains(string(text), "TracerPid:\t0\n") {
			return fmt.Errorf("%s: not traced", thread)
		}
	}
	return nil
}

// object returns the kind of file in the arguments of a call.
func object(arguments string) string {
	_, rest, _ := strings.Cut(arguments, "<")
	path, _, _ := strings.Cut(rest, ">")
	switch base := filepath.Base(path); {
	case strings.HasPrefix(base, ".podstead-tmp-"), filepath.Base(filepath.Dir(path)) == "lib":
		return "pod's state"
	case filepath.Ext(base) == ".db":
		return base
	}
	return "other files"
}

// program returns the program in a line of strace. The kernel keeps 15 characters of its name.
func program(line string) string {
	_, rest, _ := strings.Cut(line, "<")
	name, _, _ := strings.Cut(rest, ">")
	switch {
	case name == "podstead":
		return "daemon"
	case strings.HasPrefix(name, "podstead-monit"):
		return "monitor"
	case strings.HasPrefix(name, "runc"):
		return "runc"
	}
	return name
}
