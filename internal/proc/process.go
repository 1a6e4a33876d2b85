package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Stat is fields of proc_pid_stat(5).
type Stat struct {
	State   byte
	Parent  int
	Group   int
	Session int
	Start   uint64 // in ticks since boot, which identifies a process together with its ID until the next boot
	Status  int    // of wait(2), of a zombie
}

// StatOf reads the fields of a process. It works for a zombie.
func StatOf(pid int) (Stat, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Stat{}, err
	}
	return ParseStat(text)
}

// ParseStat reads the fields of a process or a thread from the content of its file.
func ParseStat(text []byte) (s Stat, err error) {
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // the name before it may contain anything
	const last = 50                                                           // exit_code is the 52nd field, the first one here is the 3rd
	if len(fields) < last {
		return s, fmt.Errorf("unexpected format of proc_pid_stat: %d fields", len(fields))
	}
	s.State = fields[0][0]
	for _, number := range []struct {
		field int
		into  *int
	}{{1, &s.Parent}, {2, &s.Group}, {3, &s.Session}, {last - 1, &s.Status}} {
		if *number.into, err = strconv.Atoi(fields[number.field]); err != nil {
			return s, fmt.Errorf("unexpected format of proc_pid_stat: %w", err)
		}
	}
	if s.Start, err = strconv.ParseUint(fields[19], 10, 64); err != nil {
		return s, fmt.Errorf("unexpected format of proc_pid_stat: %w", err)
	}
	return s, nil
}

// Running reports whether the process has not exited. A zombie has.
func (s Stat) Running() bool { return s.State != 'Z' && s.State != 'X' }

// List returns the IDs of the processes that this one sees.
func List() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Args returns the arguments of a process. Those of one that has exited are a single empty one. A process can change its arguments, and
// has those of its parent until it executes a program.
func Args(pid int) []string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}
