package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/containerd/errdefs"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/ocibundle"
)

// maxEnvironment bounds the environment that is read from a process, in bytes. It is above the limit of the kernel for a new process.
const maxEnvironment = 8 << 20

// restoreMonitored writes the bundles of the containers that the monitor runs again, if they were lost: a program that cleans /run has
// removed them. The containers need them no more, but the engine finds their cgroups there, and the environment of commands.
func (e *Engine) restoreMonitored(ctx context.Context) error {
	var errs []error
	for _, c := range e.link.all() {
		if c.Exit == nil {
			errs = append(errs, e.RestoreBundle(ctx, c.ID))
		}
	}
	return errors.Join(errs...)
}

// RestoreBundle writes the bundle of a container, or of the process of a sandbox, that the monitor runs, if its specification was lost. It
// does nothing for a container without a record.
func (e *Engine) RestoreBundle(ctx context.Context, id string) error {
	c, ours := e.monitored(id)
	if !ours || exists(filepath.Join(c.Bundle, "config.json")) {
		return nil
	}
	text, err := e.specOf(ctx, c)
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = writeLostBundle(c.Bundle, text, c.PID)
	}
	if err != nil {
		return fmt.Errorf("restore bundle of container %s: %w", id, err)
	}
	return nil
}

// specOf returns the specification in the record of a container, or of a sandbox.
func (e *Engine) specOf(ctx context.Context, c monitor.Container) ([]byte, error) {
	if c.Sandbox == "" {
		record, err := e.client.SandboxStore().Get(ctx, c.ID)
		return record.Spec.GetValue(), err
	}
	record, err := e.client.ContainerService().Get(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	return record.Spec.GetValue(), nil
}

// writeLostBundle writes the bundle of a container that runs. An environment that the specification hides, because it contains secrets, is
// that of the first process.
func writeLostBundle(dir string, text []byte, pid int) error {
	var s specs.Spec
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("read specification: %w", err)
	}
	if s.Process != nil && s.Annotations[ocibundle.ProcessAnnotation] != "" {
		var err error
		if s.Process.Env, err = environmentOf(pid); err != nil {
			return err
		}
		if text, err = json.Marshal(s); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o711); err != nil { // as makeBundle
		return err
	}
	root, err := filepath.Join(dir, "rootfs"), error(nil)
	if s.Root != nil && filepath.IsAbs(s.Root.Path) { // outside of the bundle
		err = os.Symlink(s.Root.Path, root)
	} else {
		err = os.Mkdir(root, 0o711)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
}

// environmentOf returns the environment with which a process was started.
func environmentOf(pid int) ([]string, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxEnvironment))
	if err != nil {
		return nil, err
	}
	var env []string
	for value := range bytes.SplitSeq(bytes.TrimRight(text, "\x00"), []byte{0}) {
		if bytes.Contains(value, []byte("=")) {
			env = append(env, string(value))
		}
	}
	return env, nil
}
