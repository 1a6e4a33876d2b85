package netns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/idmap"
)

// pinOfUsers makes a user namespace, with others that belong to it, and pins them. A program of many threads cannot enter a user
// namespace, so a process is made in it that stands still, and its namespaces are set up from outside: they are the machine's
// root's, who may do everything in them.
func pinOfUsers(dir string, o Options) error {
	mapping := []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(o.IDs.First), Size: idmap.Size}}
	attr := &os.ProcAttr{Sys: &syscall.SysProcAttr{
		Cloneflags:  uintptr(o.flags()),
		UidMappings: mapping,
		GidMappings: mapping,
		Ptrace:      true, // it stops before its first instruction, for as long as this thread traces it
		Pdeathsig:   unix.SIGKILL,
	}}
	return OnOwnThread(func() (err error) {
		process, err := os.StartProcess("/proc/self/exe", []string{"namespaces"}, attr)
		if err != nil {
			return fmt.Errorf("make user namespace: %w", err)
		}
		defer func() {
			_, waited := process.Wait()
			err = errors.Join(err, waited)
		}()
		defer func() { err = errors.Join(err, process.Kill()) }()
		from := fmt.Sprintf("/proc/%d/ns", process.Pid)
		if err := OnOwnThread(func() error { return enterAndSetUp(from, o) }); err != nil {
			return err
		}
		return bindAll(dir, o, from) // only what is whole is found again
	})
}

// enterAndSetUp moves the calling thread into the namespaces of a folder of /proc, and prepares those.
func enterAndSetUp(from string, o Options) error {
	for _, k := range kinds {
		if k.flag != unix.CLONE_NEWUSER && o.wants(k.flag) {
			if err := enter(filepath.Join(from, k.name), k.flag); err != nil {
				return err
			}
		}
	}
	return setUp(o)
}

// enter moves the calling thread into a namespace.
func enter(path string, flag int) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, flag); err != nil {
		return fmt.Errorf("enter %s: %w", path, err)
	}
	return nil
}

// becomeRoot makes the calling thread, and no other of the process, the root of a pod, without any capability. To the kernel
// parameters of an IPC namespace, that is more than the machine's root.
func becomeRoot(ids idmap.Range) error {
	const keep = ^uintptr(0)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(ids.First), keep); errno != 0 {
		return fmt.Errorf("become user %d: %w", ids.First, errno)
	}
	return nil
}

// errNoUsers is the error of a kernel that makes no user namespaces.
var errNoUsers = errors.New("the kernel makes no user namespaces (user.max_user_namespaces is 0, or it was built without)")

// CheckUsers returns why this machine cannot make a user namespace, without making one.
func CheckUsers() error { return checkUsers("/proc") }

func checkUsers(proc string) error {
	text, err := os.ReadFile(filepath.Join(proc, "sys/user/max_user_namespaces"))
	if err != nil {
		return errNoUsers
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || n <= 0 {
		return errNoUsers
	}
	return nil
}
