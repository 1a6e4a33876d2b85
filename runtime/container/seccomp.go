package container

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/oci"
)

// maxSeccompBytes is the maximum size of a seccomp profile. Docker's default profile has 20 KB.
const maxSeccompBytes = 1 << 20

// seccompProfile reads a seccomp profile of type Localhost. The name is relative to the directory seccomp/ in the configuration directory.
func seccompProfile(configDir, name string) (oci.Profile, error) {
	path := filepath.Join(configDir, "seccomp", name)
	text, err := configsource.WithTimeout("file", path, func() ([]byte, error) { return readSeccomp(path) })
	if err != nil {
		return oci.Profile{}, fmt.Errorf("read seccomp profile: %w", err)
	}
	return oci.Profile{Path: path, Text: text}, nil
}

// readSeccomp reads a file. It returns an error for anything that would block or has no end, such as a FIFO or a device.
func readSeccomp(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if stat, err := f.Stat(); err != nil {
		return nil, err
	} else if !stat.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSeccompBytes+1))
	if err == nil && len(text) > maxSeccompBytes {
		err = errors.New("larger than 1 MiB")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}
