package monitor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
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

// isProcess reports whether a process, running or zombie, is the one that was started at this time.
func isProcess(pid int, start uint64) bool {
	s, err := proc.StatOf(pid)
	return err == nil && s.Start == start
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
	s, err := proc.StatOf(pid)
	if err != nil || s.Start != start || s.State != 'Z' {
		return noStatus
	}
	return s.Status
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

// bootTicks returns the time since boot in the unit of proc.Stat.Start.
func bootTicks() (uint64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, fmt.Errorf("read boot time: %w", err)
	}
	return uint64(t.Nano() / (1e9 / ticksPerSecond)), nil
}
