package daemon

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// restDelay is the time from a change of the pods to the return of unused memory. Starts allocate much more than what the daemon keeps.
	restDelay = 3 * time.Second
	// minUnused is the number of bytes from which unused memory is worth the CPU time of a garbage collection.
	minUnused = 4 << 20
	// restPercent makes the heap at most half as large again as what is in use. busyPercent saves CPU time while pods change: with
	// restPercent, collections take 30 % of the CPU time that the daemon needs to start pods. A daemon whose pods change all the time saves
	// memory instead after busyLimit.
	restPercent, busyPercent = 50, 100
	busyLimit                = time.Minute
)

// setGCPercent sets the target of the garbage collector. The environment variable GOGC has precedence.
func setGCPercent(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// limitMemory sets the soft memory limit of the Go runtime to half of the memory limit of the daemon: the rest is for the kernel, for
// example for volumes in memory that the daemon writes. The environment variable GOMEMLIMIT has precedence.
func limitMemory(limit int64) {
	if limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit / 2)
	}
}

// returnMemory returns unused memory to the host when pods have not changed for some seconds, if it is worth it, until ctx ends. The Go
// runtime itself keeps the memory of an idle program for minutes. It calls percent with restPercent then, and with busyPercent at the next
// change of a pod, up to [busyLimit].
func returnMemory(ctx context.Context, changed func() <-chan struct{}, unused func() uint64, free func(), percent func(int)) {
	rest := time.NewTimer(restDelay)
	defer rest.Stop()
	busy := time.NewTimer(busyLimit)
	defer busy.Stop()
	for {
		change := changed()
		select {
		case <-change:
			rest.Reset(restDelay)
		case <-busy.C:
			percent(restPercent)
		case <-rest.C:
			percent(restPercent)
			if unused() >= minUnused {
				free()
			}
			select {
			case <-change:
				percent(busyPercent)
				busy.Reset(busyLimit)
				rest.Reset(restDelay)
			case <-ctx.Done():
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// unusedMemory returns the number of bytes that a garbage collection would return at least: free memory of the heap, and what was allocated
// since the last collection.
func unusedMemory() uint64 {
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(s)
	free, objects, live := s[0].Value.Uint64(), s[1].Value.Uint64(), s[2].Value.Uint64()
	return free + objects - min(objects, live)
}
