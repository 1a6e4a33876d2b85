package proctree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
)

// MarkVariable is the environment variable that marks the processes of a command. It must be the last variable of the command.
const MarkVariable = "PODSTEAD_EXEC"

// maxEnviron limits how many bytes of an environment are searched for the mark.
const maxEnviron = 4 << 20

// Process is a running process.
type Process struct {
	PID, Session int
	Mark         string // the value of [MarkVariable]; "" if it is not set
	bare         bool   // the environment is empty; so it is for a moment while the process executes another program
	parent       int
	state        byte   // as in [proc.Stat]
	started      uint64 // as in [proc.Stat]; identifies the process together with the PID
}

// String returns the PID.
func (p Process) String() string { return strconv.Itoa(p.PID) }

// Kill sends SIGKILL to the process, unless its PID has been reused.
func (p Process) Kill() { p.signal(unix.SIGKILL) }

// signal sends a signal to the process, unless its PID has been reused.
func (p Process) signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return // it has exited
	}
	defer unix.Close(fd)
	if now, running := readStat(p.PID); running && now.started == p.started {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0) // it may have exited by itself
	}
}

// ErrExited is the error of [While] for a process that has exited.
var ErrExited = errors.New("the process has exited")

// While calls do, which may use the ID of a process of a cgroup. Another process can get the ID until there is a descriptor of the process,
// therefore the process must be in the cgroup, and run after that was checked. Otherwise the error is [ErrExited], and do may have used
// another process.
func While(cgroup string, pid int, do func() error) error {
	process, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return ErrExited
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(process)
	if err := do(); err != nil {
		return err
	}
	list, err := List(cgroup)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(p Process) bool { return p.PID == pid }) || !isRunning(process) {
		return ErrExited
	}
	return nil
}

// isRunning reports whether the process of a pidfd has not exited.
func isRunning(pidfd int) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n == 0
		}
	}
}

// NamespaceOf returns the PID namespace of a process in the form of its link in /proc, such as pid:[4026532567]. It is "" for a process in
// the namespace of this one, and for one that does not exist.
func NamespaceOf(pid int) string {
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil || pid <= 0 {
		return ""
	}
	name, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns/pid"))
	if err != nil || name == own {
		return ""
	}
	return name
}

// Contained returns the PID namespace of a container by its first process, 0 if there is none. It is "" if the process has exited: the
// kernel has then killed the others. It is an error if the process runs and its namespace is that of this one, or is not known.
func Contained(first int) (string, error) {
	name := NamespaceOf(first)
	if _, running := readStat(first); name == "" && running {
		return "", fmt.Errorf("process %d runs, and no PID namespace of a container is found for it", first)
	}
	return name, nil
}

// Mounting returns the PID namespaces, apart from that of this process, of processes with a mount of a file or directory whose path in its
// file system contains a text. See proc_pid_mountinfo(5).
func Mounting(text string) ([]string, error) {
	all, err := proc.List()
	var names []string
	for _, pid := range all {
		if name := NamespaceOf(pid); name != "" && !slices.Contains(names, name) && mounts(pid, text) {
			names = append(names, name)
		}
	}
	return names, err
}

// mounts reports whether a process has a mount of a path that contains a text. One that has exited has none.
func mounts(pid int, text string) bool {
	list, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "mountinfo"))
	for line := range strings.Lines(string(list)) {
		const root = 3 // ID, parent, device, path in the file system, mount point
		if fields := strings.Fields(line); len(fields) > root && strings.Contains(fields[root], text) {
			return true
		}
	}
	return false
}

// listNamespace returns the running processes of a PID namespace. Processes that this one must not inspect are in none that it knows.
func listNamespace(name string) ([]Process, error) {
	all, err := proc.List()
	var list []Process
	for _, pid := range all {
		if NamespaceOf(pid) != name {
			continue
		}
		if found, running := read(pid); running {
			list = append(list, found)
		}
	}
	return list, err
}

// isNamespace reports whether a text has the form of [NamespaceOf].
func isNamespace(text string) bool { return strings.HasPrefix(text, "pid:[") }

// List returns the running processes of a cgroup and its descendants, or of a PID namespace in the form of [NamespaceOf]. What does not
// exist has none.
func List(cgroup string) ([]Process, error) {
	switch {
	case cgroup == "":
		return nil, nil
	case isNamespace(cgroup):
		return listNamespace(cgroup)
	}
	var list []Process
	err := filepath.WalkDir(cgroup, func(dir string, entry fs.DirEntry, err error) error {
		if isRemoved(err) {
			return nil
		}
		if err != nil || !entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if isRemoved(err) || errors.Is(err, unix.EOPNOTSUPP) { // a threaded cgroup: its processes are in its parent
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
			if found, running := read(pid); running {
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

// isRemoved reports whether a cgroup or a process does not exist, possibly because it was removed while it was read.
func isRemoved(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ESRCH)
}

// read reads a process from /proc. It reports false for one that has exited.
func read(pid int) (p Process, running bool) {
	p, running = readStat(pid)
	if running {
		p.Mark, p.bare = readMark(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	}
	return p, running
}

// readStat is read without the mark.
func readStat(pid int) (p Process, running bool) {
	s, err := proc.StatOf(pid)
	if err != nil || !s.Running() {
		return p, false
	}
	return Process{PID: pid, Session: s.Session, parent: s.Parent, state: s.State, started: s.Start}, true
}

// readMark returns the mark in an environment file, and whether the file is empty. If it cannot be read, the process has exited and the
// mark is empty.
func readMark(path string) (mark string, empty bool) {
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxEnviron)) // use what was read before the process exited
	for variable := range bytes.SplitSeq(text, []byte{0}) {
		if value, ok := bytes.CutPrefix(variable, []byte(MarkVariable+"=")); ok {
			return string(value), false
		}
	}
	return "", len(text) == 0
}
