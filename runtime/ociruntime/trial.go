package ociruntime

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/proctree"
)

const (
	// trialTimeout is the default of [Options].
	trialTimeout = 30 * time.Second
	// cleanupTimeout bounds the removal of a container that did not exit.
	cleanupTimeout = 10 * time.Second
	// outputDelay is the time in which a killed OCI runtime closes its output.
	outputDelay = time.Second
	// maxReason is the length in bytes of what is kept of the output of an OCI runtime.
	maxReason = 500
)

// try runs a container that exits at once. Its specification has what those of pods have: own namespaces, a cgroup in the place of those of
// pods, a seccomp filter, another user and a read-only root.
func (o Options) try(ctx context.Context, program string) (err error) {
	if err := o.clean(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.clean(ctx)) }()
	if err := o.bundle(); err != nil {
		return err
	}
	timeout := cmp.Or(o.Timeout, trialTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("a container did not exit within %v", timeout))
	defer cancel()
	args := []string{"--root", filepath.Join(o.Dir, "state")}
	if o.Cgroups.Systemd() {
		args = append(args, "--systemd-cgroup")
	}
	cmd := exec.CommandContext(ctx, program, append(args, "run", "--bundle", o.Dir, trialID)...)
	cmd.WaitDelay = outputDelay
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if text := strings.TrimSpace(string(out)); err != nil && text != "" {
		return errors.New(lastLine(text))
	}
	return err
}

// trialID is the name of the container.
const trialID = "trial"

// lastLine returns the last line of an output, of limited length.
func lastLine(text string) string {
	line := strings.ToValidUTF8(text[strings.LastIndexByte(text, '\n')+1:], "?")
	return line[:min(len(line), maxReason)]
}

// bundle writes the bundle of the container.
func (o Options) bundle() error {
	if err := os.Mkdir(o.Dir, 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(o.Dir, "rootfs"), 0o755); err != nil { // the process is not root
		return err
	}
	text, err := json.Marshal(oci.Trial(oci.PauseInput{Program: o.Pause, CgroupsPath: o.Cgroups.TrialOCIPath(o.name()), Host: o.Host}))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.Dir, "config.json"), text, 0o600)
}

// name names the cgroup after the directory: podstead doctor can run beside a daemon that starts, and a daemon finds what a trial has left
// that was killed.
func (o Options) name() string {
	sum := sha256.Sum256([]byte(o.Dir))
	return trialID + "-" + hex.EncodeToString(sum[:4])
}

// clean kills the container, and removes what a trial has created. An OCI runtime removes it all, unless it or this process was killed.
func (o Options) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	dirs, err := cgroup.Dirs(o.Cgroups.Trial(o.name()))
	err = errors.Join(err, proctree.KillCgroup(ctx, dirs))
	for _, dir := range dirs {
		if removeErr := cgroup.RemoveTree(ctx, dir); !errors.Is(removeErr, unix.EBUSY) { // systemd removes scopes
			err = errors.Join(err, removeErr)
		}
	}
	if err == nil {
		err = unmountBelow(filepath.Join(o.Dir, "rootfs"))
	}
	if err == nil {
		err = os.RemoveAll(o.Dir)
	}
	if err != nil {
		return fmt.Errorf("remove container of trial: %w", err)
	}
	return nil
}

// unmountBelow unmounts a directory. An OCI runtime mounts in a mount namespace of its own, so nothing is mounted there normally.
func unmountBelow(dir string) error {
	err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
