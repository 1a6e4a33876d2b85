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

// fsyncs counts the calls that wait for the disk in the life of a pod, from the command line, where there is a strace.
func (b *bench) fsyncs(ctx context.Context, r *report) error {
	if _, err := exec.LookPath("strace"); err != nil {
		return nil // the page says that it was not measured
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
		var said bytes.Buffer
		trace.Stderr = &said
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
		_ = trace.Wait() // it ends with the status of the signal
		if err != nil {
			return fmt.Errorf("%w: %s", err, said.String())
		}
		text, err := os.ReadFile(calls)
		if err != nil {
			return err
		}
		r.fsyncCalls = map[string]int{}
		for line := range strings.Lines(string(text)) {
			if before, arguments, call := strings.Cut(line, "("); call && strings.HasSuffix(before, "sync") {
				r.fsyncCalls[program(before)+" of "+object(arguments)]++
			}
		}
		return nil
	})
}

// traced is an error unless somebody traces every thread of the process.
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
			return fmt.Errorf("%s: nobody traces it", thread)
		}
	}
	return nil
}

// object says which file the arguments of a call name.
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

// program is the name of the program in a line of strace, of which the kernel keeps 15 characters.
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
