package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// floods exhaust a resource. Each has a limit of its own, so that a host without limits stays usable.
var floods = map[string]attempt{
	"fill":      words(2, fill),
	"inodes":    words(2, inodes),
	"allocate":  words(1, allocate),
	"fork":      words(2, fork),
	"stop-all":  words(1, stopAll),
	"stopper":   words(1, stopper),
	"write-log": words(2, writeLog),
	"wait":      words(1, wait),
	"await":     words(1, await),
}

const mib = 1 << 20

// fill writes at most so many MiB into a file.
func fill(w []string) (string, error) {
	limit, err := strconv.Atoi(w[1])
	if err != nil {
		return "", err
	}
	file, err := os.Create(w[0])
	if err != nil {
		return "", err
	}
	defer file.Close()
	for block := make([]byte, mib); limit > 0; limit-- {
		if _, err := file.Write(block); err != nil {
			return "", err
		}
	}
	return "", nil
}

// inodes creates at most so many empty files in a directory.
func inodes(w []string) (string, error) {
	limit, err := strconv.Atoi(w[1])
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(w[0], 0o700); err != nil {
		return "", err
	}
	for i := range limit {
		fd, err := unix.Open(filepath.Join(w[0], strconv.Itoa(i)), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return "", err
		}
		_ = unix.Close(fd)
	}
	return "", nil
}

// allocated keeps the memory in use.
var allocated [][]byte

// allocate allocates so many MiB of memory.
func allocate(w []string) (string, error) {
	limit, err := strconv.Atoi(w[0])
	if err != nil {
		return "", err
	}
	for range limit {
		block, err := unix.Mmap(-1, 0, mib, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
		if err != nil {
			return "", err
		}
		allocated = append(allocated, block)
	}
	return "", nil
}

// fork starts at most so many processes, which sleep for so many seconds.
func fork(w []string) (string, error) {
	limit, err := strconv.Atoi(w[0])
	if err != nil {
		return "", err
	}
	for range limit {
		if err := exec.Command("/bin/busybox", "sleep", w[1]).Start(); err != nil { // they exit by themselves
			return "", err
		}
	}
	return "", nil
}

// stopAll starts a process that stops all others that it can see, for at most so many seconds.
func stopAll(w []string) (string, error) {
	return "", exec.Command(os.Args[0], "try", "stopper "+w[0]).Start()
}

// stopper sends SIGSTOP to all other processes for at most so many seconds. PID 1 is not affected.
func stopper(w []string) (string, error) {
	seconds, err := strconv.Atoi(w[0])
	for end := time.Now().Add(time.Duration(seconds) * time.Second); err == nil && time.Now().Before(end); {
		_ = unix.Kill(-1, unix.SIGSTOP) // there may be no other process
	}
	return "", err
}

// writeLog writes so many MiB to standard output, in lines of so many bytes.
func writeLog(w []string) (string, error) {
	limit, err := strconv.Atoi(w[0])
	if err != nil {
		return "", err
	}
	width, err := strconv.Atoi(w[1])
	if err != nil || width < 1 {
		return "", errors.Join(fmt.Errorf("want a width, not %s", w[1]), err)
	}
	line := strings.Repeat("x", width-1) + "\n"
	out := bufio.NewWriterSize(os.Stdout, mib)
	for left := limit * mib; left > 0; left -= len(line) {
		if _, err := out.WriteString(line); err != nil {
			return "", err
		}
	}
	return "", out.Flush()
}

func wait(w []string) (string, error) {
	d, err := time.ParseDuration(w[0])
	if err == nil {
		<-time.After(d)
	}
	return "", err
}

// await waits for a file.
func await(w []string) (string, error) {
	for {
		if _, err := os.Stat(w[0]); err == nil {
			return "", nil
		}
		<-time.After(10 * time.Millisecond)
	}
}
