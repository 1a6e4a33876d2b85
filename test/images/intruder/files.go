package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// fileAttempts are attempts on files and devices.
var fileAttempts = map[string]attempt{
	"read":      words(1, read),
	"write":     words(1, write),
	"list":      words(1, list),
	"device":    words(3, device),
	"link":      words(2, func(w []string) (string, error) { return "", unix.Link(w[0], w[1]) }),
	"symlink":   words(2, func(w []string) (string, error) { return "", unix.Symlink(w[0], w[1]) }),
	"mkdir":     words(1, func(w []string) (string, error) { return "", os.MkdirAll(w[0], 0o755) }), // writable by others on purpose
	"remove":    words(1, func(w []string) (string, error) { return "", unix.Unlink(w[0]) }),
	"truncate":  words(2, truncate),
	"handle":    words(1, handle),
	"chroot-up": words(1, chrootUp),
	"above":     words(1, above),
	"setuid":    words(1, setuid),
	"nest":      words(2, nest),
}

// read returns how much of a file can be read, up to a page.
func read(w []string) (string, error) {
	fd, err := unix.Open(w[0], unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, make([]byte, 4096))
	return fmt.Sprint(max(n, 0), " bytes"), err
}

// write opens a file for writing, but writes nothing.
func write(w []string) (string, error) {
	fd, err := unix.Open(w[0], unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	return "", unix.Close(fd)
}

// list returns the number of entries of a directory.
func list(w []string) (string, error) {
	entries, err := os.ReadDir(w[0])
	return fmt.Sprint(len(entries), " entries"), err
}

// device creates a device node ("b 254 0") and opens it for reading.
func device(w []string) (string, error) {
	major, err := strconv.ParseUint(w[1], 10, 32)
	if err != nil {
		return "", err
	}
	minor, err := strconv.ParseUint(w[2], 10, 32)
	if err != nil {
		return "", err
	}
	kind := uint32(unix.S_IFCHR)
	if w[0] == "b" {
		kind = unix.S_IFBLK
	}
	node := filepath.Join(os.TempDir(), "node-"+w[0]+w[1]+"-"+w[2])
	if err := unix.Mknod(node, kind|0o600, int(unix.Mkdev(uint32(major), uint32(minor)))); err != nil {
		return "", fmt.Errorf("create node: %w", err)
	}
	defer os.Remove(node)
	return read([]string{node})
}

// truncate makes a file so many GiB long. It takes no space on disk.
func truncate(w []string) (string, error) {
	size, err := strconv.ParseInt(w[1], 10, 32)
	if err != nil {
		return "", err
	}
	return "", unix.Truncate(w[0], size<<30)
}

// handle opens the root of the file system of a path by a file handle, as CVE-2014-3519 ("shocker") did.
func handle(w []string) (string, error) {
	dir, err := unix.Open(w[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(dir)
	fd, err := unix.OpenByHandleAt(dir, unix.NewFileHandle(1, []byte{2, 0, 0, 0, 0, 0, 0, 0}), unix.O_RDONLY|unix.O_CLOEXEC)
	if err != nil {
		return "", err
	}
	return "", unix.Close(fd)
}

// chrootUp leaves the root directory through a working directory outside of it, and looks for a path of the host there.
func chrootUp(w []string) (string, error) {
	self, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(self)
	inner := filepath.Join(os.TempDir(), "inner")
	if err := os.Mkdir(inner, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	if err := unix.Chroot(inner); err != nil {
		return "", err
	}
	if err := unix.Fchdir(self); err != nil {
		return "", err
	}
	found, aboveErr := above(w)
	return found, errors.Join(aboveErr, unix.Chroot("."))
}

// above looks for an absolute path of the host above the working directory, which may be outside of every root.
func above(w []string) (string, error) {
	for up := range 20 {
		fd, err := unix.Open("./"+strings.Repeat("../", up)+strings.TrimPrefix(w[0], "/"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			return "found", unix.Close(fd)
		}
	}
	return "not found", nil
}

// setuid creates a copy of this program with the set-user-ID bit, and returns its mode.
func setuid(w []string) (string, error) {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", err
	}
	defer self.Close()
	file, err := os.OpenFile(w[0], os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755) // readable by others on purpose
	if err != nil {
		return "", err
	}
	_, err = io.Copy(file, self)
	err = errors.Join(err, file.Chmod(0o755|os.ModeSetuid), file.Close())
	if err != nil {
		return "", err
	}
	info, err := os.Stat(w[0])
	if err != nil {
		return "", err
	}
	return info.Mode().String(), nil
}

// nest creates so many nested directories. Their path is longer than the kernel's limit.
func nest(w []string) (string, error) {
	depth, err := strconv.Atoi(w[1])
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(w[0], 0o755); err != nil { // readable by others on purpose
		return "", err
	}
	dir, err := unix.Open(w[0], unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	for range depth {
		if err = unix.Mkdirat(dir, "d", 0o755); err != nil {
			break
		}
		inner, openErr := unix.Openat(dir, "d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err = openErr; err != nil {
			break
		}
		_ = unix.Close(dir)
		dir = inner
	}
	return "", errors.Join(err, unix.Close(dir))
}
