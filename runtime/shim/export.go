package shim

import (
	"errors"

	"github.com/podstead/podstead/runtime/cgroup"
)

// This file is what package monitor uses of the shim: the preparation of bundles, the output of containers, and OOM kills.

// ParseOutput is the reverse of [Output.URI]. It returns false for an output with another scheme.
func ParseOutput(uri string) (o Output, ok bool, err error) { return parseOutput(uri) }

// PrepareBundle completes the specification in a bundle with what the engine keeps elsewhere, and creates the mount point of the root file
// system. It can be repeated.
func PrepareBundle(bundle string) error {
	return errors.Join(completeProcess(bundle), placeRoot(bundle))
}

// RemoveRoot unmounts a root file system and removes its mount point, if it is not in the bundle. It succeeds if there is none.
func RemoveRoot(bundle string) error { return removeRoot(bundle) }

// OwnPIDs reports whether the container of a bundle has a PID namespace of its own, so that no process outlives its first one. It is false
// if the specification cannot be read.
func OwnPIDs(bundle string) bool { return ownPIDs(bundle) }

// UseFilter puts the kept seccomp filter for a bundle into its specification. If there is none, keep is not nil: it keeps the one of the
// container, from the file in which crun has compiled it. After an error the specification is complete.
func UseFilter(dir, bundle, program string) (keep func(compiled string) error, err error) {
	return filterStore{Dir: dir}.Use(bundle, program)
}

// PinPID keeps the PID namespace of a process by a bind mount on a file; empty: it does nothing.
func PinPID(pid int, file string) error { return pinPID(uint32(pid), file) }

// Ledger determines whether the kernel OOM-killed a process of a container. One ledger serves the containers of one pod. The zero value is
// usable. Its methods are safe for concurrent use.
type Ledger struct{ ledger oomLedger }

// Memory is what a [Ledger] records of a running container.
type Memory struct{ memory *memory }

// Watch starts to account for a container with this cgroup.
func (l *Ledger) Watch(own cgroup.MemoryGroup) *Memory {
	m := &memory{own: own, pod: own.Parent(), unified: own.Unified()}
	l.ledger.add(m)
	return &Memory{m}
}

// Exited reports whether the kernel OOM-killed a process of a container that exited with this code, and its peak memory usage in bytes, 0
// if unknown. It must be called once for each container, while its cgroup exists if possible.
func (l *Ledger) Exited(m *Memory, code uint32) (killed bool, peak int64, err error) {
	killed, err = l.ledger.exited(m.memory, code)
	if killed {
		peak = max(m.memory.own.MemoryPeak(), m.memory.peak.Load())
	}
	return killed, peak, err
}

// Accounted returns the number of OOM kills of containers that have exited.
func (l *Ledger) Accounted() int64 {
	l.ledger.mu.Lock()
	defer l.ledger.mu.Unlock()
	return l.ledger.accounted
}

// Restore sets the number that an earlier ledger has accounted for.
func (l *Ledger) Restore(accounted int64) {
	l.ledger.mu.Lock()
	defer l.ledger.mu.Unlock()
	l.ledger.accounted = accounted
}

// Notified records an OOM notification of the kernel.
func (m *Memory) Notified() {
	m.memory.notified.Store(true)
	m.memory.peak.Store(m.memory.own.MemoryPeak())
}

// Requested records that a client has requested SIGKILL.
func (m *Memory) Requested() { m.memory.requested.Store(true) }
