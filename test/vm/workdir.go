package vm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// workPrefix is how the names of work directories begin. They are short, because they contain sockets.
const workPrefix = "podstead-vm-"

// WorkDir creates a directory for the files of virtual machines, which this process has locked. remove removes it. WorkDir also removes the
// directories of processes that were killed, and kills their virtual machines.
func WorkDir() (dir string, remove func() error, err error) {
	if err := removeAbandoned(os.TempDir()); err != nil {
		return "", nil, fmt.Errorf("remove work directories of killed processes: %w", err)
	}
	// It gets the name that other processes look for when it is locked.
	unlocked, err := os.MkdirTemp("", "new-"+workPrefix)
	if err != nil {
		return "", nil, err
	}
	unlock, err := lockDir(unlocked)
	if err != nil {
		return "", nil, errors.Join(err, os.Remove(unlocked))
	}
	dir = filepath.Join(filepath.Dir(unlocked), strings.TrimPrefix(filepath.Base(unlocked), "new-"))
	if err := os.Rename(unlocked, dir); err != nil {
		return "", nil, errors.Join(err, unlock(), os.Remove(unlocked))
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), unlock()) }, nil
}

// lockDir locks a directory until unlock is called or this process exits. It does not wait: the error is [unix.EWOULDBLOCK] if another
// process has locked it.
func lockDir(dir string) (unlock func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil { // a descriptor fits into an int
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}

// removeAbandoned removes the work directories in a directory that no process has locked, after their virtual machines.
func removeAbandoned(parent string) error {
	dirs, err := filepath.Glob(filepath.Join(parent, workPrefix+"*"))
	for _, dir := range dirs {
		unlock, lockErr := lockDir(dir)
		switch {
		case errors.Is(lockErr, unix.EWOULDBLOCK) || errors.Is(lockErr, fs.ErrNotExist):
		case lockErr != nil:
			err = errors.Join(err, lockErr)
		default:
			err = errors.Join(err, killMachines(dir), os.RemoveAll(dir), unlock())
		}
	}
	return err
}

// killMachines kills the QEMU processes with files in a directory.
func killMachines(dir string) error {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		line, readErr := os.ReadFile(path)
		program, arguments, _ := strings.Cut(string(line), "\x00")
		if readErr != nil || filepath.Base(program) != qemu || !strings.Contains(arguments, "="+dir+"/") { // it may have exited
			continue
		}
		pid, convErr := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if killErr := unix.Kill(pid, unix.SIGKILL); convErr != nil || killErr != nil && !errors.Is(killErr, unix.ESRCH) {
			err = errors.Join(err, convErr, killErr)
		}
	}
	return err
}
