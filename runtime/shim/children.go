package shim

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ticksPerSecond is the unit of times in /proc, USER_HZ, on every architecture of Linux that Go supports.
const ticksPerSecond = 100

// exitedChild returns the process ID of a child that has exited, and leaves it a zombie. It returns 0 if there is none. The arguments are
// the first two of waitid(2).
func exitedChild(idType, id int) (int, error) {
	// The start of siginfo_t, as the kernel fills it for SIGCHLD on 64-bit machines.
	var info struct {
		signo, errno, code, _ int32
		pid                   int32
		_                     [108]byte
	}
	_, err := retry(func() (int, error) {
		return 0, unix.Waitid(idType, id, (*unix.Siginfo)(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	})
	if errors.Is(err, unix.ECHILD) {
		return 0, nil
	}
	return int(info.pid), err
}

// retry calls do until it is not interrupted by a signal.
func retry(do func() (int, error)) (int, error) {
	for {
		n, err := do()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// children returns the process IDs of the children of this process.
func children() []int {
	var all []int
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if st, err := stat(pid); err == nil && st[1] == strconv.Itoa(os.Getpid()) {
			all = append(all, pid)
		}
	}
	return all
}

// bootTime returns the time since boot in ticks.
func bootTime() (int64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, fmt.Errorf("read boot time: %w", err)
	}
	return t.Nano() / (1e9 / ticksPerSecond), nil
}

// startTime returns when a process was started, in ticks since boot. It also works for a zombie.
func startTime(pid int) (int64, error) {
	st, err := stat(pid)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(st[19], 10, 64)
}

// stat returns the fields of proc_pid_stat(5) from the third, the state, to the start time.
func stat(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // the name before it may contain spaces
	if len(fields) < 20 {
		return nil, fmt.Errorf("unexpected format of /proc/%d/stat", pid)
	}
	return fields[:20], nil
}
