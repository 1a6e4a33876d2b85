package state

import (
	"strconv"
	"strings"

	"github.com/podstead/podstead/internal/proc"
)

// Owner is the client that a pod was created by.
type Owner struct {
	Session string  `json:"session,omitempty"` // of the `podstead run` that the pod is deleted with
	Keep    bool    `json:"keep,omitempty"`    // completed pods are kept when the session ends
	By      string  `json:"by,omitempty"`      // for people: "podstead run, pid 4711, uid 0"
	Process Process `json:"process,omitzero"`  // of the client
	// systemd unit that starts the pod after each boot, such as podstead@web.service; Process is its main process
	Unit string `json:"unit,omitempty"`
	File string `json:"file,omitempty"` // in the pods directory, which the pod follows; empty: it was created by a client
	// Schedule is the name of the pod whose schedule the pod is a run of; empty: it is none. Scheduled is the time of the schedule, in
	// seconds since 1970; 0: a person has requested the run.
	Schedule  string `json:"schedule,omitempty"`
	Scheduled int64  `json:"scheduled,omitempty"`
	// Orphan marks a pod that only its containers were found of. It is not known who created it, and it ends unless a pod file defines it.
	Orphan bool `json:"orphan,omitempty"`
}

// String describes the owner for people. It contains the PID only while the process is running.
func (o Owner) String() string {
	if o.By == "" || o.Process.Running() {
		return o.By
	}
	name, _, _ := strings.Cut(o.By, ",")
	return name + " (exited)"
}

// Process identifies a process of this boot. The zero Process is one that is not known.
type Process struct {
	PID     int    `json:"pid"`
	Started string `json:"started"` // in clock ticks since boot; a later process may have the same PID
}

// ProcessOf returns the process with a PID, or the zero Process if there is none. A zombie is none.
func ProcessOf(pid int) Process {
	s, err := proc.StatOf(pid)
	if err != nil || !s.Running() {
		return Process{}
	}
	return Process{PID: pid, Started: strconv.FormatUint(s.Start, 10)}
}

// Running reports whether the process is running. A process that is not known counts as running.
func (p Process) Running() bool {
	if p == (Process{}) {
		return true
	}
	return ProcessOf(p.PID) == p
}
