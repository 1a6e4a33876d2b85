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

// processors samples what runs on the processors of the host, of this run and of anything else.
type processors struct {
	running map[string]int // samples of running threads, by kind
	idle    float64        // seconds of all processors at the start, since boot
}

// sampleInterval gives hundreds of samples in a run of minutes. A sample costs some milliseconds.
const sampleInterval = time.Second

// ticksPerSecond is USER_HZ, which is 100 on all architectures of Go.
const ticksPerSecond = 100

func newProcessors() *processors { return &processors{map[string]int{}, idleSeconds()} }

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
	idle, _ := strconv.ParseFloat(fields[4], 64)
	wait, _ := strconv.ParseFloat(fields[5], 64)
	return (idle + wait) / ticksPerSecond
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

// sample counts the processes that run now.
func (p *processors) sample() {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	if len(stats) > maxProcesses {
		return
	}
	own := strconv.Itoa(os.Getpid())
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the process has exited
		}
		pid, rest, _ := strings.Cut(string(text), " (")
		end := strings.LastIndex(rest, ") ")
		if end >= 0 && strings.HasPrefix(rest[end:], ") R") && pid != own {
			p.running[kind(rest[:end])]++
		}
	}
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
	}
	return "other"
}

// shares returns what the processors did in a time, as percentages of all that they could do, such as "compiling 40 %, waiting 60 %".
func (p *processors) shares(took time.Duration) string {
	waiting := min(1, max(0, (idleSeconds()-p.idle)/(took.Seconds()*float64(runtime.NumCPU()))))
	total := 0
	for _, n := range p.running {
		total += n
	}
	percent := map[string]float64{"waiting": 100 * waiting}
	for kind, n := range p.running {
		percent[kind] += 100 * (1 - waiting) * float64(n) / float64(total)
	}
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
