package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/podstead/podstead/test/internal/rig"
)

// fsyncs counts the system calls that wait for the disk in the lifetime of a pod, if strace is installed. Those for the directory for runtime
// state do not count: it is in memory, unlike that of the benchmark.
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
		trace := exec.CommandContext(ctx, "strace", "--follow-forks", "--decode-pids=comm", "--decode-fds=path", "--output", calls,
			"--trace=fsync,fdatasync,sync,syncfs,msync,sync_file_range", "--attach", strconv.Itoa(pid))
		var stderr bytes.Buffer
		trace.Stderr = &stderr
		if err := trace.Start(); err != nil {
			return err
		}
		err = await(ctx, func() error { return traced(pid) })
		for range b.times(5) {
			if err != nil {
				break
			}
			_, err = rg.Podstead(ctx, "run", file)
			r.fsyncRuns++
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
		r.fsyncCalls = map[string]int{}
		for line := range strings.Lines(string(text)) {
			before, arguments, call := strings.Cut(line, "(")
			if call && strings.HasSuffix(before, "sync") && !strings.Contains(arguments, "<"+rg.RunDir()+"/") {
				r.fsyncCalls[program(before)+" of "+object(arguments)]++
			}
		}
		return nil
	})
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
	case strings.HasPrefix(name, "containerd-shim"):
		return "shim"
	case strings.HasPrefix(name, "runc"):
		return "runc"
	}
	return name
}
