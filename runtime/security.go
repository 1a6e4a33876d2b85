package runtime

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	containerdoci "github.com/containerd/containerd/v2/pkg/oci"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/oci"
)

// maxProfileBytes bounds a seccomp profile; Docker's default has 20 KB.
const maxProfileBytes = 1 << 20

// completeSecurity finds what a container's security context refers to: its seccomp profile, and the machine's devices.
func (r *Runtime) completeSecurity(in *oci.Input) error {
	if name := oci.LocalhostSeccomp(in.Pod, in.Container); name != "" {
		path := filepath.Join(r.opts.ConfigDir, "seccomp", name)
		text, err := configsource.InTime("file", path, func() ([]byte, error) { return readProfile(path) })
		if err != nil {
			return fmt.Errorf("read seccomp profile: %w", err)
		}
		in.Seccomp = oci.Profile{Path: path, Text: text}
	}
	if !oci.Privileged(in.Container) {
		return nil
	}
	var err error
	if in.Devices, err = containerdoci.HostDevices(); err != nil {
		return fmt.Errorf("list the machine's devices: %w", err)
	}
	return nil
}

// readProfile reads a file that anything may be in the place of: what would block, or never end, is an error.
func readProfile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if stat, err := f.Stat(); err != nil {
		return nil, err
	} else if !stat.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is no file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxProfileBytes+1))
	if err == nil && len(text) > maxProfileBytes {
		err = errors.New("it is larger than 1 MiB")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}
