package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/engine"
)

// bare is runc with a container like ours, and nothing around it.
type bare struct{ root, bundle string }

// newBare takes the specification and the root file system of the container that sleeps.
func (o *own) newBare(ctx context.Context) (*bare, error) {
	bundles, err := filepath.Glob(filepath.Join(o.opts.RunDir, "engine", "io.containerd.runtime.v2.task", engine.Namespace, "*"))
	if err != nil || len(bundles) != 1 {
		return nil, fmt.Errorf("look for the bundle of one container: %v, %w", bundles, err)
	}
	text, err := os.ReadFile(filepath.Join(bundles[0], "config.json"))
	if err != nil {
		return nil, err
	}
	var config struct {
		Process map[string]any `json:"process"`
		Root    map[string]any `json:"root"`
		Linux   map[string]any `json:"linux"`
		rest
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	config.Process["args"] = []string{"true"}
	config.Root["path"] = filepath.Join(bundles[0], "rootfs")
	config.Linux["cgroupsPath"] = path.Join(o.opts.CgroupRoot, uid, "bare")
	b := &bare{root: filepath.Join(o.opts.RunDir, "bare"), bundle: filepath.Join(o.opts.StateDir, "bare")}
	if err := os.Mkdir(b.bundle, 0o700); err != nil {
		return nil, err
	}
	if text, err = json.Marshal(config); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(b.bundle, "config.json"), text, 0o600); err != nil {
		return nil, err
	}
	return b, b.run(ctx)
}

// rest are the other parts of a specification.
type rest struct {
	Version  json.RawMessage `json:"ociVersion"`
	Hostname json.RawMessage `json:"hostname,omitempty"`
	Mounts   json.RawMessage `json:"mounts"`
}

// run is one life.
func (b *bare) run(ctx context.Context) error {
	return quiet(exec.CommandContext(ctx, "runc", "--root", b.root, "run", "--bundle", b.bundle, "bare"))
}

// steps is one life in the steps of whoever keeps containers: such a one can say when each happens, and runc is started three
// times for it.
func (b *bare) steps(ctx context.Context) error {
	pidFile := filepath.Join(b.bundle, "pid")
	// The container inherits what it is created with: a pipe of ours would be open for as long as it lives.
	create := exec.CommandContext(ctx, "runc", "--root", b.root, "create", "--bundle", b.bundle, "--pid-file", pidFile, "bare")
	if err := create.Run(); err != nil {
		return fmt.Errorf("%v: %w", create.Args, err)
	}
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := quiet(exec.CommandContext(ctx, "runc", "--root", b.root, "start", "bare")); err != nil {
		return err
	}
	if err := awaitEnd(fd); err != nil {
		return err
	}
	return quiet(exec.CommandContext(ctx, "runc", "--root", b.root, "delete", "bare"))
}

// awaitEnd returns when the process of a descriptor has ended.
func awaitEnd(fd int) error {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds())) // a descriptor fits
	if err == nil && n != 1 {
		err = errors.New("it takes too long")
	}
	if err != nil {
		return fmt.Errorf("wait for the end of a process: %w", err)
	}
	return nil
}

// quiet runs a command; its error tells what the command said.
func quiet(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w: %s", cmd.Args, err, out)
	}
	return nil
}
