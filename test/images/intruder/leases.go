package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// leases continue in the background until the program exits.
var leases = map[string]attempt{
	"lease":       words(1, lease),
	"lease-other": words(2, leaseOther),
}

// lease takes a write lease on a file. Another process that opens the file waits until the kernel breaks the lease, which it does after
// /proc/sys/fs/lease-break-time. Then lease takes it again.
func lease(w []string) (string, error) {
	fd, err := unix.Open(w[0], unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	if err := takeLease(fd); err != nil {
		return "", errors.Join(err, unix.Close(fd))
	}
	go func() {
		for {
			_ = takeLease(fd) // EAGAIN while another process has opened the file or waits for it
			<-time.After(time.Millisecond)
		}
	}()
	return "", nil
}

// takeLease takes a write lease, unless this process has it.
func takeLease(fd int) error {
	if have, err := unix.FcntlInt(uintptr(fd), unix.F_GETLEASE, 0); have == unix.F_WRLCK {
		return err
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
	return err
}

// leaseOther waits for another process whose command line contains a word, and takes a lease on a file that it sees. The lease outlives
// the process.
func leaseOther(w []string) (string, error) {
	for {
		dirs, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			return "", err
		}
		for _, dir := range dirs {
			line, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // it may have exited
			if dir == fmt.Sprint("/proc/", os.Getpid()) || !bytes.Contains(line, []byte(w[0])) {
				continue
			}
			if found, err := lease([]string{filepath.Join(dir, "root", w[1])}); err == nil {
				return found, nil
			}
		}
		<-time.After(time.Millisecond)
	}
}
