package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxEnviron bounds how much of a process's environment is searched for a mark, in bytes. The mark is the last variable
// that a command is started with, behind those of its container.
const maxEnviron = 4 << 20

// tree is the processes of a container that one command has started, directly or not. They are told by what a process
// takes over from the one that starts it: the environment, the session, and the parent. One that has got rid of all
// three is none of them any more.
type tree struct {
	cgroup  string                 // the folder of the container's cgroup, in a hierarchy that lists its processes
	belongs func(mark string) bool // whether a process with this mark in its environment is one
	leader  int                    // the first process, which leads a session; 0: not known
}

// kill sends SIGKILL to each process until none is left.
func (t tree) kill(ctx context.Context) error {
	tick := time.NewTicker(goneInterval)
	defer tick.Stop()
	for {
		members, err := t.members()
		if err != nil {
			return err
		}
		if len(members) == 0 {
			return nil
		}
		for _, p := range members {
			p.kill()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("end processes %v: %w", members, ctx.Err())
		}
	}
}

// members are the processes of the tree that live.
func (t tree) members() ([]process, error) {
	rest, err := processesOf(t.cgroup)
	if err != nil {
		return nil, err
	}
	var members []process
	in := map[int]bool{}
	if t.leader != 0 {
		in[t.leader] = true // a parent also when it has just ended
	}
	for grown := true; grown; {
		grown = false
		rest = slices.DeleteFunc(rest, func(p process) bool {
			if !in[p.pid] && !in[p.parent] && (t.leader == 0 || p.session != t.leader) && !t.belongs(p.mark) {
				return false
			}
			members = append(members, p)
			in[p.pid], grown = true, true
			return true
		})
	}
	return members, nil
}

// formerMarks lists the commands in a cgroup that were started by another daemon and are to end.
func formerMarks(cgroup, instance string) ([]mark, error) {
	processes, err := processesOf(cgroup)
	if err != nil {
		return nil, err
	}
	var marks []mark
	for _, p := range processes {
		m, ok := parseMark(p.mark)
		if ok && m.instance != instance && (m.limited || p.session == p.pid) && !slices.Contains(marks, m) {
			marks = append(marks, m)
		}
	}
	return marks, nil
}

// parseMark is the reverse of [mark.String].
func parseMark(text string) (mark, bool) {
	parts := strings.Split(text, "-")
	if len(parts) != 3 {
		return mark{}, false
	}
	number, err := strconv.ParseUint(parts[1], 10, 64)
	m := mark{instance: parts[0], number: number, limited: parts[2] == "probe"}
	return m, err == nil && m.String() == text
}

// process is what is looked at of a process.
type process struct {
	pid, parent, session int
	started              string // in the kernel's ticks; with the number, it is the process's identity
	mark                 string // "" without
}

// String is what a person needs to find the process.
func (p process) String() string { return strconv.Itoa(p.pid) }

// kill sends SIGKILL to the process, if its number means the same process still.
func (p process) kill() {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return // it has ended
	}
	defer unix.Close(fd)
	if now, lives := look(p.pid); lives && now.started == p.started {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // it may have ended by itself
	}
}

// processesOf lists the living processes of a cgroup and those below. One that is gone has none.
func processesOf(cgroup string) ([]process, error) {
	var list []process
	err := filepath.WalkDir(cgroup, func(dir string, entry fs.DirEntry, err error) error {
		if isGone(err) {
			return nil
		}
		if err != nil || !entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if isGone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for p := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(p)
			if err != nil || pid <= 0 { // 0 is a process of another PID namespace
				continue
			}
			if found, lives := look(pid); lives {
				list = append(list, found)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return list, nil
}

// isGone reports whether a cgroup or a process was removed, maybe while it was read.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ESRCH)
}

// look reads what there is to know of a process; lives is false for one that has ended.
func look(pid int) (p process, lives bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return p, false
	}
	// pid (name) state parent group session …, where the name may hold anything; the start is field 22 of proc(5).
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return p, false
	}
	p.pid = pid
	p.parent, _ = strconv.Atoi(fields[1]) // digits, by proc(5)
	p.session, _ = strconv.Atoi(fields[3])
	p.started = fields[19]
	p.mark = markOf(filepath.Join(dir, "environ"))
	return p, true
}

// markOf finds the mark in an environment. None is found in one that cannot be read: the process has ended.
func markOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxEnviron)) // what was read until it ended
	for variable := range bytes.SplitSeq(text, []byte{0}) {
		if value, ok := bytes.CutPrefix(variable, []byte(markVariable+"=")); ok {
			return string(value)
		}
	}
	return ""
}
