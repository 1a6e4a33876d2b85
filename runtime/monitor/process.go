package monitor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// noStatus is the status of a process that is not known.
const noStatus = -1

// retry calls do until it is not interrupted by a signal.
func retry[T any](do func() (T, error)) (T, error) {
	for {
		v, err := do()
		if !errors.Is(err, unix.EINTR) {
			return v, err
		}
	}
}

// childInfo is what siginfo_t has for SIGCHLD.
type childInfo struct{ code, pid, status int32 }

// wait calls waitid without blocking. pid is 0 if no such child has exited. With unix.WNOWAIT the child stays a zombie.
func wait(idType, id, flags int) (childInfo, error) {
	return retry(func() (childInfo, error) {
		var info [32]int32 // siginfo_t: signo, errno, code, and a union, which is aligned to a pointer
		err := unix.Waitid(idType, id, (*unix.Siginfo)(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOHANG|flags, nil)
		const union = 3 + int(unsafe.Sizeof(uintptr(0))/8)
		return childInfo{code: info[2], pid: info[union], status: info[union+2]}, err
	})
}

// exitCode returns the exit code, or 128 plus the number of the signal that terminated the process.
func (i childInfo) exitCode() int {
	const exited = 1 // CLD_EXITED
	if i.code == exited {
		return int(i.status)
	}
	return 128 + int(i.status)
}

// codeOf returns the exit code for a status of wait(2).
func codeOf(status int) int {
	if s := unix.WaitStatus(status); s.Signaled() {
		return 128 + int(s.Signal())
	}
	return unix.WaitStatus(status).ExitStatus()
}

// processStat is fields of proc_pid_stat(5).
type processStat struct {
	state   byte
	parent  int
	session int
	start   uint64 // in ticks since boot, which identifies a process together with its ID
	status  int    // of wait(2), of a zombie
}

// statOf reads the fields of a process. It works for a zombie.
func statOf(pid int) (s processStat, err error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return s, err
	}
	return parseStat(text)
}

func parseStat(text []byte) (s processStat, err error) {
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // the name before it may contain spaces
	const last = 50                                                           // exit_code is the 52nd field, the first one here is the 3rd
	if len(fields) < last {
		return s, fmt.Errorf("unexpected format of proc_pid_stat: %d fields", len(fields))
	}
	s.state = fields[0][0]
	for i, into := range map[int]*int{1: &s.parent, 3: &s.session, last - 1: &s.status} {
		if *into, err = strconv.Atoi(fields[i]); err != nil {
			return s, fmt.Errorf("unexpected format of proc_pid_stat: %w", err)
		}
	}
	if s.start, err = strconv.ParseUint(fields[19], 10, 64); err != nil {
		return s, fmt.Errorf("unexpected format of proc_pid_stat: %w", err)
	}
	return s, nil
}

// isProcess reports whether a process, running or zombie, is the one that was started at this time.
func isProcess(pid int, start uint64) bool {
	s, err := statOf(pid)
	return err == nil && s.start == start
}

// openProcess opens a process by its ID and start time. The error is [unix.ESRCH] if there is no such process.
func openProcess(pid int, start uint64) (pidfd int, err error) {
	if pid <= 0 {
		return -1, unix.ESRCH
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, err
	}
	if !isProcess(pid, start) {
		return -1, errors.Join(unix.ESRCH, unix.Close(fd))
	}
	return fd, nil
}

// infoStatus returns the status of a process that was reaped by anyone, from Linux 6.15 on (PIDFD_GET_INFO with PIDFD_INFO_EXIT). It
// returns noStatus if the kernel does not know it.
func infoStatus(pidfd int) int {
	const (
		getInfo  = 0xc040ff0b // _IOWR(PIDFS_IOCTL_MAGIC, 11, 64 bytes)
		infoExit = 1 << 3
	)
	var info struct { // struct pidfd_info of the first version
		mask uint64
		_    [13]uint32
		code int32
	}
	info.mask = infoExit
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(pidfd), getInfo, uintptr(unsafe.Pointer(&info)))
	if errno != 0 || info.mask&infoExit == 0 {
		return noStatus
	}
	return int(info.code)
}

// zombieStatus returns the status of a process that has exited and was not reaped, otherwise noStatus. The kernel shows 0 in its place to
// those who must not inspect the process, such as a monitor in another user namespace. They cannot read its namespaces either.
func zombieStatus(pid int, start uint64) int {
	if _, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/user"); err != nil {
		return noStatus
	}
	s, err := statOf(pid)
	if err != nil || s.start != start || s.state != 'Z' {
		return noStatus
	}
	return s.status
}

// childrenOf returns the children of a process, with zombies.
func childrenOf(pid int) []int {
	base := "/proc/" + strconv.Itoa(pid) + "/task"
	tasks, err := os.ReadDir(base)
	if err != nil {
		return nil
	}
	var all []int
	for _, t := range tasks {
		text, err := os.ReadFile(base + "/" + t.Name() + "/children")
		if err != nil {
			continue // the thread has exited
		}
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(all, child)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ticksPerSecond is USER_HZ, on every architecture of Linux that Go supports.
const ticksPerSecond = 100

// bootTicks returns the time since boot in the unit of processStat.start.
func bootTicks() (uint64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, fmt.Errorf("read boot time: %w", err)
	}
	return uint64(t.Nano() / (1e9 / ticksPerSecond)), nil
}
