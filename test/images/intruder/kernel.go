package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelAttempts are attempts on host-wide kernel state and on other processes. If they succeed they change nothing: they set what is
// already set, or have invalid arguments that the kernel checks after the permission.
var kernelAttempts = map[string]attempt{
	"mount": words(2, mount),
	"remount": words(1, func(w []string) (string, error) {
		return "", unix.Mount("", w[0], "", unix.MS_REMOUNT|unix.MS_BIND, "")
	}),
	"unmount":    words(1, func(w []string) (string, error) { return "", unix.Unmount(w[0], unix.MNT_DETACH) }),
	"unshare":    words(1, unshare),
	"enter":      words(1, enter),
	"new-fs":     words(1, newFS),
	"open-tree":  words(1, openTree),
	"signal":     words(1, signalTo),
	"trace":      words(1, trace),
	"peek":       words(1, peek),
	"nice":       words(0, func([]string) (string, error) { return "", unix.Setpriority(unix.PRIO_PROCESS, 0, -20) }),
	"hostname":   words(0, func([]string) (string, error) { return "", unix.Sethostname([]byte("intruder")) }),
	"clock":      words(0, clock),
	"kernel-log": words(0, kernelLog),
	"reboot":     words(0, func([]string) (string, error) { return "", unix.Reboot(unix.LINUX_REBOOT_CMD_CAD_OFF) }),
	"swap-on":    words(1, swapOn),
	"add-key":    words(0, addKey),
	"keyring":    words(0, keyring),
	"shared":     words(1, shared),
	"module":     words(0, func([]string) (string, error) { return "", unix.InitModule([]byte("no module"), "") }),
	"kexec":      words(0, raw(unix.SYS_KEXEC_LOAD, 0, 0, ^uintptr(0))),
	"bpf":        words(0, raw(unix.SYS_BPF, ^uintptr(0)>>1, 0, 0)),
	"perf":       words(0, raw(unix.SYS_PERF_EVENT_OPEN, 0, ^uintptr(0), ^uintptr(0))),
	"userfault":  words(0, raw(unix.SYS_USERFAULTFD, 0, 0, 0)),
	"uring":      words(0, raw(unix.SYS_IO_URING_SETUP, 1, 0, 0)),
	"fanotify":   words(0, raw(unix.SYS_FANOTIFY_INIT, 0, 0, 0)),
	"accounting": words(0, raw(unix.SYS_ACCT, 0, 0, 0)),
	"quota":      words(0, raw(unix.SYS_QUOTACTL, 0, 0, 0)),
	"pivot":      words(0, raw(unix.SYS_PIVOT_ROOT, 0, 0, 0)),
}

// raw makes a system call with these arguments. The second argument is 0.
func raw(number, a, c, d uintptr) attempt {
	return func([]string) (string, error) {
		fd, _, errno := unix.Syscall6(number, a, 0, c, d, 0, 0)
		if errno != 0 {
			return "", errno
		}
		return "", unix.Close(int(fd))
	}
}

// mount mounts a file system of a type ("cgroup:memory" has an option) at a directory that it creates.
func mount(w []string) (string, error) {
	if err := os.MkdirAll(w[1], 0o700); err != nil {
		return "", err
	}
	kind, option := w[0], ""
	for i, c := range kind {
		if c == ':' {
			kind, option = w[0][:i], w[0][i+1:]
			break
		}
	}
	return "", unix.Mount("none", w[1], kind, 0, option)
}

var namespaces = map[string]int{
	"user": unix.CLONE_NEWUSER, "mount": unix.CLONE_NEWNS, "net": unix.CLONE_NEWNET, "pid": unix.CLONE_NEWPID,
	"cgroup": unix.CLONE_NEWCGROUP,
}

// unshare creates a namespace, on a thread that exits afterwards.
func unshare(w []string) (string, error) {
	return "", onThread(func() error { return unix.Unshare(namespaces[w[0]]) })
}

// enter joins the namespace at a path.
func enter(w []string) (string, error) {
	fd, err := unix.Open(w[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return "", onThread(func() error { return unix.Setns(fd, 0) })
}

// onThread runs work on a thread that is not used again.
func onThread(work func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- work()
	}()
	return <-done
}

func newFS(w []string) (string, error) {
	fd, err := unix.Fsopen(w[0], unix.FSOPEN_CLOEXEC)
	if err != nil {
		return "", err
	}
	return "", unix.Close(fd)
}

func openTree(w []string) (string, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, w[0], unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return "", err
	}
	return "", unix.Close(fd)
}

// signalTo checks whether a process, by its PID on the host, could be signalled.
func signalTo(w []string) (string, error) {
	pid, err := strconv.Atoi(w[0])
	if err != nil {
		return "", err
	}
	return "", unix.Kill(pid, 0)
}

// trace attaches to a process with ptrace.
func trace(w []string) (string, error) {
	pid, err := strconv.Atoi(w[0])
	if err != nil {
		return "", err
	}
	return "", onThread(func() error {
		if err := unix.PtraceSeize(pid); err != nil {
			return err
		}
		return errors.New("can be traced")
	})
}

// peek reads a word of a process's memory.
func peek(w []string) (string, error) {
	pid, err := strconv.Atoi(w[0])
	if err != nil {
		return "", err
	}
	var word [8]byte
	local := unix.Iovec{Base: &word[0]}
	local.SetLen(len(word))
	_, err = unix.ProcessVMReadv(pid, []unix.Iovec{local}, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&word)), Len: len(word)}}, 0)
	return "", err
}

// clock sets the host's clock to an invalid time, which the kernel checks after the permission.
func clock([]string) (string, error) {
	return "", unix.ClockSettime(unix.CLOCK_REALTIME, &unix.Timespec{Sec: -1, Nsec: -1})
}

// kernelLog requests the size of the kernel log.
func kernelLog([]string) (string, error) {
	n, err := unix.Klogctl(10, nil)
	return fmt.Sprint(n, " bytes"), err
}

func swapOn(w []string) (string, error) {
	name, err := unix.BytePtrFromString(w[0])
	if err != nil {
		return "", err
	}
	_, _, errno := unix.Syscall(unix.SYS_SWAPON, uintptr(unsafe.Pointer(name)), 0, 0)
	if errno != 0 {
		return "", errno
	}
	return "", nil
}

func addKey([]string) (string, error) {
	_, err := unix.AddKey("user", "intruder", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
	return "", err
}

func keyring([]string) (string, error) {
	_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, false)
	return "", err
}

// shared looks for a System V shared memory segment by its key.
func shared(w []string) (string, error) {
	key, err := strconv.Atoi(w[0])
	if err != nil {
		return "", err
	}
	_, err = unix.SysvShmGet(key, 0, 0)
	return "", err
}
