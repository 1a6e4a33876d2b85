package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// podman is a private storage of Podman with runc, on the network of the host, so that its network programs are not needed.
type podman struct {
	dir    string
	global []string
}

// newPodman creates the directory and loads the archive. The error is [errMissing] if Podman is not installed.
func newPodman(ctx context.Context, dir, archive string) (*podman, error) {
	if _, err := exec.LookPath("podman"); err != nil {
		return nil, fmt.Errorf("podman: %w", errMissing)
	}
	conmon, err := exec.LookPath("conmon")
	if err != nil {
		return nil, fmt.Errorf("conmon: %w", errMissing)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	policy := filepath.Join(dir, "policy.json")
	if err := os.WriteFile(policy, []byte(`{"default": [{"type": "insecureAcceptAnything"}]}`), 0o600); err != nil {
		return nil, err
	}
	p := &podman{
		dir: dir,
		global: []string{
			"--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run"), "--tmpdir", filepath.Join(dir, "tmp"),
			"--cgroup-manager", "cgroupfs", "--runtime", "runc", "--events-backend", "none", "--conmon", conmon,
		},
	}
	return p, quiet(p.command(ctx, "load", "--quiet", "--signature-policy", policy, "--input", archive))
}

func (p *podman) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "podman", append(slices.Clone(p.global), args...)...)
}

// run is one container lifetime.
func (p *podman) run(ctx context.Context) error {
	return quiet(p.command(ctx, "run", "--rm", "--network", "host", "--ulimit", limit, "--ulimit", "nproc=1024:1024", busybox, "true"))
}

// close removes the containers. The directory is removed with the rig. Podman's own reset would affect other storages of the host.
func (p *podman) close(ctx context.Context) error {
	if p == nil {
		return nil
	}
	return errors.Join(p.removeAll(ctx), unmountAll(p.dir))
}

func (p *podman) removeAll(ctx context.Context) error {
	return quiet(p.command(ctx, "rm", "--all", "--force"))
}

// unmountAll removes the mounts below a directory.
func unmountAll(dir string) error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	for _, m := range slices.Backward(mounts) {
		if e := unix.Unmount(m.Mountpoint, unix.MNT_DETACH); e != nil {
			err = errors.Join(err, fmt.Errorf("unmount %s: %w", m.Mountpoint, e))
		}
	}
	return err
}
