package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// processors measures what uses the processors of the host: this run, and anything else.
type processors struct {
	seconds map[string]float64 // processor time of processes since the start, by kind
	last    map[string]float64 // that of each process since its own start, by PID and start time
	idle    float64            // seconds of all processors at the start, since boot
}

// sampleInterval is short enough for the programs that use the most. A sample costs some milliseconds.
const sampleInterval = time.Second

// ticksPerSecond is USER_HZ, which is 100 on all architectures of Go.
const ticksPerSecond = 100

func newProcessors() *processors {
	p := &processors{seconds: map[string]float64{}, idle: idleSeconds()}
	p.sample()
	clear(p.seconds)
	return p
}

// idleSeconds returns the seconds that all processors were idle or waited for a disk, since boot; 0 if they cannot be read.
func idleSeconds() float64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line) // cpu user nice system idle iowait ...
	if len(fields) < 6 {
		return 0
	}
	return (number(fields[4]) + number(fields[5])) / ticksPerSecond
}

// number returns 0 for what is not a number.
func number(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

// watch samples until the context is done.
func (p *processors) watch(ctx context.Context) {
	t := time.NewTicker(sampleInterval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			p.sample()
		case <-ctx.Done():
			return
		}
	}
}

// maxProcesses is the number of processes of the host from which samples would cost too much.
const maxProcesses = 2000

// sample adds what each process, with all its threads, has used since the last sample. It misses what a process uses between the last
// sample and its exit: see shares.
func (p *processors) sample() {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	if len(stats) > maxProcesses {
		return
	}
	now := make(map[string]float64, len(stats))
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the process has exited
		}
		id, name, used, ok := parseStat(string(text))
		if !ok {
			continue
		}
		now[id] = used
		if d := used - p.last[id]; d > 0 {
			p.seconds[kind(name)] += d
		}
	}
	p.last = now
}

// parseStat reads /proc/PID/stat (proc(5)). The ID has the start time, since the kernel uses a PID again.
func parseStat(text string) (id, name string, seconds float64, ok bool) {
	pid, rest, _ := strings.Cut(text, " (")
	end := strings.LastIndex(rest, ") ")
	if end < 0 {
		return "", "", 0, false
	}
	fields := strings.Fields(rest[end+2:]) // from field 3, the state
	if len(fields) < 20 {
		return "", "", 0, false
	}
	user, system, start := fields[11], fields[12], fields[19]
	return pid + " " + start, rest[:end], (number(user) + number(system)) / ticksPerSecond, true
}

// kind returns what a process does, by its name. The kernel keeps 15 bytes of it.
func kind(name string) string {
	switch {
	case slices.Contains([]string{"compile", "link", "asm", "vet", "go", "cgo"}, name):
		return "compiling"
	case strings.HasPrefix(name, "qemu"):
		return "virtual machine"
	case strings.HasPrefix(name, "podstead"), strings.HasPrefix(name, "containerd-shim"):
		if strings.HasSuffix(name, ".test") {
			return "tests"
		}
		return "podstead"
	case strings.HasPrefix(name, "runc"), strings.HasPrefix(name, "crun"):
		return "OCI runtime"
	case strings.HasSuffix(name, ".test"):
		return "tests"
	case strings.HasPrefix(name, "systemd"):
		return "systemd"
	}
	return "other"
}

// shares returns what the processors did in a time, as percentages of all that they could do, such as "compiling 40 %, waiting 60 %".
// "short" is what is in no sample: programs that run for less than sampleInterval, such as those of probes, and the kernel's own work.
func (p *processors) shares(took time.Duration) string {
	all := took.Seconds() * float64(runtime.NumCPU())
	percent := map[string]float64{"waiting": 100 * min(1, max(0, (idleSeconds()-p.idle)/all))}
	known := percent["waiting"]
	for kind, seconds := range p.seconds {
		percent[kind] = 100 * seconds / all
		known += percent[kind]
	}
	percent["short"] = max(0, 100-known)
	kinds := slices.SortedFunc(maps.Keys(percent), func(a, b string) int {
		return cmp.Or(cmp.Compare(percent[b], percent[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, kind := range kinds {
		if percent[kind] >= 1 {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", kind, percent[kind]))
		}
	}
	return strings.Join(parts, ", ")
}
