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
)

// bare is an OCI runtime with a container like ours, without anything else.
type bare struct{ program, root, bundle string }

// with returns the same with another OCI runtime, or nil if it is not installed or cannot run the container on this host.
func (b *bare) with(ctx context.Context, program string) (*bare, error) {
	if _, err := exec.LookPath(program); err != nil {
		return nil, nil
	}
	other := &bare{program: program, root: b.root + "-" + program, bundle: b.bundle + "-" + program}
	if err := os.Mkdir(other.bundle, 0o700); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(b.bundle, "config.json"))
	if err != nil {
		return nil, err
	}
	var config map[string]json.RawMessage
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	config["ociVersion"] = json.RawMessage(`"1.0.2"`) // crun 1.8 refuses later versions
	if text, err = json.Marshal(config); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(other.bundle, "config.json"), text, 0o600); err != nil {
		return nil, err
	}
	if err := other.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench: not measured:", err)
		return nil, nil
	}
	return other, nil
}

// newBare uses the OCI specification and the root file system of the container sleeper.
func (o *own) newBare(ctx context.Context) (*bare, error) {
	bundles, err := filepath.Glob(filepath.Join(o.opts.RunDir, "engine", "bundles", "*"))
	if err != nil || len(bundles) != 1 {
		return nil, fmt.Errorf("find the bundle of one container: %v, %w", bundles, err)
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
	b := &bare{program: "runc", root: filepath.Join(o.opts.RunDir, "bare"), bundle: filepath.Join(o.opts.StateDir, "bare")}
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

// rest are the other parts of an OCI specification.
type rest struct {
	Version  json.RawMessage `json:"ociVersion"`
	Hostname json.RawMessage `json:"hostname,omitempty"`
	Mounts   json.RawMessage `json:"mounts"`
}

// run is one container lifetime.
func (b *bare) run(ctx context.Context) error {
	return quiet(exec.CommandContext(ctx, b.program, "--root", b.root, "run", "--bundle", b.bundle, "bare"))
}

// steps is one container lifetime in the steps that a container manager needs: it runs the OCI runtime three times.
func (b *bare) steps(ctx context.Context) error {
	pidFile := filepath.Join(b.bundle, "pid")
	// The container inherits the descriptors of create. A pipe of ours would stay open while it runs.
	create := exec.CommandContext(ctx, b.program, "--root", b.root, "create", "--bundle", b.bundle, "--pid-file", pidFile, "bare")
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
	if err := quiet(exec.CommandContext(ctx, b.program, "--root", b.root, "start", "bare")); err != nil {
		return err
	}
	if err := awaitEnd(fd); err != nil {
		return err
	}
	return quiet(exec.CommandContext(ctx, b.program, "--root", b.root, "delete", "bare"))
}

// awaitEnd waits until the process of a pidfd has exited.
func awaitEnd(fd int) error {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(timeout.Milliseconds())) // a descriptor fits
	if err == nil && n != 1 {
		err = errors.New("timed out")
	}
	if err != nil {
		return fmt.Errorf("wait for process: %w", err)
	}
	return nil
}

// quiet runs a command. The error has its output.
func quiet(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w: %s", cmd.Args, err, out)
	}
	return nil
}
