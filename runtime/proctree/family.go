package proctree

import (
	"maps"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
)

// Family is processes of the host and all that they have started, whatever their namespaces and cgroups are.
type Family struct {
	Leads func(pid int, args []string) bool // whether a process with these arguments leads a family
}

// State reports whether the family has processes, and whether one of them is stopped by a signal.
func (f Family) State() (runs, stopped bool) {
	found := f.processes()
	for _, p := range found {
		stopped = stopped || p.state == 'T'
	}
	return len(found) > 0, stopped
}

// Kill sends SIGKILL to each process of the family. The leaders are stopped first, so that they start no other process. It does not wait
// for their exit.
func (f Family) Kill() {
	for _, p := range f.leaders() {
		p.signal(unix.SIGSTOP)
	}
	for _, p := range f.processes() {
		p.Kill()
	}
}

// leaders returns the leaders of the family.
func (f Family) leaders() map[int]Process { return f.leadersOf(all()) }

func (f Family) leadersOf(list map[int]Process) map[int]Process {
	found := maps.Clone(list)
	maps.DeleteFunc(found, func(pid int, _ Process) bool {
		return !f.Leads(pid, proc.Args(pid))
	})
	return found
}

// processes returns the leaders and their descendants.
func (f Family) processes() map[int]Process {
	rest := all()
	found := f.leadersOf(rest)
	for grown := true; grown; {
		grown = false
		for pid, p := range rest {
			if _, in := found[pid]; in {
				continue
			}
			if _, in := found[p.parent]; in {
				found[pid], grown = p, true
			}
		}
	}
	return found
}

// all returns the processes of the host by PID, without what needs their environment.
func all() map[int]Process {
	found := map[int]Process{}
	pids, _ := proc.List()
	for _, pid := range pids {
		if p, running := readStat(pid); running {
			found[pid] = p
		}
	}
	return found
}
